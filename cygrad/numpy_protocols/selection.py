"""NumPy's functions that select, sort, search and count."""

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

import cygrad as c
from cygrad import Tensor
from cygrad.numpy_protocols.arrays import Rows, as_tensor, cast, inexact, promoted, ranked, unranked
from cygrad.numpy_protocols.creation import linspace
from cygrad.numpy_protocols.joining import concatenate

__all__ = ["rows"]

rows = Rows()


def _along(a, axis):
    """Return the Tensor and a number for the axis; None flattens."""
    a = as_tensor(a)
    return (a.reshape(-1), 0) if axis is None else (a, normalize_axis_index(axis, a.ndim))


@rows
def where(condition, *choices):
    condition = as_tensor(condition)
    if not choices:
        return nonzero(condition)
    return c.where(condition.to(c.bool), *promoted(*choices))


@rows
def nonzero(a):
    return tuple(c.nonzero(as_tensor(a), as_tuple=True))


@rows
def take(a, indices, axis=None, mode="raise"):
    a, axis = _along(a, axis)
    indices, size = as_tensor(indices), a.shape[axis]
    if mode == "raise":
        if indices.numel() and not (int(indices.min()) >= -size and int(indices.max()) < size):
            raise IndexError(f"take: indices out of range (expected in [{-size}, {size - 1}]).")
        indices = c.where(indices < 0, indices + size, indices)
    else:
        indices = c.remainder(indices, size) if mode == "wrap" else c.clamp(indices, 0, size - 1)
    shape = tuple(a.shape)
    return c.index_select(a, axis, indices.reshape(-1).to(c.int64)).reshape(
        shape[:axis] + tuple(indices.shape) + shape[axis + 1:])


@rows
def take_along_axis(arr, indices, axis=-1):
    arr, axis = _along(arr, axis)
    indices, size = as_tensor(indices).to(c.int64), arr.shape[axis]
    return c.take_along_dim(arr, c.where(indices < 0, indices + size, indices), axis)


@rows
def choose(a, choices, mode="raise"):
    a = as_tensor(a)
    choices = c.stack(c.broadcast_tensors(*promoted(*choices)))
    a = a.expand(c.broadcast_shapes(a.shape, choices.shape[1:])).to(c.int64)
    count = choices.shape[0]
    if mode == "raise" and a.numel() and not (int(a.min()) >= 0 and int(a.max()) < count):
        raise ValueError(f"choose: choices are counted from 0 to {count - 1} (got {int(a.min())} to {int(a.max())}).")
    a = c.remainder(a, count) if mode == "wrap" else c.clamp(a, 0, count - 1)
    return c.gather(choices.expand((count, *a.shape)), 0, a.unsqueeze(0)).squeeze(0)


@rows
def compress(condition, a, axis=None):
    a, axis = _along(a, axis)
    return c.index_select(a, axis, as_tensor(np.flatnonzero(np.asarray(condition))))


@rows
def extract(condition, arr):
    return as_tensor(arr).reshape(-1)[as_tensor(condition).to(c.bool).reshape(-1)]


@rows
def select(condlist, choicelist, default=0):
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = c.where(as_tensor(condition), choice, result)
    return result


@rows
def piecewise(x, condlist, funclist, *args, **kw):
    x = as_tensor(x)
    if isinstance(condlist, Tensor):
        condlist = [condlist] if condlist.ndim == x.ndim else list(condlist.unbind(0))
    elif not isinstance(condlist, (list, tuple)) or (condlist and isinstance(condlist[0], (bool, np.bool_))):
        condlist = [condlist]
    conditions = [as_tensor(condition).to(c.bool) for condition in condlist]
    if len(funclist) == len(conditions) + 1:
        none = c.ones_like(conditions[0])
        for condition in conditions:
            none = none & ~condition
        conditions.append(none)
    if len(funclist) != len(conditions):
        raise ValueError("piecewise: expected one function for each condition, and optionally a default (got "
                         f"{len(conditions)} conditions and {len(funclist)} functions).")
    result = c.zeros_like(x, requires_grad=False)
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(x[condition], *args, **kw) if callable(function) else function
        result = result.index_put((condition,), cast(as_tensor(value), x.dtype))
    return result


# ---- sorting

def _order_only(kind, order):
    if order is not None:
        raise TypeError("sort: Tensors have no fields (got order).")


@rows
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    _order_only(kind, order)
    a, axis = _along(a, axis)
    return unranked(c.sort(ranked(a), axis, stable=True)[0], a.dtype)


@rows
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    _order_only(kind, order)
    a, axis = _along(a, axis)
    return c.sort(ranked(a), axis, stable=True)[1]


@rows
def lexsort(keys, axis=-1):
    keys = list(keys.unbind(0)) if isinstance(keys, Tensor) else list(map(as_tensor, keys))
    order = argsort(keys[0], axis)
    for key in keys[1:]:
        order = c.take_along_dim(order, argsort(c.take_along_dim(key, order, axis), axis), axis)
    return order


@rows
def searchsorted(a, v, side="left", sorter=None):
    a, v = promoted(a, v)
    found = c.searchsorted(ranked(a), ranked(v.reshape(-1)), side=side,
                           sorter=None if sorter is None else as_tensor(sorter))
    return found.reshape(v.shape)


