"""Build: probes, configuration, and installed files."""

import ctypes
import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cygrad
from cygrad._core.build_config import LIBRARIES
from cygrad.config import CORE, show_config

ROOT = Path(__file__).resolve().parents[2]
in_source_tree = pytest.mark.skipif(
    not (ROOT / "build_tools").is_dir(), reason="build_tools is only in the source tree"
)
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")


def test_show_config_prints_what_a_bug_report_needs(capsys):
    assert show_config() is None
    text = capsys.readouterr().out
    for word in ("OpenMP", "OpenBLAS", "NumPy", "compiler", "sanitizer", np.__version__):
        assert word in text


def test_show_config_as_dictionary():
    facts = show_config("dicts")
    assert isinstance(facts["openmp"]["enabled"], bool)
    assert facts["openmp"]["reason"]
    if facts["openmp"]["enabled"]:
        assert facts["openmp"]["workers"] == "members of an OpenMP region"
        assert Path(facts["openmp"]["library"]).exists()
    else:
        assert (facts["openmp"]["workers"], facts["openmp"]["library"]) == ("POSIX threads", None)
    assert facts["openblas"]["config"].startswith("OpenBLAS " + facts["openblas"]["version"])


def test_show_config_does_not_hand_out_its_own_facts():
    show_config("dicts")["openblas"]["library"] = "changed"
    assert show_config("dicts")["openblas"]["library"] != "changed"


def test_show_config_unknown_mode():
    with pytest.raises(ValueError, match="unknown mode"):
        show_config("yaml")


def test_flags_keep_nan_and_the_wheel_generic():
    flags = show_config("dicts")["compile_args"]
    assert not {"-ffast-math", "-Ofast", "-march=native"} & set(flags)


def test_a_source_tree_without_libraries_says_what_to_do(tmp_path):
    (tmp_path / "cygrad" / "_core").mkdir(parents=True)
    for name in ("__init__.py", "_core/__init__.py"):
        (tmp_path / "cygrad" / name).write_bytes((Path(cygrad.__file__).parent / name).read_bytes())
    result = subprocess.run([sys.executable, "-c", "import cygrad"], cwd=tmp_path, capture_output=True, text=True,
                            check=False)
    assert "ImportError: cygrad: this source tree is not built" in result.stderr


def openblas_function(name):
    openblas = show_config("dicts")["openblas"]
    return getattr(ctypes.CDLL(CORE / openblas["library"]), openblas["symbol_prefix"] + name)


@linux_only
def test_openblas_is_a_second_instance():
    np.ones((4, 4)) @ np.ones((4, 4))
    openblas_function("openblas_get_num_threads")
    with open("/proc/self/maps") as maps:
        loaded = {Path(line.split()[-1]) for line in maps if "openblas" in line}
    ours = {path for path in loaded if path.is_relative_to(CORE)}
    assert [path.name for path in ours] == ["libcygradopenblas.so"]
    assert all("cygrad" not in path.name for path in loaded - ours)


def test_openblas_threads_are_ours_alone():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    get, set_ = (openblas_function(f"openblas_{verb}_num_threads") for verb in ("get", "set"))
    before = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
    ours = get()
    try:
        set_(3)
        after = {pool["filepath"]: pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        assert after == before
        with threadpoolctl.threadpool_limits(1):
            assert get() == 3
    finally:
        set_(ours)


def test_compiled_modules_come_from_their_libraries():
    for library, names in LIBRARIES.items():
        for name in names:
            module = importlib.import_module(f"cygrad._core.{name}")
            assert module.__file__ == module.__spec__.origin == str(CORE / library)
            assert find_spec(module.__name__) is module.__spec__


def test_compiled_modules_are_found_again(monkeypatch):
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.delitem(sys.modules, "cygrad._core.graph.tensor")
    assert find_spec("cygrad._core.graph.tensor").origin == cygrad._core.graph.tensor.__file__
    assert find_spec("cygrad._core.no_such_module") is None
    assert find_spec("cygrad._core.graph.no_such_module") is None


def printed(program):
    """Return the output of a fresh interpreter with this package."""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                            env={**os.environ, "PYTHONPATH": str(CORE.parents[1])})
    return answer.stdout.strip()


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_import_leaves_the_garbage_collector_as_it_was(before):
    assert printed(f"import gc; gc.{before}(); import cygrad; print(gc.isenabled())") == str(before == "enable")


def test_import_leaves_frozen_objects_frozen():
    """Some of them may be gone afterwards; but none has joined them."""
    assert printed("import gc; gc.freeze(); before = gc.get_freeze_count(); import cygrad\n"
                   "print(before / 2 < gc.get_freeze_count() <= before)") == "True"


