"""
Arrays from Python objects: numbers, nested sequences and NumPy arrays.

Nested sequences are traversed twice: first for the shape, along the first items, and the dtype, of all items; then to
write the numbers and detect ragged sequences.
"""

from numpy import asarray as as_ndarray, copyto as copy_into, empty, errstate as numpy_errors, not_equal

cimport cygrad._core.primitives.complex_parts
cimport numpy as cnp
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_CheckExact, PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_Check, PyLong_CheckExact
from cpython.sequence cimport PySequence_Check
from libc.math cimport fabs, isfinite, trunc
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty, array_t, release
from cygrad._core.arrays.dtype cimport (
    BOOL, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, computed_in, default_complex,
    default_float, dtype_code, dtype_name, is_complex, is_floating, is_short, is_unsigned, itemsize, largest,
    numpy_typenum, promote)
from cygrad._core.arrays.interop cimport numpy_from_array, owned_ndarray
from cygrad._core.arrays.value cimport COMPLEX, REAL, value_t
from cygrad._core.elementwise.copying cimport as_copy
from cygrad._core.graph.tensor cimport Tensor, data_escapes, requires_grad
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.primitives.cast cimport number_to_cell
from cygrad._core.graph.user_warnings import warn_user

cnp.import_array()

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int *overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLongMask(object) except? 0


# ---- numbers -------------------------------------------------------------------------------------

cdef int number_dtype(object value):
    if PyFloat_CheckExact(value):
        return default_float()
    if PyBool_Check(value):
        return BOOL
    if PyLong_CheckExact(value):
        return INT64
    if cnp.PyArray_CheckScalar(value):           # before float: numpy.float64 is one, but keeps its dtype
        return dtype_code(value.dtype, "tensor")
    if PyFloat_Check(value):
        return default_float()
    if PyLong_Check(value):
        return INT64
    if PyComplex_Check(value):
        return default_complex()
    return -1


cdef int _overflow(object value, int dtype, str operation) except -1:
    raise RuntimeError(f"{operation}: value cannot be converted to type {dtype_name(dtype).decode()} without "
                       f"overflow (got {value!r}). Choose a wider dtype.")


cdef int64_t _whole(object value, int dtype, str operation) except? -1:
    """Convert `value` to an integer in the range of `dtype`, truncated."""
    cdef double real
    cdef int overflow = 0
    cdef long long result
    cdef int64_t limit
    if PyFloat_Check(value):
        real = PyFloat_AS_DOUBLE(value)
        if not isfinite(real) or not -9223372036854775808.0 <= real < 9223372036854775808.0:
            _overflow(value, dtype, operation)
        result = <long long>trunc(real)
    elif PyComplex_Check(value):
        raise TypeError(f"{operation}: a complex number cannot be stored in a tensor of {dtype_name(dtype).decode()} "
                        f"(got {value!r}). Use .real, or a complex dtype.")
    else:
        result = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow > 0 and dtype == UINT64 and value < 1 << 64:
            return <int64_t>PyLong_AsUnsignedLongLongMask(value)
        if overflow:
            raise ValueError(f"{operation}: integer outside the range of int64 (got {value!r}). Use a float.")
    if itemsize(dtype) == 8:
        return result
    limit = (<int64_t>1 << (8 * itemsize(dtype) - (not is_unsigned(dtype)))) - 1
    # Negative numbers wrap around in unsigned dtypes, as in C.
    if result > limit or result < (-limit if is_unsigned(dtype) else -limit - 1):
        _overflow(value, dtype, operation)
    return result


cdef double _real(object value, int dtype, bint saturate, str operation) except? -1:
    """Convert `value` to a floating number."""
    cdef double result = 0
    if PyComplex_Check(value):
        raise TypeError(f"{operation}: a complex number cannot be stored in a tensor of {dtype_name(dtype).decode()} "
                        f"(got {value!r}). Use .real, or a complex dtype.")
    try:
        result = value
    except OverflowError:
        _overflow(value, dtype, operation)
    if not saturate and isfinite(result) and fabs(result) > largest(dtype):
        _overflow(value, dtype, operation)
    return result


cdef int store_number(char *element, int dtype, object value, bint saturate, str operation) except -1:
    cdef double complex both = 0
    cdef value_t number
    if dtype == FLOAT32:
        (<float *>element)[0] = <float>_real(value, dtype, saturate, operation)
    elif dtype == FLOAT64:
        (<double *>element)[0] = _real(value, dtype, saturate, operation)
    elif dtype == INT64:
        (<int64_t *>element)[0] = _whole(value, dtype, operation)
    elif dtype == BOOL:
        (<uint8_t *>element)[0] = 1 if value else 0
    elif dtype == INT32:
        (<int32_t *>element)[0] = <int32_t>_whole(value, dtype, operation)
    elif dtype == UINT8:
        (<uint8_t *>element)[0] = <uint8_t>_whole(value, dtype, operation)
    elif dtype == INT8:
        (<int8_t *>element)[0] = <int8_t>_whole(value, dtype, operation)
    elif dtype == INT16:
        (<int16_t *>element)[0] = <int16_t>_whole(value, dtype, operation)
    elif dtype == UINT16:
        (<uint16_t *>element)[0] = <uint16_t>_whole(value, dtype, operation)
    elif dtype == UINT32:
        (<uint32_t *>element)[0] = <uint32_t>_whole(value, dtype, operation)
    elif dtype == UINT64:
        (<int64_t *>element)[0] = _whole(value, dtype, operation)
    elif is_floating(dtype):
        number.kind, number.of.real = REAL, _real(value, dtype, saturate, operation)
        number_to_cell(&number, dtype, element)
    else:
        try:
            both = complex(value)
        except OverflowError:
            _overflow(value, dtype, operation)
        if not saturate and isfinite(both.real) and fabs(both.real) > largest(dtype):
            _overflow(value, dtype, operation)
        number.kind, number.of.real, number.imag = COMPLEX, both.real, both.imag
        number_to_cell(&number, dtype, element)
    return 0