@rows
def digitize(x, bins, right=False):
    bins = as_tensor(bins)
    if bins.numel() > 1 and bool(bins[0] > bins[-1]):
        return bins.numel() - searchsorted(bins.flip(0), x, "left" if not right else "right")
    return searchsorted(bins, x, "left" if right else "right")


# ---- counting

@rows
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True,
           sorted=True):
    ar = as_tensor(ar)
    if axis is not None and not (return_index or return_inverse or return_counts):
        return c.unique(ar, dim=axis)
    flat = ar.detach().numpy()
    found = np.unique(flat, True, True, True, axis, equal_nan=equal_nan)
    first = as_tensor(found[1])
    values = ar.reshape(-1)[first] if axis is None else c.index_select(ar, axis, first)
    results = [values, *[as_tensor(part) for part, wanted in zip(
        found[1:], (return_index, return_inverse, return_counts), strict=True) if wanted]]
    return results[0] if len(results) == 1 else tuple(results)


def _unique_results(name, *fields):
    def row(x, /):
        options = {f"return_{field}": True for field in fields}
        return getattr(np.lib._arraysetops_impl, name)(*unique(x, equal_nan=False, **options))
    return row


def _totals(place, weights, size):
    """Return the sums of the weights in each bin, or the counts."""
    if weights is None:
        return c.bincount(place, None, size)
    size = max(size, int(place.max()) + 1 if place.numel() else 0)
    return c.zeros(size, dtype=weights.dtype).index_add(0, place.to(c.int64), weights)


@rows
def bincount(x, /, weights=None, minlength=0):
    return _totals(as_tensor(x), None if weights is None else cast(as_tensor(weights), c.float64), minlength)


@rows
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    if not isinstance(bins, int):
        return as_tensor(np.histogram_bin_edges(a.detach().numpy(), bins, range) if isinstance(bins, str) else bins)
    if range is None and a.numel():
        low, high = inexact(a.min()), inexact(a.max())
    else:
        low, high = map(inexact, (0.0, 1.0) if range is None else range)
    if bool(low == high):
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1)


@rows
def histogram(a, bins=10, range=None, density=None, weights=None):
    a = as_tensor(a).reshape(-1)
    edges = histogram_bin_edges(a, bins, range)
    last = edges.numel() - 1
    with c.no_grad():
        inner, values = promoted(edges, a)
        place = searchsorted(inner, values, "right") - 1
        place = c.where(values == inner[-1], last - 1, place)
        inside = (place >= 0) & (place < last)
    counts = _totals(place[inside], None if weights is None else inexact(weights).reshape(-1)[inside], last)
    if density:
        counts = counts / c.diff(cast(edges, c.float64)) / c.sum(counts)
    return counts, edges


@rows
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    return as_tensor(np.ravel_multi_index(tuple(index.detach().numpy() if isinstance(index, Tensor) else index
                                                for index in multi_index), dims, mode, order))


rows.update({
    "argwhere": lambda a: c.argwhere(as_tensor(a)),
    "flatnonzero": lambda a: c.nonzero(as_tensor(a).reshape(-1)).reshape(-1),
    "partition": lambda a, kth, axis=-1, kind="introselect", order=None: sort(a, axis, order=order),
    "argpartition": lambda a, kth, axis=-1, kind="introselect", order=None: argsort(a, axis, order=order),
    "sort_complex": lambda a: as_tensor(a).to(c.complex128)[as_tensor(np.argsort(as_tensor(a).detach().numpy()))],
    "union1d": lambda ar1, ar2: unique(concatenate((as_tensor(ar1).reshape(-1), as_tensor(ar2).reshape(-1)))),
    "unique_values": lambda x, /: unique(x, equal_nan=False),
    "unique_inverse": _unique_results("UniqueInverseResult", "inverse"),
    "unique_counts": _unique_results("UniqueCountsResult", "counts"),
    "unique_all": _unique_results("UniqueAllResult", "index", "inverse", "counts"),
    "isin": lambda element, test_elements, assume_unique=False, invert=False, *, kind=None: c.isin(
        *promoted(element, test_elements), invert=invert),
    "unravel_index": lambda indices, shape, order="C": tuple(map(as_tensor, np.unravel_index(
        as_tensor(indices).numpy(), shape, order))),
    "diag_indices_from": lambda arr: tuple(map(as_tensor, np.diag_indices(arr.shape[0], arr.ndim))),
    "tril_indices_from": lambda arr, k=0: tuple(map(as_tensor, np.tril_indices(arr.shape[-2], k, arr.shape[-1]))),
    "triu_indices_from": lambda arr, k=0: tuple(map(as_tensor, np.triu_indices(arr.shape[-2], k, arr.shape[-1]))),
    "ix_": lambda *args: tuple(nonzero(index)[0].reshape([-1 if dim == place else 1 for dim in range(len(args))])
                               if index.dtype is c.bool else index.reshape([-1 if dim == place else 1
                                                                            for dim in range(len(args))])
                               for place, index in enumerate(map(as_tensor, args))),
})
