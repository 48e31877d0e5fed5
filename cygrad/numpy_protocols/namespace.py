"""Contents of `cygrad.numpy`: NumPy functions that accept lists of Tensors, and those that NumPy does not dispatch."""

import functools
import sys

import numpy as np

from cygrad.numpy_protocols.arrays import as_tensor, cast, holds_tensors, lead, our_dtype
from cygrad.numpy_protocols.dispatch import FUNCTIONS, array_function

__all__ = ["OWN", "namespace"]
_DISPATCHED = type(np.concatenate)


def _on_tensors(function):
    """Return a NumPy function that accepts lists of Tensors, too."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        if holds_tensors(args) or holds_tensors(tuple(kwargs.values())):
            return array_function(None, function, (), args, kwargs)
        return function(*args, **kwargs)
    return call


def namespace(name, home):
    """Return ``__getattr__`` and ``__dir__`` of a module with the names of a NumPy module."""
    def get(attribute):
        if attribute in ("__path__", "__wrapped__") or not hasattr(home, attribute):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute)
        found = getattr(home, attribute)
        if type(found) is _DISPATCHED or (callable(found) and not isinstance(found, type) and found in FUNCTIONS):
            found = _on_tensors(found)
        setattr(sys.modules[name], attribute, found)
        return found

    return get, lambda: sorted({*getattr(home, "__all__", dir(home))})


def array(object, dtype=None, *, copy=True, ndmin=0, **options):
    """Return an array, or of a Tensor or nested lists that hold some a Tensor with their history."""
    if not holds_tensors(object):
        return np.array(object, dtype, copy=copy, ndmin=ndmin, **options)
    made = cast(as_tensor(object), None if dtype is None else our_dtype(dtype))
    return lead(made.clone() if copy and made is object else made, ndmin)


def _unchanged(name):
    def convert(a, dtype=None, *args, **options):
        if holds_tensors(a):
            return array(a, dtype, copy=options.get("copy"))
        return getattr(np, name)(a, dtype, *args, **options)
    return functools.wraps(getattr(np, name))(convert)


def full(shape, fill_value, dtype=None, **options):
    """Return an array of one value, or a Tensor if that is one."""
    if not holds_tensors(fill_value):
        return np.full(shape, fill_value, dtype, **options)
    return array_function(None, np.full_like, (), (fill_value, fill_value, dtype), {"shape": shape})


asarray, asanyarray, ascontiguousarray = map(_unchanged, ("asarray", "asanyarray", "ascontiguousarray"))


class _Joined:
    """``r_`` and ``c_``: concatenate the items in brackets along an axis."""

    def __init__(self, plain, column):
        self.plain, self.column = plain, column

    def __getitem__(self, parts):
        if not holds_tensors(parts):
            return self.plain[parts]
        found = []
        for part in parts if isinstance(parts, tuple) else (parts,):
            part = as_tensor(self.plain[part] if isinstance(part, slice) else part)
            part = part.reshape(-1) if part.ndim == 0 else part
            found.append(part.unsqueeze(-1) if self.column and part.ndim == 1 else part)
        return array_function(None, np.concatenate, (), (found,), {"axis": -1 if self.column else 0})


r_, c_ = _Joined(np.r_, False), _Joined(np.c_, True)


def vectorize(pyfunc, *args, **options):
    """Return the function that calls another with each element; on Tensors the results are stacked."""
    plain = np.vectorize(pyfunc, *args, **options)

    @functools.wraps(pyfunc)
    def call(*given, **named):
        if args or options or named or not holds_tensors(given):
            return plain(*given, **named)
        given = array_function(None, np.broadcast_arrays, (), given, {})
        results = [pyfunc(*elements) for elements in zip(*[part.reshape(-1) for part in given], strict=True)]
        return array(results).reshape(given[0].shape)

    return call


OWN = {"array": array, "asarray": asarray, "asanyarray": asanyarray, "ascontiguousarray": ascontiguousarray,
       "full": full, "r_": r_, "c_": c_, "vectorize": vectorize}