# ---- nested sequences ----------------------------------------------------------------------------

cdef object _plain(object value, str operation):
    """Convert an item: tensors of one element and NumPy scalars become Python numbers."""
    cdef Tensor tensor
    if isinstance(value, Tensor):
        tensor = <Tensor>value
        if tensor.array.size != 1:
            raise ValueError(f"{operation}: only one element tensors can be converted to Python scalars (got a "
                             f"tensor of shape {tuple(value.shape)}). Join tensors with stack() or cat().")
        if requires_grad(tensor):
            warn_user(f"{operation}: a tensor that requires grad is copied without its history. "
                      "Use stack() to keep it.")
        return numpy_view(tensor.array).reshape(())[()].item()
    if cnp.PyArray_CheckScalar(value) or (cnp.PyArray_Check(value) and cnp.PyArray_NDIM(value) == 0):
        return value.item()
    return value


cdef bint _is_sequence(object value) except -1:
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (Tensor, str, bytes, dict)) or cnp.PyArray_CheckScalar(value):
        return False
    if cnp.PyArray_Check(value):
        return cnp.PyArray_NDIM(value) > 0
    return PySequence_Check(value) and hasattr(value, "__len__")


cdef int _shape_of(object data, int64_t *shape, str operation) except -1:
    """Read the shape along the first items; -> the number of dimensions."""
    cdef int ndim = 0
    while _is_sequence(data):
        if ndim == MAX_DIMS:
            raise ValueError(f"{operation}: sequences nested too deep (got more than {MAX_DIMS} levels)")
        shape[ndim] = len(data)
        ndim += 1
        if shape[ndim - 1] == 0:
            break
        data = data[0]
    return ndim


cdef int _element_dtype(object value, bint first, str operation) except -1:
    cdef int code = number_dtype(value)
    if code >= 0:
        return code
    if isinstance(value, Tensor):
        return (<Tensor>value).array.dtype
    if cnp.PyArray_Check(value):
        return dtype_code(value.dtype, operation)
    if isinstance(value, (str, bytes)):                    # a str as the first item looks like one more dimension
        raise (ValueError if first and isinstance(value, str) else TypeError)(
            f"{operation}: a string cannot be stored in a tensor (got {value!r}, expected numbers)")
    if hasattr(value, "__index__"):
        return INT64
    if hasattr(value, "__float__"):
        return default_float()
    raise RuntimeError(f"{operation}: could not infer a dtype of {type(value).__name__} (got {value!r}, expected "
                       "numbers, sequences of numbers, arrays or tensors)")


cdef object _unequal_depth(object data, int depth, str operation):
    return TypeError(f"{operation}: nested sequences of unequal depth (got a {type(data).__name__} at dimension "
                     f"{depth}, expected a number like the first entry there)")


cdef int _infer(object data, int depth, int ndim, int found, str operation) except -2:
    """Return the smallest dtype for `found` (-1: none yet) and all items of `data`."""
    cdef int code
    if depth == ndim and _is_sequence(data):
        raise _unequal_depth(data, depth, operation)
    if depth == ndim or not _is_sequence(data) or cnp.PyArray_Check(data):     # an array has one dtype
        code = _element_dtype(data, found < 0, operation)
        return code if found < 0 else promote(found, code)
    PyErr_CheckSignals()
    for item in data:
        if PyFloat_CheckExact(item):
            found = default_float() if found < 0 else promote(found, default_float())
        elif PyLong_CheckExact(item):
            found = INT64 if found < 0 else promote(found, INT64)
        else:
            found = _infer(item, depth + 1, ndim, found, operation)
    return found


