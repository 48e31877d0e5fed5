"""Zero-copy conversion between arrays and NumPy's ndarrays."""

from cygrad._core.arrays.array cimport array_t

# Return an array over the ndarray's memory, which keeps the ndarray alive. Raises TypeError or ValueError for what
# cannot be shared: unsupported dtypes, byte-swapped or unaligned elements.
cdef array_t *array_from_numpy(object ndarray, bint writable) except NULL
# Return an ndarray over the array's memory; `owner` keeps it alive and becomes its `base`.
cdef object numpy_from_array(array_t *array, object owner)
# Return an ndarray over the memory of an array, whose reference it takes over.
cdef object owned_ndarray(array_t *array)
