"""Tensors from sizes, numbers, sequences and NumPy arrays."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.tensor cimport Tensor

# ------------------------------------------------------------------------------------------------------------ sequences

# Arrays from Python objects: numbers, nested sequences and NumPy arrays.

# Return an array with a copy of nested sequences, numbers, tensors or an ndarray; dtype -1: inferred.
cdef array_t *array_of(object data, int dtype, str operation) except NULL
# Return an ndarray over the memory of `array`; the caller keeps the array alive.
cdef object ndarray_over(array_t *array)
# Write a Python number as one element of `dtype`; raise RuntimeError if it does not fit. With `saturate`, a floating
# value too large becomes inf, as in data; otherwise it is an error, as in fill values.
cdef int store_number(char *element, int dtype, object value, bint saturate, str operation) except -1
# Return the dtype of a number by itself: bool, int64, default float or complex, or that of a NumPy scalar; -1 if
# `value` is no number.
cdef int number_dtype(object value)

# ------------------------------------------------------------------------------------------------------------- creation

# Return a contiguous Tensor of the shape given as a tuple, list or int; `meta`: without memory.
cdef Tensor empty_tensor(object size, int dtype, bint meta, str operation)
cdef Tensor full_tensor(object size, object value, int dtype, bint meta, str operation)
# Return a Tensor with a copy of nested sequences, numbers, ndarrays or tensors; dtype -1: inferred as PyTorch does.
cdef Tensor tensor_from(object data, int dtype, str operation)

# Read sizes from a Python object, or from varargs whose only item may be a tuple; return ndim.
cdef int read_sizes(object size, int64_t *shape, str operation) except -1
# Return the bytes of one element of `dtype`, from a number, a NumPy scalar or a 0-dim tensor.
cdef int read_element(object value, int dtype, char *element, str operation) except -1
# Return it as a plain Python number; raise TypeError for other objects.
cdef object plain_number(object value, str operation)
# Fill a contiguous array with one element.
cdef void fill_array(array_t *array, const char *element) noexcept nogil
# Return the code of a dtype argument, or the default for None.
cdef int dtype_or(object dtype, int default, str operation) except? -1
# Check device, layout and pin_memory; return 1 for device meta, else 0.
cdef int check_place(object device, object layout, object pin_memory, str operation) except -1
# Return a new tensor, which requires grad on request; `meta`: of that shape without memory.
cdef object finish(Tensor result, bint needs_grad, bint meta)
