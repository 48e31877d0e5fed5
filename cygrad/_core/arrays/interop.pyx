"""Zero-copy conversion between arrays and NumPy's ndarrays."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_over, array_t, release
from cygrad._core.arrays.dtype cimport BOOL, code_of_typenum, dtype_name, itemsize, numpy_typenum
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport storage_foreign, storage_release, storage_t

cnp.import_array()


cdef array_t *array_from_numpy(object ndarray, bint writable) except NULL:
    cdef cnp.ndarray source
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int64_t size, low = 0, high = 0, reach
    cdef int i, code
    cdef storage_t *storage
    cdef array_t *array
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: not an ndarray (got {type(ndarray).__name__}). "
                        f"Use tensor() or asarray() for other data.")
    source = ndarray
    code = code_of_typenum(cnp.PyArray_TYPE(source))
    if code < 0:
        raise TypeError(f"from_numpy: the library has no dtype {source.dtype} (expected bool, an integer of 8 to 64 "
                        f"bits, float16, float32, float64, complex64 or complex128). "
                        f"Convert with astype() first.")
    if not cnp.PyArray_ISNOTSWAPPED(source):
        raise ValueError(f"from_numpy: the elements are byte-swapped (got dtype {source.dtype.str!r}). "
                         f"Convert with array.astype(array.dtype.newbyteorder('=')) first.")
    if not cnp.PyArray_ISALIGNED(source):
        raise ValueError("from_numpy: the elements are not aligned in memory. Copy the array first.")
    if writable and not cnp.PyArray_ISWRITEABLE(source):
        raise ValueError("from_numpy: the array is read-only (expected a writable one). Copy it first.")
    if code == BOOL and source.size and source.view(np.uint8).max() > 1:
        raise ValueError("from_numpy: a bool array holds other bytes than 0 and 1. Copy it: array.view('u1') != 0.")
    size = itemsize(code)
    for i in range(source.ndim):
        shape[i] = source.shape[i]
        strides[i] = source.strides[i] // size
        if source.strides[i] % size != 0 and source.shape[i] > 1 and source.size > 0:
            raise ValueError(f"from_numpy: a stride is no multiple of the element size (got strides "
                             f"{ndarray.strides}, element size {size}). Copy the array first.")
        reach = (shape[i] - 1) * strides[i] if shape[i] > 0 else 0
        if reach < 0:
            low += reach
        else:
            high += reach
    if source.size == 0:
        # NumPy's strides are 0 then; ours are not.
        reach = 1
        for i in range(source.ndim - 1, -1, -1):
            strides[i] = reach
            reach *= shape[i] if shape[i] > 1 else 1
        low = high = 0
    # The storage spans exactly the bytes that the array reaches; negative strides reach before its data.
    storage = storage_foreign(cnp.PyArray_BYTES(source) + low * size,
                              (high - low + 1) * size if source.size else 0, source,
                              cnp.PyArray_ISWRITEABLE(source))
    if storage == NULL:
        check(MEMORY_ERROR)
    array = array_over(storage, code, source.ndim, shape, strides, -low)
    if array == NULL:
        storage_release(storage)
        check(MEMORY_ERROR)
    return array


cdef object numpy_from_array(array_t *array, object owner):
    """An ndarray over the array's memory; `owner` keeps that alive and becomes its `base`."""
    cdef cnp.npy_intp[MAX_DIMS] shape
    cdef cnp.npy_intp[MAX_DIMS] strides
    cdef int64_t size = itemsize(array.dtype)
    cdef int flags = cnp.NPY_ARRAY_ALIGNED
    cdef int i
    cdef cnp.ndarray result
    if array.storage == NULL:
        raise RuntimeError("numpy: the array has no memory, only a shape and a dtype")
    if numpy_typenum(array.dtype) < 0:
        raise TypeError(f"numpy: NumPy has no dtype {dtype_name(array.dtype).decode()}. Convert with float() or to() "
                        "first.")
    if array.storage.writable:
        flags |= cnp.NPY_ARRAY_WRITEABLE
    for i in range(array.ndim):
        shape[i] = array.shape[i]
        strides[i] = array.strides[i] * size
    result = cnp.PyArray_New(np.ndarray, array.ndim, shape, numpy_typenum(array.dtype), strides,
                             array.data, 0, flags, None)
    cnp.PyArray_UpdateFlags(result, cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS)
    cnp.set_array_base(result, owner)
    return result


cdef class ArrayOwner:
    """Owner of an array_t, for an ndarray over its memory."""
    cdef array_t *array

    def __dealloc__(self):
        release(self.array)


cdef object owned_ndarray(array_t *array):
    owner = ArrayOwner()
    owner.array = array
    return numpy_from_array(array, owner)
