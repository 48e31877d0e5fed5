"""Tensors from sizes, numbers, sequences and NumPy arrays."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.tensor cimport Tensor

# A new contiguous Tensor of the shape given as a tuple/list/int Python object; `meta`: without memory.
cdef Tensor empty_tensor(object size, int dtype, bint meta, str operation)
cdef Tensor full_tensor(object size, object value, int dtype, bint meta, str operation)
# A Tensor (copy) of nested sequences, numbers, ndarrays, tensors; dtype -1: inferred as PyTorch does.
cdef Tensor tensor_from(object data, int dtype, str operation)

# Sizes given as a Python object, or as the tuple of varargs of which the only one may be a tuple; -> ndim.
cdef int read_sizes(object size, int64_t *shape, str operation) except -1
# The bytes of one element of `dtype`, from a number, a NumPy scalar or a 0-dim tensor.
cdef int read_element(object value, int dtype, char *element, str operation) except -1
# ... and the plain Python number; TypeError for anything else.
cdef object plain_number(object value, str operation)
# Write one element everywhere in a contiguous array.
cdef void fill_array(array_t *array, const char *element) noexcept nogil
# The code of a dtype argument, or the default if it is None.
cdef int dtype_or(object dtype, int default, str operation) except? -1
# Refuse devices, layouts and memory that we do not have; 1 for tensors without memory (device meta), else 0.
cdef int check_place(object device, object layout, object pin_memory, str operation) except -1
# Make a new tensor require grad if asked to; `meta`: one of its shape without memory.
cdef object finish(Tensor result, bint needs_grad, bint meta)
