"""Settings of PyTorch, most of which are accepted and ignored."""

import math
import warnings

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.dtype import dtype as Dtype
from cygrad._core.arrays.dtype import set_default_dtype
from cygrad._core.creation.creation import tensor
from cygrad._core.creation.factories import FILLS_UNINITIALIZED
from cygrad._core.graph.argument_errors import as_instance
from cygrad._core.graph.modes import no_grad
from cygrad._core.threads.parallel import get_num_threads
from cygrad.compatibility.limits import iinfo
from cygrad.composite.dtypes import TENSOR_TYPES

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
    "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_warn_always", "use_deterministic_algorithms",
]

# torch.utils.deterministic: whether `use_deterministic_algorithms` lets `empty` and its relatives fill their results.
fill_uninitialized_memory = True

_settings = {"deterministic": False, "warn_only": False, "precision": "highest", "interop": None, "warn_always": False}


def use_deterministic_algorithms(mode, *, warn_only=False):
    """
    Let `empty` and its relatives fill their results; all algorithms are deterministic without it.

    Results are bit-identical on any number of threads. Uninitialized memory is filled with nan, True or the largest
    integer, unless ``torch.utils.deterministic.fill_uninitialized_memory`` is False.

    Parameters
    ----------
    mode : bool
    warn_only : bool, default False
        What `is_deterministic_algorithms_warn_only_enabled` shall tell.

    Examples
    --------
    >>> cygrad.use_deterministic_algorithms(True)
    >>> cygrad.empty(2)
    tensor([nan, nan])
    >>> cygrad.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        as_instance("use_deterministic_algorithms", name, value, bool)
    _settings.update(deterministic=mode, warn_only=warn_only)
    FILLS_UNINITIALIZED[:] = [_fill] if mode else []


def _fill(made):
    """Fill a new tensor with nan, True or the largest integer."""
    if fill_uninitialized_memory:
        kind = made.dtype
        inexact = kind.is_floating_point or kind.is_complex
        value = math.nan if inexact else kind.name == "bool" or iinfo(kind).max
        with no_grad():
            made.copy_(tensor(value, dtype=kind))


def are_deterministic_algorithms_enabled():
    """Return the setting of `use_deterministic_algorithms`; all algorithms are deterministic without it."""
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """Return the setting of `warn_only` of `use_deterministic_algorithms`."""
    return _settings["warn_only"]


def set_deterministic_debug_mode(debug_mode):
    """Set the mode as "default" (0), "warn" (1) or "error" (2)."""
    names = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: expected one of {', '.join(names)}, or 0, 1, 2 (got "
                           f"{debug_mode!r}).")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode():
    """Return the setting of `set_deterministic_debug_mode`, as a number."""
    return 0 if not _settings["deterministic"] else 1 if _settings["warn_only"] else 2


def set_float32_matmul_precision(precision):
    """Accept a precision of float32 products, which always compute in float32."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"set_float32_matmul_precision: expected highest, high or medium (got {precision!r}).")
    _settings["precision"] = precision


def get_float32_matmul_precision():
    """Return the setting of `set_float32_matmul_precision`."""
    return _settings["precision"]


def set_num_interop_threads(n):
    """Accept a number of threads between operations; see `set_num_threads`."""
    if not isinstance(n, int) or n <= 0:
        raise RuntimeError(f"set_num_interop_threads: expected a positive integer (got {n!r}).")
    _settings["interop"] = n


def get_num_interop_threads():
    """Return the setting of `set_num_interop_threads`, or the number of threads."""
    return _settings["interop"] or get_num_threads()


def set_warn_always(b, /):
    """Accept whether to repeat warnings, which Python's filters decide."""
    _settings["warn_always"] = bool(b)


def is_warn_always_enabled():
    """Return the setting of `set_warn_always`."""
    return _settings["warn_always"]


def set_flush_denormal(mode):
    """Return False: subnormal numbers are not flushed to zero."""
    if mode:
        warnings.warn("set_flush_denormal: denormal numbers are computed exactly here; nothing was changed.",
                      stacklevel=2)
    return False


def set_default_tensor_type(t, /):
    """Set the default floating dtype by a tensor type. Deprecated: use `set_default_dtype`."""
    name = t.rpartition(".")[2] if isinstance(t, str) else getattr(t, "__name__", "")
    dtype = t if isinstance(t, Dtype) else getattr(dtypes, TENSOR_TYPES.get(name, ""), None)
    if dtype is None or (isinstance(t, str) and ".cuda." in t):
        raise TypeError(f"set_default_tensor_type: expected the type of floating tensors on the CPU (got {t!r}). Use "
                        "set_default_dtype.")
    set_default_dtype(dtype)
