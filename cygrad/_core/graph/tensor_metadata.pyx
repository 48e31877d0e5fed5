"""Metadata of a tensor: sizes, strides, memory, version. Methods and properties of Tensor."""

import math

from libc.stdint cimport int64_t
from cygrad._core.arrays.dtype cimport is_complex, is_floating, itemsize
from cygrad._core.graph.meta cimport check_elements, is_meta, without_elements
from cygrad._core.graph.override cimport is_entry
from cygrad._core.graph.tensor cimport Tensor, data_escapes
from cygrad._core.memory.atomic cimport atomic_load

from cygrad._core.arrays.placement import CPU, MEMORY_FORMATS, META, STRIDED

_contiguous = MEMORY_FORMATS["contiguous_format"]
_CHANNELS_LAST = {MEMORY_FORMATS["channels_last"]: 4, MEMORY_FORMATS["channels_last_3d"]: 5}


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
    """Strides in elements as a tuple, or that of dimension `dim`."""
    cdef int i
    if is_meta(self.array):            # a meta tensor shows the strides of an ordinary one
        strides = [math.prod([max(n, 1) for n in self.shape[i + 1:]]) for i in range(self.array.ndim)]
        return tuple(strides) if dim is None else strides[_dimension(self, dim, "stride")]
    if dim is None:
        return tuple([self.array.strides[i] for i in range(self.array.ndim)])
    return self.array.strides[_dimension(self, dim, "stride")]


def storage_offset(Tensor self not None):
    """Offset of the first element in the storage, in elements."""
    return (self.array.data - self.array.storage.data) // itemsize(self.array.dtype)


def _storage_nbytes(Tensor self not None):
    """Bytes of the storage."""
    return self.array.storage.nbytes


def data_ptr(Tensor self not None):
    """Address of the first element."""
    data_escapes()                          # code that has the address may write there
    return 0 if is_meta(self.array) else <size_t>self.array.data


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


def is_contiguous(Tensor self not None, memory_format=_contiguous):
    """Whether the tensor is contiguous, in row-major order or in a memory format."""
    if memory_format is _contiguous:
        return bool(self.array.contiguous) or is_meta(self.array)
    if memory_format not in _CHANNELS_LAST:
        raise RuntimeError(f"is_contiguous: unsupported memory format (got {memory_format!r}, expected "
                           "contiguous_format, channels_last or channels_last_3d).")
    if self.array.ndim != _CHANNELS_LAST[memory_format]:
        return False
    return bool(self.detach().permute((0, *range(2, self.array.ndim), 1)).is_contiguous())


def device(Tensor self not None):
    """The device of the tensor."""
    return META if is_meta(self.array) else CPU


def has_no_elements(Tensor self not None):
    """Whether the tensor is on the ``meta`` device."""
    return bool(is_meta(self.array))


def placed(Tensor self not None, bint meta):
    """Return the tensor itself, or one on the meta device; a meta tensor cannot be copied to the CPU."""
    if not meta:
        if not is_entry(self):
            check_elements(self.array, "to")
        return self
    cdef Tensor shadow = without_elements(self)
    return shadow if shadow is self or not self.requires_grad else shadow.requires_grad_()


def is_floating_point(Tensor self not None):
    """Whether the dtype is float32 or float64."""
    return bool(is_floating(self.array.dtype))


def has_complex_elements(Tensor self not None):
    """Whether the dtype is complex64 or complex128."""
    return bool(is_complex(self.array.dtype))


def _version(Tensor self not None):
    """The version: number of in-place operations on this memory."""
    if self.array.version == NULL:
        raise RuntimeError("_version: inference tensors do not track versions.")
    return atomic_load(&self.array.version.value)


def _base(Tensor self not None):
    """The tensor that this one is a view of, or None."""
    return self.base


def _is_view(Tensor self not None):
    """Whether this tensor is a view of another one."""
    return self.base is not None


def is_inference(Tensor self not None):
    """Whether the tensor was created in inference mode."""
    return self.array.version == NULL


def _get_device(Tensor self not None):
    """The index of the device: -1 for the CPU."""
    return -1


METHODS = {
    "size": size,
    "stride": stride,
    "storage_offset": storage_offset,
    "_storage_nbytes": _storage_nbytes,
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
    "device": property(device),
    "is_meta": property(has_no_elements),
    "layout": STRIDED,
    "is_cpu": property(lambda self: not has_no_elements(self), doc="Whether the elements are in the CPU's memory."),
    "get_device": _get_device,
    **dict.fromkeys(("is_cuda", "is_hpu", "is_ipu", "is_maia", "is_mkldnn", "is_mps", "is_mtia", "is_nested",
                     "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"), False),
}
