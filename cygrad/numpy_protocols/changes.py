"""NumPy's functions that write into their first argument, recording the history of written Tensors."""

import numpy as np

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols.arrays import Rows, as_tensor, cast, has_history, numpy_dtype

__all__ = ["rows"]

rows = Rows()


def _target(name, target, *values):
    """Return the Tensor to modify, over the memory of an ndarray unless that would lose history."""
    if isinstance(target, Tensor):
        return target
    if has_history(values):
        raise TypeError(f"{name}: the values would lose their history in an ndarray. Write into a Tensor, such as "
                        "numpy.zeros_like(tensor).")
    return c.from_numpy(target)


def _write(target, places, values):
    """Write flat values at flat positions, counted in row-major order."""
    where = tuple(map(as_tensor, np.unravel_index(places, tuple(target.shape))))
    target.index_put_(where, cast(values, target.dtype))


def _plain(value):
    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


@rows
def copyto(dst, src, casting="same_kind", where=True):
    target = _target("copyto", dst, src)
    values = as_tensor(src)
    if not np.can_cast(numpy_dtype(values), numpy_dtype(target), casting):
        raise TypeError(f"copyto: cannot cast {numpy_dtype(values)} to {numpy_dtype(target)} with casting {casting!r}.")
    values = cast(values, target.dtype)
    target.copy_(values if where is True else c.where(as_tensor(where), values, target.clone()))


@rows
def put(a, ind, v, mode="raise"):
    target = _target("put", a, v)
    places = np.arange(target.numel()).take(_plain(ind), mode=mode).reshape(-1)
    values = as_tensor(v).reshape(-1)
    if places.size:
        places, chosen = _last(places, np.arange(places.size) % values.numel())
        _write(target, places, values[as_tensor(chosen)])


def _last(places, values):
    """Return each position once, with its last value."""
    unique, first = np.unique(places[::-1], return_index=True)
    return unique, values[::-1][first]


@rows
def put_along_axis(arr, indices, values, axis):
    target = _target("put_along_axis", arr, values)
    places = np.arange(target.numel()).reshape(target.shape)
    indices = _plain(indices)
    places = np.take_along_axis(places.reshape(-1) if axis is None else places, indices, axis)
    spread = np.broadcast_to(np.arange(as_tensor(values).numel()).reshape(as_tensor(values).shape), places.shape)
    places, chosen = _last(places.reshape(-1), spread.reshape(-1))
    _write(target, places, as_tensor(values).reshape(-1)[as_tensor(chosen)])


@rows
def putmask(a, /, mask, values):
    target = _target("putmask", a, values)
    places = np.flatnonzero(_plain(mask))
    values = as_tensor(values).reshape(-1)
    if places.size:
        _write(target, places, values[as_tensor(places % values.numel())])


@rows
def place(arr, mask, vals):
    target = _target("place", arr, vals)
    places = np.flatnonzero(_plain(mask))
    values = as_tensor(vals).reshape(-1)
    if places.size:
        _write(target, places, values[as_tensor(np.arange(places.size) % values.numel())])


@rows
def fill_diagonal(a, val, wrap=False):
    target = _target("fill_diagonal", a, val)
    step = target.shape[1] + 1 if target.ndim == 2 else 1 + int(np.cumprod(tuple(target.shape)[:-1]).sum())
    end = None if target.ndim != 2 or wrap else target.shape[1] ** 2
    places = np.arange(target.numel())[:end:step]
    values = as_tensor(val).reshape(-1)
    if places.size:
        _write(target, places, values[as_tensor(np.arange(places.size) % values.numel())])
