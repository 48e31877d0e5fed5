"""Arrays and NumPy's ndarrays: each seen as the other without a copy; and kernels called from Python."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memset
from cygrad._core.arrays.array cimport MAX_DIMS, array_over, array_t, release, retain
from cygrad._core.arrays.dtype cimport BOOL, code_of_typenum, dtype, dtype_name, itemsize, numpy_typenum
from cygrad._core.arrays.value cimport (
    ARRAY, ARRAYS, BOOLEAN, COMPLEX, DTYPE, INTEGER, INTEGERS, NOTHING, REAL, TEXT,
    clear, find_kernel, kernel_t, set_array, set_arrays, set_integers, value_t)
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.memory.storage cimport storage_foreign, storage_release, storage_t

cnp.import_array()

cdef enum:
    MAX_VALUES = 32       # arguments or results of a kernel


cdef door_t _door = NULL


cdef void set_door(door_t door) noexcept:
    global _door
    _door = door


cdef void pass_door() noexcept:
    if _door != NULL:
        _door()


cdef array_t *array_from_numpy(object ndarray, bint writable) except NULL:
    """An array over the memory of an ndarray, which it keeps alive."""
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
    pass_door()
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
        # NumPy's strides are 0 then; those of an array made here are not.
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
    pass_door()
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


cdef object owned_ndarray(array_t *array):
    """An ndarray over the memory of an array, which it takes over."""
    owner = ArrayOwner()
    owner.array = array
    return numpy_from_array(array, owner)


# ---- kernels called from Python

cdef class ArrayOwner:
    """Keeps an array_t alive for an ndarray over its memory."""
    cdef array_t *array

    def __dealloc__(self):
        release(self.array)


cdef list _interned = []      # TEXT values point into these bytes objects


cdef int box(object argument, value_t *value) except -1:
    """A Python argument as a value_t; see call_kernel."""
    cdef int i
    cdef cnp.ndarray integers
    value.kind = NOTHING
    if argument is None:
        return 0
    if isinstance(argument, np.ndarray):
        set_array(value, array_from_numpy(argument, False))
    elif isinstance(argument, (bool, np.bool_)):
        value.kind, value.of.integer = BOOLEAN, bool(argument)
    elif isinstance(argument, dtype):
        value.kind, value.of.integer = DTYPE, (<dtype>argument).code
    elif isinstance(argument, (int, np.integer)):
        value.kind, value.of.integer = INTEGER, argument
    elif isinstance(argument, (float, np.floating)):
        value.kind, value.of.real = REAL, argument
    elif isinstance(argument, (complex, np.complexfloating)):
        value.kind, value.of.real, value.imag = COMPLEX, argument.real, argument.imag
    elif isinstance(argument, str):
        text = argument.encode()
        if text not in _interned:
            _interned.append(text)
        value.kind, value.of.text = TEXT, <bytes>_interned[_interned.index(text)]
    elif isinstance(argument, (tuple, list)):
        if any(isinstance(entry, np.ndarray) for entry in argument):
            check(set_arrays(value, len(argument)))
            for i, entry in enumerate(argument):
                if entry is not None:
                    value.of.arrays[i] = array_from_numpy(entry, False)
        else:
            integers = np.array(argument, dtype=np.int64).reshape(-1)
            check(set_integers(value, <int>integers.size, <int64_t *>cnp.PyArray_DATA(integers)))
    else:
        raise TypeError(f"call_kernel: cannot pass a {type(argument).__name__}")
    return 0


cdef object unbox(value_t *value):
    """A result as a Python object; arrays become ndarrays of their own."""
    cdef int i
    if value.kind == NOTHING:
        return None
    if value.kind == ARRAY:
        return copied(value.of.array)
    if value.kind == ARRAYS:
        return [copied(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    if value.kind == BOOLEAN:
        return value.of.integer != 0
    if value.kind == REAL:
        return value.of.real
    if value.kind == COMPLEX:
        return complex(value.of.real, value.imag)
    if value.kind == INTEGERS:
        return tuple([value.of.integers[i] for i in range(value.count)])
    if value.kind == TEXT:
        return value.of.text.decode()
    return value.of.integer


cdef object copied(array_t *array):
    """A copy as an ndarray with the array's own strides order."""
    owner = ArrayOwner()
    owner.array = retain(array)
    return np.array(numpy_from_array(array, owner))


def call_kernel(str name, *arguments, raw=False):
    """
    Run a kernel on Python arguments: how tests reach kernels before and below the tensors.

    Import the module that registers the kernel first: ``import cygrad._core.kernels.linalg.products`` and then
    ``call_kernel("mm", a, b)[0]``. The kernel runs without the GIL, as it does for tensors.

    Parameters
    ----------
    name : str
        The name that the kernel was registered under.
    *arguments
        ndarray -> ARRAY (zero-copy, any strides); list or tuple with an ndarray in it -> ARRAYS (None
        for a missing entry); other list or tuple -> INTEGERS; bool, int, float, complex -> the number
        of that kind; None -> NOTHING; str -> TEXT; cygrad dtype -> DTYPE.
    raw : bool, default False
        Return arrays without a copy: ndarrays over the memory of the results, to see views.

    Returns
    -------
    list
        The results up to the last one that is not NOTHING.

    Raises
    ------
    KeyError
        If there is no such kernel.
    RuntimeError, TypeError, ValueError, IndexError, MemoryError, NotImplementedError
        What the kernel reports.
    """
    cdef value_t[MAX_VALUES] values
    cdef value_t[MAX_VALUES] results
    cdef kernel_t kernel = find_kernel(name)
    cdef int status, i, n = len(arguments)
    if kernel == NULL:
        raise KeyError(f"call_kernel: no kernel '{name}' is registered; is its module imported?")
    if n > MAX_VALUES:
        raise TypeError(f"call_kernel: too many arguments (got {n}, expected at most {MAX_VALUES})")
    memset(values, 0, sizeof(values))
    memset(results, 0, sizeof(results))
    try:
        for i in range(n):
            box(arguments[i], &values[i])
        with nogil:
            status = kernel(values, results)
        check(status)
        n = MAX_VALUES
        while n > 0 and results[n - 1].kind == NOTHING:
            n -= 1
        return [unbox_raw(&results[i]) if raw else unbox(&results[i]) for i in range(n)]
    finally:
        for i in range(MAX_VALUES):
            clear(&values[i])
            clear(&results[i])


cdef object unbox_raw(value_t *value):
    """As unbox, but arrays share the memory of the results."""
    cdef int i
    if value.kind == ARRAY:
        return shared(value.of.array)
    if value.kind == ARRAYS:
        return [shared(value.of.arrays[i]) if value.of.arrays[i] != NULL else None
                for i in range(value.count)]
    return unbox(value)


cdef object shared(array_t *array):
    """An ndarray over the memory of an array."""
    return owned_ndarray(retain(array))
