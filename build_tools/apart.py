"""
Run Python with a separate build; the package built in place is not changed.

The environment selects the build, as for setup.py: ``CYGRAD_DEBUG=1 python -m build_tools.apart -m pytest tests/core``.
For a sanitizer, its runtime library is preloaded into Python.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from build_tools.configuration import Configuration
from build_tools.files import copy_if_changed
from build_tools.modules import TESTING

ROOT = Path(__file__).resolve().parents[1]
# Preload libstdc++ next, because a sanitizer intercepts its exceptions, PyTorch's among them.
RUNTIMES = {"address": "libasan.so", "undefined": "libubsan.so", "thread": "libtsan.so"}
# Ignore leaks at exit, return NULL for failed allocations, and bypass Python's allocator, which hides blocks.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048",
           "PYTHONMALLOC": "malloc",
           "TSAN_OPTIONS": f"suppressions={ROOT}/build_tools/thread_sanitizer.supp"}
CHECK = """
import sys, cygrad
from cygrad._core.build_config import FACTS
assert cygrad.__file__.startswith(sys.argv[1]), f"another build was imported: {cygrad.__file__}"
assert [FACTS["debug"], FACTS["sanitizer"]] == eval(sys.argv[2]), FACTS
"""


def build() -> Path:
    """Build into the directory of the configuration, with the modules for tests; return the folder with the package."""
    library = ROOT / "build" / Configuration.from_environment().key / "lib"
    for source in library.rglob("*.py"):               # one that is gone from the sources would still be found
        source.unlink()
    subprocess.run([sys.executable, "setup.py", "--quiet", "build"], check=True, cwd=ROOT,
                   env={**os.environ, "CYGRAD_TESTING": "1"})
    copy_if_changed(ROOT / TESTING / "__init__.py", library / TESTING / "__init__.py")
    return library


def environment(library: Path, configuration: Configuration) -> dict[str, str]:
    """Return the environment in which Python imports that build; tests come from the source tree."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(library), str(ROOT)]), "PYTHONSAFEPATH": "1"}
    if configuration.sanitizer:
        compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        runtimes = [subprocess.run([*compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                                   check=True).stdout.strip()
                    for name in (RUNTIMES[configuration.sanitizer], "libstdc++.so.6")]
        found = {**OPTIONS, **found, "LD_PRELOAD": " ".join(runtimes)}
    return found


def main(arguments: list[str]) -> None:
    """Build, check that this build is imported, and run Python."""
    configuration = Configuration.from_environment()
    library = build()
    found = environment(library, configuration)
    subprocess.run([sys.executable, "-c", CHECK, str(library), repr([configuration.debug, configuration.sanitizer])],
                   check=True, cwd=ROOT, env=found)
    os.chdir(ROOT)
    os.execve(sys.executable, [sys.executable, *arguments], found)


if __name__ == "__main__":
    main(sys.argv[1:])
