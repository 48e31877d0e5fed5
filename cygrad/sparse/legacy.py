"""Constructors of sparse tensors by their type, as ``sparse.FloatTensor``."""

import contextlib

import cygrad
from cygrad.sparse.factories import sparse_coo_tensor
from cygrad.sparse.tensor import SparseTensor

__all__ = ["ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "ShortTensor",
           "check_sparse_tensor_invariants"]


class _OfDtype(type):
    """Metaclass whose `isinstance` compares dtypes."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, SparseTensor) and instance.dtype is cls._dtype


def _type(name, dtype):
    def new(cls, *args, **options):
        if not args:
            args = (0,)
        if isinstance(args[0], int):
            return sparse_coo_tensor(args, dtype=dtype)
        if len(args) == 1 and not hasattr(args[0], "ndim"):
            return sparse_coo_tensor(args[0], dtype=dtype)
        return sparse_coo_tensor(*args, dtype=dtype)
    doc = f"""Sparse tensors of {dtype.name}.

    Examples
    --------
    >>> cygrad.sparse.{name}(2, 3).dtype
    {dtype}
    """
    return _OfDtype(name, (), {"__new__": new, "_dtype": dtype, "__doc__": doc, "__module__": __name__})


FloatTensor, DoubleTensor = _type("FloatTensor", cygrad.float32), _type("DoubleTensor", cygrad.float64)
LongTensor, IntTensor = _type("LongTensor", cygrad.int64), _type("IntTensor", cygrad.int32)
ShortTensor, CharTensor = _type("ShortTensor", cygrad.int16), _type("CharTensor", cygrad.int8)
ByteTensor = _type("ByteTensor", cygrad.uint8)


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """Accepted and ignored: indices are always checked.

    Examples
    --------
    >>> cygrad.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable=True):
        pass

    @staticmethod
    def is_enabled():
        """Return True."""
        return True

    enable = disable = staticmethod(lambda: None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
