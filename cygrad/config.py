"""Configuration of the build and of the running process."""

import ctypes
import platform
from pathlib import Path

import numpy

from cygrad._core.build_config import FACTS
from cygrad._core.threads.parallel import openmp_library

__all__ = ["show_config"]

CORE = Path(__file__).parent / "_core"


def show_config(mode: str = "stdout") -> dict | None:
    """Show how cygrad was built: compiler, flags, OpenMP, OpenBLAS.

    Paste the output into a bug report.

    Parameters
    ----------
    mode : {"stdout", "dicts"}
        Print a text, or return the facts as a dictionary.

    Returns
    -------
    dict or None
        The facts if `mode` is ``"dicts"``, otherwise None.

    Examples
    --------
    >>> from cygrad.config import show_config
    >>> show_config()  # doctest: +ELLIPSIS
    cygrad ...
      OpenMP         ...
      OpenBLAS       ...
    >>> show_config("dicts")["openblas"]["library"]
    'libcygradopenblas.so'
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: unknown mode (got {mode!r}, expected 'stdout' or 'dicts').")
    facts = _facts()
    if mode == "dicts":
        return facts
    print(_text(facts))
    return None


def _facts() -> dict:
    """Facts of the build, with those of the running process added."""
    facts = {key: dict(value) if isinstance(value, dict) else value for key, value in FACTS.items()}
    facts["openblas"]["config"] = _openblas_config(facts["openblas"])
    enabled = facts["openmp"]["enabled"]
    facts["openmp"]["workers"] = "members of an OpenMP region" if enabled else "POSIX threads"
    facts["openmp"]["library"] = openmp_library() if enabled else None
    facts["running"] = {
        "cygrad": _own_version(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "platform": platform.platform(),
    }
    return facts


def _own_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cygrad")
    except PackageNotFoundError:
        return "(built in place, not installed)"


def _openblas_config(openblas: dict) -> str:
    """Ask the library itself: the kernels it picked depend on the CPU it runs on."""
    get_config = getattr(ctypes.CDLL(CORE / openblas["library"]), openblas["symbol_prefix"] + "openblas_get_config")
    get_config.restype = ctypes.c_char_p
    return get_config().decode()


def _text(facts: dict) -> str:
    running, openmp, openblas = facts["running"], facts["openmp"], facts["openblas"]
    rows = {
        "OpenMP": f"{openmp['library'] if openmp['enabled'] else 'off'} ({openmp['reason']})",
        "workers": openmp["workers"],
        "OpenBLAS": f"{openblas['version']}, own copy {openblas['library']}",
        "": openblas["config"],
        "Python": f"{running['python']} on {running['platform']}",
        "NumPy": f"{running['numpy']}, built with {facts['numpy']}",
        "Cython": facts["cython"],
        "compiler": facts["compiler"],
        "compile flags": " ".join(facts["compile_args"]),
        "link flags": " ".join(facts["link_args"]),
        "debug": "on" if facts["debug"] else "off",
        "sanitizer": facts["sanitizer"] or "none",
    }
    rows |= facts["compiler_environment"]
    return "\n".join([f"cygrad {running['cygrad']}", *(f"  {name:<14} {value}" for name, value in rows.items())])