cdef char *_write(object data, int depth, int ndim, const int64_t *shape, int dtype, char *target,
                  str operation) except NULL:
    """Write `data` in row-major order; return the address after its last element."""
    cdef int64_t step = itemsize(dtype), written = 0
    if depth == ndim:
        if _is_sequence(data):
            raise _unequal_depth(data, depth, operation)
        store_number(target, dtype, _plain(data, operation), True, operation)
        return target + step
    if not _is_sequence(data):
        raise TypeError(f"{operation}: nested sequences of unequal depth (got {data!r} at dimension {depth}, "
                        f"expected a sequence of length {shape[depth]})")
    if len(data) != shape[depth]:
        raise ValueError(f"{operation}: expected sequence of length {shape[depth]} at dim {depth} (got "
                         f"{len(data)}). Ragged sequences make no tensor: pad them to one length.")
    PyErr_CheckSignals()
    for item in data:
        # Converting an item may run user code, which may change the length of the sequence.
        if written == shape[depth]:
            break
        written += 1
        if dtype == FLOAT32 and depth == ndim - 1 and PyFloat_CheckExact(item):
            (<float *>target)[0] = <float>PyFloat_AS_DOUBLE(item)
            target += step
        elif dtype == INT64 and depth == ndim - 1 and PyLong_CheckExact(item):
            (<int64_t *>target)[0] = _whole(item, dtype, operation)
            target += step
        else:
            target = _write(item, depth + 1, ndim, shape, dtype, target, operation)
    if written != shape[depth] or len(data) != shape[depth]:
        raise ValueError(f"{operation}: a sequence changed its length while it was read (got {len(data)} elements, "
                         f"expected {shape[depth]})")
    return target


cdef array_t *_new(int dtype, int ndim, const int64_t *shape) except NULL:
    cdef array_t *array = array_empty(dtype, ndim, shape)
    if array == NULL:
        check(MEMORY_ERROR)
    return array


cdef array_t *_from_sequence(object data, int dtype, str operation) except NULL:
    cdef int64_t[MAX_DIMS] shape
    cdef array_t *array
    cdef int ndim = _shape_of(data, shape, operation)
    if dtype < 0:
        dtype = _infer(data, 0, ndim, -1, operation)
        if dtype < 0:                            # no element
            dtype = default_float()
    array = _new(dtype, ndim, shape)
    try:
        _write(data, 0, ndim, shape, dtype, array.data, operation)
    except BaseException:
        release(array)
        raise
    return array


# ---- NumPy ---------------------------------------------------------------------------------------

cdef object numpy_view(array_t *array):
    """Return an ndarray; for a dtype that NumPy lacks, a copy in the compute dtype."""
    cdef array_t *copy
    data_escapes()
    if numpy_typenum(array.dtype) >= 0:
        return numpy_from_array(array, None)
    copy = as_copy(array, computed_in(array.dtype))
    if copy == NULL:
        check(MEMORY_ERROR)
    return owned_ndarray(copy)


cdef array_t *_from_numpy(object source, int dtype, str operation) except NULL:
    """Copy an ndarray, in its own dtype or another one."""
    cdef array_t *array
    cdef array_t *wide
    if dtype < 0:
        dtype = dtype_code(source.dtype.newbyteorder("="), operation)
    elif source.dtype.kind not in "biufc":
        dtype_code(source.dtype, operation)      # raises
    if source.dtype.kind == "c" and not is_complex(dtype) and dtype != BOOL:
        source = source.real
    if source.dtype.kind == "b":                 # True is 1 here, even if another byte stands for it there
        source = not_equal(source.view("u1"), 0, out=empty(source.shape, "?"))
    if is_short(dtype) and cnp.PyArray_TYPE(source) != numpy_typenum(dtype):
        wide = _from_numpy(source, computed_in(dtype), operation)
        array = as_copy(wide, dtype)
        release(wide)
        if array == NULL:
            check(MEMORY_ERROR)
        return array
    array = _new(dtype, cnp.PyArray_NDIM(source), <int64_t *>cnp.PyArray_DIMS(source))
    if (cnp.PyArray_TYPE(source) == numpy_typenum(dtype) and cnp.PyArray_IS_C_CONTIGUOUS(source)
            and cnp.PyArray_ISNOTSWAPPED(source)):
        memcpy(array.data, cnp.PyArray_DATA(source), array.size * itemsize(dtype))
        return array
    try:
        with numpy_errors(all="ignore"):         # no warning for a value that does not fit
            copy_into(numpy_view(array), source, casting="unsafe")
    except BaseException:
        release(array)
        raise
    return array


cdef array_t *array_of(object data, int dtype, str operation) except NULL:
    cdef array_t *array
    cdef int natural
    if cnp.PyArray_Check(data):
        return _from_numpy(data, dtype, operation)
    if isinstance(data, Tensor):
        array = as_copy((<Tensor>data).array, (<Tensor>data).array.dtype if dtype < 0 else dtype)
        if array == NULL:
            check(MEMORY_ERROR)
        return array
    if isinstance(data, str):
        raise TypeError(f"{operation}: a string cannot be stored in a tensor (got {data!r}, expected numbers)")
    natural = number_dtype(data)
    if natural >= 0:
        if dtype < 0:
            dtype = natural
        array = _new(dtype, 0, NULL)
        try:
            store_number(array.data, dtype, _plain(data, operation), True, operation)
        except BaseException:
            release(array)
            raise
        return array
    if not isinstance(data, (list, tuple)) and hasattr(data, "__array__"):
        return _from_numpy(as_ndarray(data), dtype, operation)
    return _from_sequence(data, dtype, operation)
