"""The benchmarks run: each once, with its first parameters, so that a renamed function is found here and not later."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest

import cygrad

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("time_", "timeraw_", "track_", "peakmem_", "mem_")

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="benchmarks are only in the source tree")


def load(name):
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"benchmarks.{name}")
    finally:
        sys.path.remove(str(ROOT))


def found():
    """Every method that asv would run."""
    for path in sorted((ROOT / "benchmarks").glob("bench_*.py")):
        for name, cls in inspect.getmembers(load(path.stem), inspect.isclass):
            for method, _ in inspect.getmembers(cls, callable):
                if method.startswith(KINDS):
                    yield pytest.param(cls, method, id=f"{path.stem}.{name}.{method}")


@pytest.fixture(autouse=True)
def threads_restored():
    before = cygrad.get_num_threads()
    yield
    cygrad.set_num_threads(before)


@pytest.mark.parametrize(("cls", "method"), list(found()))
def test_benchmark_runs(cls, method):
    arguments = [values[0] for values in cls.params]
    assert len(arguments) == len(cls.param_names)
    assert arguments[0] == "cygrad"
    benchmark = cls()
    benchmark.setup(*arguments)
    result = getattr(benchmark, method)(*arguments)
    assert not method.startswith("track_") or isinstance(result, int | float)


def test_what_is_missing_is_skipped(monkeypatch):
    workloads = load("workloads")
    with pytest.raises(NotImplementedError, match="no_such_library"):
        workloads.library("no_such_library")
    with pytest.raises(NotImplementedError, match="cores"):
        workloads.library("cygrad", 10 ** 6)
    with pytest.raises(NotImplementedError, match=r"has no nn\.NoSuchLayer"):
        workloads.needs(cygrad, "nn.Linear", "nn.NoSuchLayer")
    monkeypatch.setenv("CYGRAD_BENCH_PEERS", "")
    with pytest.raises(NotImplementedError, match="not wanted"):
        workloads.library("torch")


def test_comparison_measures_and_shows(capsys):
    compare = load("compare")
    medians = compare.paired({"cygrad": lambda: None}, rounds=1)
    assert medians["cygrad"] < 0.01
    compare.show("nothing", "s", {"cygrad": 1.0, "torch": 2.0})
    compare.show("alone", "s", {"cygrad": 1234.0})
    assert capsys.readouterr().out == "| nothing | s | 1 | 2 | 2.00 |\n| alone | s | 1,234 |\n"
    assert any("OpenBLAS" in line for line in compare.circumstances(["cygrad"], 1))
