"""Arrays and NumPy's ndarrays: each seen as the other without a copy."""

from cygrad._core.arrays.array cimport array_t

# An array over the ndarray's memory, which keeps the ndarray alive. Refuses, with a TypeError or
# ValueError, what cannot be shared: dtypes we lack, byte-swapped or unaligned elements.
cdef array_t *array_from_numpy(object ndarray, bint writable) except NULL
# An ndarray over the array's memory; `owner` is what keeps that alive, and becomes its `base`.
cdef object numpy_from_array(array_t *array, object owner)
# An ndarray over the memory of an array, whose count it takes over.
cdef object owned_ndarray(array_t *array)
