"""The standard's functions that make arrays."""

from contextlib import suppress

import numpy as np

import cygrad as c
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import creation, shapes
from cygrad.numpy_protocols.arrays import as_tensor, holds_tensors, our_dtype

__all__ = ["FUNCTIONS"]


def _ours(dtype):
    return None if dtype is None else our_dtype(dtype)


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    """Return an array of data: arrays and buffers share their memory unless a copy is requested or needed."""
    if isinstance(obj, (list, tuple)) and holds_tensors(obj):
        if copy is False:
            raise ValueError("asarray: a sequence of arrays requires a copy (got copy=False).")
        obj = as_tensor(obj)
    elif not isinstance(obj, (c.Tensor, np.ndarray)) and not hasattr(obj, "__dlpack__"):
        with suppress(TypeError):
            obj = np.asarray(memoryview(obj))               # with the dtype of the buffer
    result = c.asarray(obj, dtype=_ours(dtype), copy=copy)
    return result if device is None else result.to(device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Return evenly spaced numbers, without the end."""
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) * step <= 0:
        kind = None if any(isinstance(number, float) for number in (start, stop, step)) else c.int64
        return c.empty(0, dtype=_ours(dtype) or kind, device=device)
    return c.arange(start, stop, step, dtype=_ours(dtype), device=device)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """Return a given number of evenly spaced numbers."""
    complex_ = isinstance(start, complex) or isinstance(stop, complex)
    default = c.get_default_dtype()
    dtype = _ours(dtype) or (default.to_complex() if complex_ else default)
    result = creation.linspace(start, stop, num, endpoint).to(dtype)
    return result if device is None else result.to(device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Return ones on a diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    result = c.zeros(n_rows, n_cols, dtype=_ours(dtype), device=device)
    if -n_rows < k < n_cols:
        c.diagonal(result, k).fill_(1)
    return result


def full(shape, fill_value, *, dtype=None, device=None):
    """Return an array filled with a number."""
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    return c.full(shape, fill_value, dtype=_ours(dtype), device=device)


def from_dlpack(x, /, *, device=None, copy=None):
    """Return an array over the memory of another library's, or a copy of it."""
    return c.from_dlpack(x, device=device, copy=copy)


def _filled(name):
    make = getattr(c, name)
    return lambda shape, *, dtype=None, device=None: make(
        shape if isinstance(shape, (tuple, list)) else (shape,), dtype=_ours(dtype), device=device)


def _like(name):
    make = getattr(c, name)
    return lambda x, /, *, dtype=None, device=None: make(x, dtype=_ours(dtype), device=device, requires_grad=False)


FUNCTIONS = finished("cygrad.array_api", {
    "asarray": asarray, "arange": arange, "linspace": linspace, "eye": eye, "full": full,
    "zeros": _filled("zeros"), "ones": _filled("ones"), "empty": _filled("empty"),
    "zeros_like": _like("zeros_like"), "ones_like": _like("ones_like"), "empty_like": _like("empty_like"),
    "full_like": lambda x, /, fill_value, *, dtype=None, device=None: full(
        tuple(x.shape), fill_value, dtype=x.dtype if dtype is None else dtype, device=device),
    "tril": lambda x, /, *, k=0: c.tril(x, k), "triu": lambda x, /, *, k=0: c.triu(x, k),
    "meshgrid": lambda *arrays, indexing="xy": shapes.meshgrid(*arrays, indexing=indexing)
}) | finished("cygrad.array_api", {"from_dlpack": from_dlpack}, check=False)
