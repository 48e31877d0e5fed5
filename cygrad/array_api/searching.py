"""The standard's functions that search, sort, select, and compare sets."""

import cygrad as c
from cygrad.array_api.naming import finished
from cygrad.numpy_protocols import reductions, selection
from cygrad.numpy_protocols.arrays import axes, promoted, ranked, unranked

__all__ = ["FUNCTIONS"]

_reductions, _selection = reductions.rows, selection.rows


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """Return the elements in order."""
    return unranked(c.sort(ranked(x), axes(x, axis)[0], descending, stable)[0], x.dtype)


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """Return the indices that sort an array."""
    return c.sort(ranked(x), axes(x, axis)[0], descending, stable)[1]


def _unique(name):
    row = _selection[name]
    return lambda x, /: row(x)


def take(x, indices, /, *, axis=None):
    """Return elements along an axis."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: axis must be given for more than one dimension (got {x.ndim}).")
    return selection.take(x, indices, axis or 0)


def nonzero(x, /):
    """Return the indices of nonzero elements, an array for each axis."""
    if not x.ndim:
        raise ValueError("nonzero: expected at least one dimension (got a 0-dim array).")
    return selection.nonzero(x)


FUNCTIONS = finished("cygrad.array_api", {
    "argmax": lambda x, /, *, axis=None, keepdims=False: reductions.argmax(x, axis, keepdims=keepdims),
    "argmin": lambda x, /, *, axis=None, keepdims=False: reductions.argmin(x, axis, keepdims=keepdims),
    "argsort": argsort, "sort": sort, "take": take, "nonzero": nonzero,
    "count_nonzero": lambda x, /, *, axis=None, keepdims=False: reductions.count_nonzero(x, axis, keepdims=keepdims),
    "searchsorted": lambda x1, x2, /, *, side="left", sorter=None: selection.searchsorted(x1, x2, side, sorter),
    "where": lambda condition, x1, x2, /: c.where(condition, *promoted(x1, x2)),
    "take_along_axis": lambda x, indices, /, *, axis=-1: selection.take_along_axis(x, indices, axis),
    "isin": lambda x1, x2, /, *, invert=False: _selection["isin"](x1, x2, invert=invert),
    **{name: _unique(name) for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")}})
