"""Settings of PyTorch that choose between ways of computing of which there is only one here."""

import warnings

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.dtype import dtype as Dtype
from cygrad._core.arrays.dtype import set_default_dtype
from cygrad._core.threads.parallel import get_num_threads
from cygrad.composite.dtypes import TENSOR_TYPES

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_warn_always", "use_deterministic_algorithms",
]

# torch.utils.deterministic: whether `empty` fills what it gives. It does not; nothing that computes reads it.
fill_uninitialized_memory = True

_settings = {"deterministic": False, "warn_only": False, "precision": "highest", "interop": None, "warn_always": False}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """
    Accept the setting and ignore it: all algorithms are deterministic and bit-identical on any number of threads.

    Parameters
    ----------
    mode : bool
        What `are_deterministic_algorithms_enabled` shall tell.
    warn_only : bool, default False
        What `is_deterministic_algorithms_warn_only_enabled` shall tell.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.use_deterministic_algorithms(True)
    >>> cygrad.are_deterministic_algorithms_enabled()
    True
    >>> cygrad.use_deterministic_algorithms(False)
    """
    _settings.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled():
    """What `use_deterministic_algorithms` was told; algorithms are deterministic in any case."""
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """What `use_deterministic_algorithms` was told of warnings."""
    return _settings["warn_only"]


def set_deterministic_debug_mode(debug_mode):
    """The same wish as a word or number: "default" (0), "warn" (1), "error" (2)."""
    names = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: expected one of {', '.join(names)}, or 0, 1, 2 (got "
                           f"{debug_mode!r}).")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode():
    """What `set_deterministic_debug_mode` was told, as a number."""
    return 0 if not _settings["deterministic"] else 1 if _settings["warn_only"] else 2


def set_float32_matmul_precision(precision):
    """Note how exact products have to be: they are computed in float32 in any case."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"set_float32_matmul_precision: expected highest, high or medium (got {precision!r}).")
    _settings["precision"] = precision


def get_float32_matmul_precision():
    """What `set_float32_matmul_precision` was told."""
    return _settings["precision"]


def set_num_interop_threads(n):
    """Note a number of threads; there is one team of them, see `set_num_threads`."""
    if not isinstance(n, int) or n <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a positive integer (got {n!r}).")
    _settings["interop"] = n


def get_num_interop_threads():
    """What `set_num_interop_threads` was told; else the number of threads."""
    return _settings["interop"] or get_num_threads()


def set_warn_always(b, /):
    """Note whether warnings that come once shall come each time; here Python's own filters decide that."""
    _settings["warn_always"] = bool(b)


def is_warn_always_enabled():
    """What `set_warn_always` was told."""
    return _settings["warn_always"]


def set_flush_denormal(mode):
    """Whether numbers below the normal ones could be computed as zero: they are computed exactly, so False."""
    if mode:
        warnings.warn("set_flush_denormal: denormal numbers are computed exactly here; nothing was changed.",
                      stacklevel=2)
    return False


def set_default_tensor_type(t, /):
    """Set the default floating dtype by a type of tensors, as programs did before `set_default_dtype`."""
    name = t.rpartition(".")[2] if isinstance(t, str) else getattr(t, "__name__", "")
    dtype = t if isinstance(t, Dtype) else getattr(dtypes, TENSOR_TYPES.get(name, ""), None)
    if dtype is None or (isinstance(t, str) and ".cuda." in t):
        raise TypeError(f"set_default_tensor_type: expected the type of floating tensors on the CPU (got {t!r}). Use "
                        "set_default_dtype.")
    set_default_dtype(dtype)
