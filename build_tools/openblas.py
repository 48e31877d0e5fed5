"""A renamed and trimmed copy of OpenBLAS next to the extension modules, separate from NumPy's.

The dynamic loader identifies libraries by their SONAME. A copy with the same name could be mixed up with the library of
another package, and thread settings of one would affect the other.
"""

import os
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import distribution, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from build_tools import unused_code

# Its import would load the library, which a build for another processor cannot.
UPSTREAM_PACKAGE = Path(find_spec("scipy_openblas32").origin).parent
UPSTREAM = "libscipy_openblas.so"
# As long as the upstream name, so that the SONAME can be overwritten without an ELF tool. threadpoolctl does not know
# the name, on purpose: calls use one thread, which a limit for NumPy must not raise.
LIBRARY = "libcygradopenblas.so"
LINK_NAME = "cygradopenblas"
LICENSE = "libcygradopenblas.LICENSE.txt"
SYMBOL_PREFIX = "scipy_"


def include_dir() -> str:
    return str(UPSTREAM_PACKAGE / "include")


def facts() -> dict[str, str]:
    """Return the facts for show_config()."""
    return {
        "version": version("scipy-openblas32"),
        "library": LIBRARY,
        "symbol_prefix": SYMBOL_PREFIX,
    }


def license_text() -> str:
    """Return the license files, which must be distributed with the library."""
    return distribution("scipy-openblas32").read_text("licenses/LICENSE.txt")


def copy_to(directory: Path) -> Path:
    """Copy the renamed library to `directory`, unless it is there."""
    upstream = UPSTREAM_PACKAGE / "lib" / UPSTREAM
    if not upstream.exists():
        raise RuntimeError(
            f"OpenBLAS: no {UPSTREAM} in {upstream.parent} (platform {sys.platform}). "
            "Only ELF platforms with the pinned scipy-openblas32 are supported."
        )
    target = directory / LIBRARY
    if not target.exists() or target.stat().st_mtime_ns != upstream.stat().st_mtime_ns:
        _write_renamed(upstream, target)
    return target


def trimmed(library: Path, users: list[Path]) -> bytes:
    """
    Return the copy without its symbol table, and without the code of functions that `users` cannot reach.

    Its settings (openblas_get_config and others) stay for ctypes.
    """
    data = library.read_bytes()
    called = {name for name in unused_code.Library(data).exported() if name.startswith(SYMBOL_PREFIX + "openblas_")}
    called = called.union(*(unused_code.Library(user.read_bytes()).imported() for user in users))
    with TemporaryDirectory() as directory:
        found = Path(directory, library.name)
        found.write_bytes(unused_code.filled(data, called))
        # Without binutils, or for another processor, the file is only larger.
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([os.environ.get("STRIP", "strip"), found], check=True, capture_output=True)
        return unused_code.cut(found.read_bytes())


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
    # The time of the original identifies the copied library.
    os.utime(temporary, ns=(upstream.stat().st_atime_ns, upstream.stat().st_mtime_ns))
    temporary.replace(target)