def test_garbage_from_before_the_import_is_still_found():
    assert printed("import gc, weakref\nclass A: pass\na = A(); a.a = a; gone = weakref.ref(a); del a\n"
                   "import cygrad; gc.collect(); print(gone() is None, gc.get_freeze_count())") == "True 0"


@in_source_tree
class TestBuildTools:
    @pytest.fixture(autouse=True)
    def on_the_path(self, monkeypatch):
        pytest.importorskip("setuptools")
        pytest.importorskip("Cython")
        pytest.importorskip("scipy_openblas32")
        monkeypatch.syspath_prepend(str(ROOT))
        monkeypatch.chdir(ROOT)
        for name in ("CYGRAD_DEBUG", "CYGRAD_SANITIZE", "CYGRAD_MODULES", "CYGRAD_OPENMP"):
            monkeypatch.delenv(name, raising=False)

    @pytest.fixture
    def configuration(self):
        from build_tools.configuration import Configuration

        return Configuration.from_environment

    def test_openmp_probe_says_why(self, monkeypatch):
        from build_tools import openmp

        assert openmp.probe().reason
        monkeypatch.setenv("CYGRAD_OPENMP", "0")
        assert openmp.probe() == openmp.OpenMP(False, "switched off by CYGRAD_OPENMP=0")

    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("PROGRAM", "#include <no_such_header.h>\n", "does not accept"),
            ("PROGRAM", "int missing(void); int main(void) { return missing(); }", "does not link"),
            ("PROGRAM", "int main(void) { return 1; }", "did not run"),
        ],
    )
    def test_openmp_probe_falls_back(self, monkeypatch, name, value, reason):
        from build_tools import openmp

        monkeypatch.setattr(openmp, name, value)
        found = openmp.probe()
        assert not found.enabled
        assert found.flags == []
        assert reason in found.reason

    def test_each_configuration_has_its_own_directory(self, configuration, monkeypatch):
        keys = {configuration().key}
        for name, value in [("CYGRAD_DEBUG", "1"), ("CYGRAD_SANITIZE", "address"), ("CFLAGS", "-O0")]:
            monkeypatch.setenv(name, value)
            keys.add(configuration().key)
        assert len(keys) == 4

    def test_debug_turns_checks_on(self, configuration, monkeypatch):
        assert configuration().directives["wraparound"] is False
        monkeypatch.setenv("CYGRAD_DEBUG", "1")
        assert configuration().directives["wraparound"] is True
        assert "-DCYGRAD_DEBUG" in configuration().compile_args

    def test_unknown_sanitizer(self, configuration, monkeypatch):
        monkeypatch.setenv("CYGRAD_SANITIZE", "memry")
        with pytest.raises(SystemExit, match="unknown sanitizer"):
            configuration()

    def test_unknown_module(self, monkeypatch):
        from build_tools import modules

        sources = {"cygrad._core.arrays.array": Path("array.pyx")}
        monkeypatch.setenv("CYGRAD_MODULES", "array")
        assert modules.selected(sources) == sources
        monkeypatch.setenv("CYGRAD_MODULES", "array,storige")
        with pytest.raises(SystemExit, match="storige"):
            modules.selected(sources)

    def test_variables_near_their_thread_are_found(self):
        """Modules with thread-local variables are in a separate library; only the module itself may request that."""
        from build_tools import modules

        asking = {path.suffix for path in modules.CORE.rglob("*.*")
                  if path.suffix in (".h", ".pxd", ".cpp", ".pyx") and "thread_variable.h" in path.read_text()}
        assert asking == {".pyx"}

    def test_headers_of_code(self):
        from build_tools import modules

        names = {path.name for path in modules.headers(modules.CORE / "kernels/sorting/selection.cpp")}
        assert {"selection.h", "loops.h"} <= names      # the second by way of the first
        assert "statistics.h" not in names

    def test_openblas_marker(self, tmp_path):
        from build_tools import modules

        (tmp_path / "with.pyx").write_text("# cygrad: openblas\n")
        (tmp_path / "late.pyx").write_text("\n" * 10 + "# cygrad: openblas\n")
        assert modules.needs_openblas(tmp_path / "with.pyx")
        assert not modules.needs_openblas(tmp_path / "late.pyx")

    def test_files_are_written_only_when_they_change(self, tmp_path):
        from build_tools.files import copy_if_changed, write_if_changed

        assert write_if_changed(tmp_path / "a" / "text", "one")
        assert not write_if_changed(tmp_path / "a" / "text", "one")
        assert copy_if_changed(tmp_path / "a" / "text", tmp_path / "copy")
        assert not copy_if_changed(tmp_path / "a" / "text", tmp_path / "copy")
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "copy", "text"]

    def test_metadata_needs_no_compilation(self):
        answer = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "--name"],
            capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "CYGRAD_MODULES": ""},
        )
        assert answer.stdout.strip().endswith("cygrad")
