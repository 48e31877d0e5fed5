"""What a tensor says of itself: sizes, strides, memory, version. Methods and properties of Tensor."""

from libc.stdint cimport int64_t
from cygrad._core.atomic cimport atomic_load
from cygrad._core.dtype cimport is_complex, is_floating, itemsize
from cygrad._core.tensor cimport Tensor


cdef int _dimension(Tensor tensor, object dim, str operation) except -1:
    cdef int64_t value = dim, n = tensor.array.ndim
    if not -max(n, 1) <= value < max(n, 1) or n == 0:
        raise IndexError(f"{operation}: dimension out of range (got {value}, expected to be in "
                         f"[{-max(n, 1)}, {max(n, 1) - 1}]).")
    return <int>(value if value >= 0 else value + n)


def size(Tensor self not None, dim=None):
    """Sizes of the dimensions as a tuple, or the size of dimension `dim`."""
    if dim is None:
        return self.shape
    return self.array.shape[_dimension(self, dim, "size")]


def stride(Tensor self not None, dim=None):
    """Steps between neighbours in each dimension, in elements; or the one of dimension `dim`."""
    cdef int i
    if dim is None:
        return tuple([self.array.strides[i] for i in range(self.array.ndim)])
    return self.array.strides[_dimension(self, dim, "stride")]


def storage_offset(Tensor self not None):
    """Where the first element lies in the storage, in elements."""
    return (self.array.data - self.array.storage.data) // itemsize(self.array.dtype)


def data_ptr(Tensor self not None):
    """Address of the first element."""
    return <size_t>self.array.data


def dim(Tensor self not None):
    """Number of dimensions."""
    return self.array.ndim


def numel(Tensor self not None):
    """Number of elements."""
    return self.array.size


def element_size(Tensor self not None):
    """Bytes per element."""
    return itemsize(self.array.dtype)


def nbytes(Tensor self not None):
    """Bytes of all elements."""
    return self.array.size * itemsize(self.array.dtype)


def is_contiguous(Tensor self not None):
    """Whether the elements lie in row-major order without gaps."""
    return bool(self.array.contiguous)


def is_floating_point(Tensor self not None):
    """Whether the dtype is float32 or float64."""
    return bool(is_floating(self.array.dtype))


def has_complex_elements(Tensor self not None):
    """Whether the dtype is complex64 or complex128."""
    return bool(is_complex(self.array.dtype))


def _version(Tensor self not None):
    """How many times this memory was changed in place."""
    if self.array.version == NULL:
        raise RuntimeError("_version: inference tensors do not track versions.")
    return atomic_load(&self.array.version.value)


def _base(Tensor self not None):
    """The tensor that this one is a view of, or None."""
    return self.base


def _is_view(Tensor self not None):
    """Whether this tensor shares the memory of another one and knows it."""
    return self.base is not None


def is_inference(Tensor self not None):
    """Whether the tensor was made in inference mode."""
    return self.array.version == NULL


METHODS = {
    "size": size,
    "stride": stride,
    "storage_offset": storage_offset,
    "data_ptr": data_ptr,
    "dim": dim,
    "numel": numel,
    "itemsize": property(element_size),
    "element_size": element_size,
    "nbytes": property(nbytes),
    "is_contiguous": is_contiguous,
    "is_floating_point": is_floating_point,
    "is_complex": has_complex_elements,
    "_version": property(_version),
    "_base": property(_base),
    "_is_view": _is_view,
    "is_inference": is_inference,
    "nelement": numel,
}
