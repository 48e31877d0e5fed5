"""Our own copy of OpenBLAS: renamed, next to the extension modules, apart from NumPy's.

The dynamic loader tells libraries apart by their SONAME. A copy that keeps the name might be taken
for (or replaced by) the one somebody else loaded, and thread settings of one would act on the other.
"""

import os
import sys
from importlib.metadata import distribution, version
from pathlib import Path

import scipy_openblas32

UPSTREAM = "libscipy_openblas.so"
# As long as the upstream name: the SONAME is then replaced byte for byte and no tool that rewrites
# ELF files is needed. threadpoolctl does not know this name, on purpose: the library is run with one
# thread per call, and a limit of eight set for NumPy must not turn that into eight.
LIBRARY = "libcygradopenblas.so"
LINK_NAME = "cygradopenblas"
LICENSE = "libcygradopenblas.LICENSE.txt"
SYMBOL_PREFIX = "scipy_"


def include_dir() -> str:
    return scipy_openblas32.get_include_dir()


def facts() -> dict[str, str]:
    """What show_config() tells about the library."""
    return {
        "version": version("scipy-openblas32"),
        "library": LIBRARY,
        "symbol_prefix": SYMBOL_PREFIX,
    }


def license_text() -> str:
    """Whoever passes the library on has to pass this on too."""
    return distribution("scipy-openblas32").read_text("licenses/LICENSE.txt")


def copy_to(directory: Path) -> Path:
    """Put the renamed library into `directory`, unless it is there already."""
    upstream = Path(scipy_openblas32.get_lib_dir(), UPSTREAM)
    if not upstream.exists():
        raise RuntimeError(
            f"OpenBLAS: no {UPSTREAM} in {upstream.parent} (platform {sys.platform}). "
            "Only ELF platforms with the pinned scipy-openblas32 are supported."
        )
    target = directory / LIBRARY
    if not target.exists() or target.stat().st_mtime_ns != upstream.stat().st_mtime_ns:
        _write_renamed(upstream, target)
    return target


def _write_renamed(upstream: Path, target: Path) -> None:
    data = upstream.read_bytes()
    old, new = f"\0{UPSTREAM}\0".encode(), f"\0{LIBRARY}\0".encode()
    if len(old) != len(new) or data.count(old) != 1:
        raise RuntimeError(f"OpenBLAS: expected the SONAME {UPSTREAM} once in {upstream} "
                           f"(found {data.count(old)} times, length {len(new) - len(old):+d}).")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(data.replace(old, new))
    temporary.chmod(0o755)
    # The upstream time marks which library this is a copy of.
    os.utime(temporary, ns=(upstream.stat().st_atime_ns, upstream.stat().st_mtime_ns))
    temporary.replace(target)
