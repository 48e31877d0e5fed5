"""Arrays from Python objects: numbers, nested sequences and NumPy arrays."""

from cygrad._core.arrays.array cimport array_t

# Return an array with a copy of nested sequences, numbers, tensors or an ndarray; dtype -1: inferred.
cdef array_t *array_of(object data, int dtype, str operation) except NULL
# Return an ndarray over the memory of `array`; the caller keeps the array alive.
cdef object numpy_view(array_t *array)
# Write a Python number as one element of `dtype`; raise RuntimeError if it does not fit. With `saturate`, a floating
# value too large becomes inf, as in data; otherwise it is an error, as in fill values.
cdef int store_number(char *element, int dtype, object value, bint saturate, str operation) except -1
# Return the dtype of a number by itself: bool, int64, default float or complex, or that of a NumPy scalar; -1 if
# `value` is no number.
cdef int number_dtype(object value)
