"""NumPy's `_like` functions, and those that inspect dtypes."""

import numpy as np

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols.arrays import Rows, as_tensor, cast, inexact, numpy_dtype, our_dtype, promoted

__all__ = ["rows"]

rows = Rows()


def _like(make):
    def like(a, /, dtype=None, order="K", subok=True, shape=None, *, device=None):
        a = as_tensor(a)
        shape = tuple(a.shape) if shape is None else shape
        return getattr(a, make)(shape, dtype=a.dtype if dtype is None else our_dtype(dtype))
    return like


@rows
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    a = as_tensor(a)
    dtype = a.dtype if dtype is None else our_dtype(dtype)
    shape = tuple(a.shape if shape is None else shape if isinstance(shape, (tuple, list)) else (shape,))
    return a.new_empty(shape, dtype=dtype).copy_(cast(as_tensor(fill_value), dtype))


@rows
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    start, stop = promoted(inexact(start), inexact(stop))
    divisor = num - 1 if endpoint else num
    shape = (num,) + (1,) * max(start.ndim, stop.ndim)
    steps = c.arange(num, dtype=start.dtype if not start.is_complex() else start.real.dtype).reshape(shape)
    step = (stop - start) / divisor if divisor > 0 else (stop - start) * float("nan")
    result = start + steps * step if divisor > 0 else start + steps * (stop - start)
    if endpoint and num > 1:
        result = c.cat((result[:-1], stop.expand(result.shape[1:]).unsqueeze(0)))
    result = result.movedim(0, axis) if axis else result
    if dtype is not None:
        dtype = our_dtype(dtype)
        result = cast(result if dtype.is_floating_point or dtype.is_complex else c.floor(result), dtype)
    return (result, step) if retstep else result


@rows
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    result = c.pow(*promoted(base, exponents))
    return result if dtype is None else cast(result, our_dtype(dtype))


@rows
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    start, stop = promoted(inexact(start), inexact(stop))
    sign = c.sign(start) if not start.is_complex() else start / c.abs(start)
    exponents = linspace(c.log(start / sign), c.log(stop / sign), num, endpoint, axis=axis)
    result = sign * c.exp(exponents)
    return result if dtype is None else cast(result, our_dtype(dtype))


@rows
def result_type(*arrays_and_dtypes):
    return np.result_type(*[numpy_dtype(value) if isinstance(value, Tensor) else value for value in arrays_and_dtypes])


rows.update({
    "zeros_like": _like("new_zeros"), "ones_like": _like("new_ones"), "empty_like": _like("new_empty"),
    "common_type": lambda *arrays: np.common_type(*[np.empty(0, numpy_dtype(as_tensor(array))) for array in arrays]),
    "can_cast": lambda from_, to, casting="safe": np.can_cast(numpy_dtype(from_), to, casting),
    "min_scalar_type": lambda a, /: np.min_scalar_type(a.detach().numpy()),
    "iscomplexobj": lambda x: x.is_complex(), "isrealobj": lambda x: not x.is_complex(),
    "shares_memory": lambda a, b, /, max_work=-1: np.shares_memory(
        as_tensor(a).detach().numpy(), as_tensor(b).detach().numpy(), max_work),
    "may_share_memory": lambda a, b, /, max_work=0: np.may_share_memory(
        as_tensor(a).detach().numpy(), as_tensor(b).detach().numpy(), max_work),
})
