"""
PyTorch's legacy tensor types such as ``FloatTensor``.

They create tensors of their dtype, and ``isinstance`` checks the dtype.
"""

from cygrad._core.arrays import dtype as dtypes
from cygrad._core.arrays.dtype import library_name
from cygrad._core.creation.creation import constructed
from cygrad._core.graph.tensor import Tensor
from cygrad.composite.dtypes import TENSOR_TYPES

__all__ = list(TENSOR_TYPES)


class TensorType(type):
    """Metaclass of the legacy types, which have no instances."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args, **options):
        return constructed(cls.dtype, args, options, cls.__name__)

    def __repr__(cls):
        return f"<class '{library_name()}.{cls.__name__}'>"


for _name, _dtype in TENSOR_TYPES.items():
    globals()[_name] = TensorType(_name, (), {
        "dtype": getattr(dtypes, _dtype), "is_cuda": False, "__module__": __name__,
        "__doc__": f"Makes tensors of {_dtype}: of sizes, or of data."})
