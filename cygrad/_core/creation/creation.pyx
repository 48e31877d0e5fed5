"""Tensors from sizes, numbers, sequences and NumPy arrays."""

cimport numpy as cnp
cimport cygrad._core.primitives.complex_parts
from cpython.bool cimport PyBool_Check
from cpython.complex cimport PyComplex_Check
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_Check, PyLong_CheckExact
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.sequence cimport PySequence_Check
from cpython.tuple cimport PyTuple_Check
from libc.math cimport fabs, isfinite, trunc
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport (
    COMPLEX, MAX_DIMS, REAL, array_empty, array_from_numpy, array_t, array_view, meta_place, numpy_from_array,
    owned_ndarray, release, retain, shape_text, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BFLOAT16, BOOL, COMPLEX128, COMPLEX32, COMPLEX64, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, UINT16, UINT32,
    UINT64, UINT8, computed_in, default_complex, default_float, dtype_code, dtype_name, dtype_object, is_complex,
    is_differentiable, is_floating, is_short, is_unsigned, itemsize, largest, numpy_typenum, promote,
)
from cygrad._core.elementwise.copying cimport as_copy, fill_zeros
from cygrad._core.graph.boxing cimport is_entry
from cygrad._core.graph.modes cimport grad_enabled
from cygrad._core.graph.tensor cimport (
    Tensor, adopt, check_elements, data_escapes, is_meta, meta_array, protocol, requires_grad as needs_gradient,
    without_elements, wrap,
)
from cygrad._core.kernels.arguments cimport check_sizes
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.primitives.primitive_table cimport number_to_cell
from cygrad._core.threads.grain cimport CHUNK
from cygrad._core.threads.parallel cimport parallel_for

import numpy as np
from numpy import (
    asarray as as_ndarray, copyto as copy_into, empty as empty_ndarray, errstate as numpy_errors, not_equal,
)
from opcode import opmap
from cygrad._core.arrays.array import STRIDED, Size
from cygrad._core.arrays.dtype import library_name
from cygrad._core.graph.boxing import call_override
from cygrad._core.graph.operation_names import called_operation
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------------ sequences

# Arrays from Python objects: numbers, nested sequences and NumPy arrays.
#
# Nested sequences are traversed twice: first for the shape, along the first items, and the dtype, of all items; then to
# write the numbers and detect ragged sequences.

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
        if not PyLong_Check(value) and not hasattr(value, "__index__"):
            raise TypeError(f"{operation}: elements must be numbers (got {type(value).__name__}). Convert them.")
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
    except TypeError:
        raise TypeError(f"{operation}: elements must be numbers (got {type(value).__name__}). Convert them.") from None
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
    """Convert tensors of one element and NumPy scalars to Python numbers."""
    cdef Tensor tensor
    if isinstance(value, Tensor):
        tensor = <Tensor>value
        if tensor.array.size != 1:
            raise ValueError(f"{operation}: only one element tensors can be converted to Python scalars (got a "
                             f"tensor of shape {tuple(value.shape)}). Combine tensors with stack() or cat().")
        if needs_gradient(tensor):
            warn_user(f"{operation}: a tensor that requires grad is copied without its history. "
                      "Use stack() to keep it.")
        return ndarray_over(tensor.array).reshape(())[()].item()
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
    """Read the shape along the first items; return the number of dimensions."""
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
                         f"{len(data)}). Pad the sequences to one length.")
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

cdef object ndarray_over(array_t *array):
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
    if source.dtype.kind == "b":                 # True is 1 here, even if NumPy has another byte
        source = not_equal(source.view("u1"), 0, out=empty_ndarray(source.shape, "?"))
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
        with numpy_errors(all="ignore"):         # no warning for a value out of range
            copy_into(ndarray_over(array), source, casting="unsafe")
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
    if not isinstance(data, (list, tuple)):
        if hasattr(data, "__array__"):
            return _from_numpy(as_ndarray(data), dtype, operation)
        if hasattr(data, "_elements_as"):            # a storage (of cygrad.compatibility)
            return array_of(data._elements_as(None if dtype < 0 else dtype_object(dtype), operation), -1, operation)
    return _from_sequence(data, dtype, operation)


# --------------------------------------------------------------------------------------------------------- dlpack types

# DLPack capsules of dtypes that NumPy lacks.
#
# NumPy's functions export and import such capsules as integers of the same size; the type in the capsule is rewritten
# before NumPy reads one or after it has made one.

cdef enum:
    INTEGER_TYPE = 0          # the codes of DLPack
    BFLOAT_TYPE = 4
    COMPLEX_TYPE = 5

cdef struct element_type_t:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct capsule_contents_t:
    void *data
    int32_t device
    int32_t device_number
    int32_t ndim
    element_type_t type
    int64_t *shape            # strides and offset follow

cdef struct capsule_with_version_t:
    uint32_t major
    uint32_t minor
    void *context
    void *deleter
    uint64_t flags
    capsule_contents_t contents


cdef capsule_contents_t *_contents_of(object capsule) except? NULL:
    """Return the tensor of a capsule; NULL for other objects, used capsules, and unknown versions."""
    cdef capsule_with_version_t *versioned
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        versioned = <capsule_with_version_t *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
        return &versioned.contents if versioned.major == 1 else NULL
    if PyCapsule_IsValid(capsule, "dltensor"):
        return <capsule_contents_t *>PyCapsule_GetPointer(capsule, "dltensor")
    return NULL


cdef element_type_t *_type_of(object capsule) except? NULL:
    cdef capsule_contents_t *contents = _contents_of(capsule)
    return NULL if contents == NULL else &contents.type


def checked_capsule(capsule):
    """Return the capsule; raise an error if NumPy would read beyond its end or through a NULL pointer."""
    cdef capsule_contents_t *contents = _contents_of(capsule)
    cdef bint empty = False
    cdef int32_t i
    if contents == NULL:
        return capsule
    if contents.ndim < 0 or contents.ndim > 0 and contents.shape == NULL:
        raise BufferError(f"from_dlpack: the capsule has no valid shape (got {contents.ndim} dimensions and "
                          f"{'a NULL pointer' if contents.shape == NULL else 'a pointer'}). Report this to the "
                          "library that created it.")
    for i in range(min(contents.ndim, MAX_DIMS)):
        if contents.shape[i] < 0:
            raise BufferError(f"from_dlpack: the capsule has a negative size (got {contents.shape[i]} in dimension "
                              f"{i}). Report this to the library that created it.")
        empty = empty or contents.shape[i] == 0
    if contents.data == NULL and not empty:
        raise BufferError("from_dlpack: the capsule has no memory (got a NULL pointer). Report this to the library "
                          "that created it.")
    return capsule


def as_integers(capsule):
    """
    Mark the elements of a capsule as integers if NumPy lacks their dtype.

    Parameters
    ----------
    capsule : capsule
        The capsule, not to be read by other code.

    Returns
    -------
    dtype or None
        Dtype of the elements; None for other dtypes, which are not changed.
    """
    cdef element_type_t *type = _type_of(capsule)
    cdef int code
    if type == NULL or type.lanes != 1:
        return None
    if type.code == BFLOAT_TYPE and type.bits == 16:
        code = BFLOAT16
    elif type.code == COMPLEX_TYPE and type.bits == 32:
        code = COMPLEX32
    else:
        return None
    type.code = INTEGER_TYPE
    return dtype_object(code)


def from_integers(capsule, dtype not None):
    """Set the dtype of a capsule whose elements are marked as integers of the same size."""
    cdef element_type_t *type = _type_of(capsule)
    cdef int code = dtype_code(dtype, "__dlpack__")
    if type == NULL or type.code != INTEGER_TYPE or type.bits != 8 * itemsize(code):
        raise BufferError(f"__dlpack__: NumPy created an unknown capsule (got {capsule!r}, expected one of "
                          "DLPack 1 or before, of integers).")
    type.code = BFLOAT_TYPE if code == BFLOAT16 else COMPLEX_TYPE
    return capsule


# ------------------------------------------------------------------------------------------------------------- creation

cnp.import_array()

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8(object) except NULL

cdef enum:
    FILL_CHUNK = 4 * CHUNK     # elements per chunk of a parallel fill

cdef object _numpy_scalar = np.generic


# ---- sizes ---------------------------------------------------------------------------------------

cdef int64_t _one_size(object value, int position, str operation) except? -1:
    cdef int overflow = 0
    cdef long long result
    if PyLong_CheckExact(value):
        result = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            raise OverflowError(f"{operation}: a size does not fit 64 bits (got {value} at position {position}). Use "
                                "a smaller one.")
        return result
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(f"{operation}: sizes must be integers (got {value!r} of type {type(value).__name__} at "
                        f"position {position})")
    return _one_size(int(value.__index__()), position, operation)


cdef int read_sizes(object size, int64_t *shape, str operation) except -1:
    cdef int i, ndim
    cdef int64_t count
    if PyTuple_Check(size) or PyList_Check(size):
        size = tuple(size)                       # a snapshot: converting an entry may change the list
        if len(size) == 1 and not PyLong_CheckExact(size[0]) and hasattr(size[0], "__len__") and (
                PyTuple_Check(size[0]) or PyList_Check(size[0]) or not hasattr(size[0], "__index__")):
            size = tuple(size[0])                # zeros((2, 3)) is zeros(2, 3)
        if len(size) > MAX_DIMS:
            raise ValueError(f"{operation}: too many dimensions (got {len(size)}, expected at most {MAX_DIMS})")
        ndim = len(size)
        for i in range(ndim):
            shape[i] = _one_size(size[i], i + 1, operation)
    else:
        ndim = 1
        shape[0] = _one_size(size, 1, operation)
    check(check_sizes(PyUnicode_AsUTF8(operation), ndim, shape, &count))
    return ndim


# ---- tensors of one value ------------------------------------------------------------------------

cdef struct fill_t:
    char *data
    int64_t size              # bytes of an element
    char[16] element


cdef void _fill_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Fill begin..end by doubling the written part."""
    cdef fill_t *fill = <fill_t *>context
    cdef char *data = fill.data + begin * fill.size
    cdef int64_t total = (end - begin) * fill.size
    cdef int64_t done = fill.size
    cdef int64_t part
    memcpy(data, fill.element, fill.size)
    while done < total:
        # Copies of about a page stay in the L1 cache.
        part = done if done < 4096 else 4096
        if part > total - done:
            part = total - done
        memcpy(data + done, data, part)
        done += part


cdef void fill_array(array_t *array, const char *element) noexcept nogil:
    cdef fill_t fill
    cdef int64_t size = itemsize(array.dtype)
    cdef int64_t i
    cdef bint zero = True
    for i in range(size):
        zero = zero and element[i] == 0
    if zero:
        fill_zeros(array)
        return
    fill.data = array.data
    fill.size = size
    memcpy(fill.element, element, size)
    parallel_for(_fill_chunk, &fill, array.size, FILL_CHUNK)


cdef Tensor empty_tensor(object size, int dtype, bint meta, str operation):
    cdef int64_t[MAX_DIMS] shape
    cdef int ndim = read_sizes(size, shape, operation)
    return wrap(meta_array(dtype, ndim, shape) if meta else array_empty(dtype, ndim, shape))


cdef Tensor full_tensor(object size, object value, int dtype, bint meta, str operation):
    cdef int64_t[MAX_DIMS] shape
    cdef char[16] element
    cdef array_t *array
    cdef int ndim = read_sizes(size, shape, operation)
    read_element(value, dtype, element, operation)
    if meta:
        return wrap(meta_array(dtype, ndim, shape))
    array = array_empty(dtype, ndim, shape)
    if array != NULL:
        with nogil:
            fill_array(array, element)
    return wrap(array)


cdef int read_element(object value, int dtype, char *element, str operation) except -1:
    value = plain_number(value, operation)
    if isinstance(value, complex) and not is_complex(dtype) and dtype != BOOL:
        raise RuntimeError(f"{operation}: value cannot be converted to type {dtype_name(dtype).decode()} without "
                           f"overflow (got {value!r}). Use a complex dtype.")
    return store_number(element, dtype, value, False, operation)


cdef object plain_number(object value, str operation):
    if PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return value
    if isinstance(value, (float, int, complex)) and not isinstance(value, _numpy_scalar):
        return value
    if isinstance(value, Tensor) and not needs_gradient(<Tensor>value) and (<Tensor>value).array.ndim == 0:
        return ndarray_over((<Tensor>value).array).item()
    if isinstance(value, _numpy_scalar) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    raise TypeError(f"{operation}: expected a number (got {type(value).__name__})")


# ---- tensors of data -----------------------------------------------------------------------------

cdef Tensor tensor_from(object data, int dtype, str operation):
    return wrap(array_of(data, dtype, operation))


cdef object finish(Tensor result, bint needs_grad, bint meta):
    if meta:
        result = without_elements(result)
    if needs_grad:
        if not is_differentiable(result.array.dtype):
            raise RuntimeError("requires_grad: only Tensors of floating point and complex dtype can require gradients "
                               f"(got {dtype_name(result.array.dtype).decode()})")
        result.leaf_requires_grad = True
    return result


cdef int check_place(object device, object layout, object pin_memory, str operation) except -1:
    if layout is not None and layout is not STRIDED and layout != "strided":
        raise RuntimeError(f"{operation}: unsupported layout (got {layout!r}, expected strided). Omit it.")
    if pin_memory:
        raise RuntimeError(f"{operation}: pin_memory is not supported (got True). Omit it.")
    return meta_place(device, operation)


cdef int dtype_or(object dtype, int default, str operation) except? -1:
    return default if dtype is None else dtype_code(dtype, operation)


def tensor(data, *, dtype=None, device=None, bint requires_grad=False, pin_memory=False):
    """
    A new tensor with a copy of data.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor
        All sequences at one depth must have the same length. The history of a Tensor is not copied.
    dtype : dtype, optional
        Default: that of an ndarray, Tensor or NumPy scalar; for Python numbers the first of bool, int64, the default
        floating dtype and the default complex dtype that holds all of them.
    device : str, optional
        Must be ``"cpu"``.
    requires_grad : bool, default False
        Whether to record operations on the result.
    pin_memory : bool, default False
        Must be False.

    Returns
    -------
    Tensor
        A leaf that shares no memory with `data`.

    Raises
    ------
    ValueError
        If sequences at the same depth differ in length, or an integer does not fit into 64 bits.
    RuntimeError
        If data are not numbers, a value is out of the range of `dtype`, or an integer tensor is to require grad.
    TypeError
        If numbers and sequences are at the same depth, or the dtype is not supported.

    Examples
    --------
    >>> cygrad.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> cygrad.tensor([0, 1]).dtype
    cygrad.int64
    """
    cdef bint meta = check_place(device, None, pin_memory, "tensor")
    if isinstance(data, Tensor):
        warn_user("tensor: to copy a tensor, x.detach().clone() is recommended (or "
                  "x.detach().clone().requires_grad_(True)), which is explicit about the history")
    return finish(tensor_from(data, dtype_or(dtype, -1, "tensor"), "tensor"), requires_grad, meta)


operators.tensor = tensor


def scalar_tensor(value, *, dtype=None, device=None, layout=None, bint requires_grad=False, pin_memory=False):
    """
    Return a 0-dim tensor of a number, in the default floating dtype unless `dtype` is given.

    Parameters
    ----------
    value : number
    dtype : dtype, optional
        Default: the default floating dtype, whatever the type of `value`.
    device, layout, pin_memory : optional
        Accepted for compatibility; must have their default values.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        Of shape ``()``.

    Examples
    --------
    >>> cygrad.scalar_tensor(3)
    tensor(3.)
    """
    cdef bint meta = check_place(device, layout, pin_memory, "scalar_tensor")
    return finish(full_tensor((), value, dtype_or(dtype, default_float(), "scalar_tensor"), meta, "scalar_tensor"),
                  requires_grad, meta)


def from_numpy(array):
    """
    Return a tensor that shares the memory of an ndarray.

    Parameters
    ----------
    array : numpy.ndarray
        With elements of a supported dtype, aligned, in native byte order. Any strides, negative ones
        included.

    Returns
    -------
    Tensor
        Keeps `array` alive.

    Raises
    ------
    TypeError
        If it is not an ndarray, or its dtype is not supported.
    ValueError
        If its memory cannot be shared.

    Warns
    -----
    UserWarning
        If the array is read-only. In-place operations on the result then raise an error.

    Examples
    --------
    >>> import numpy
    >>> array = numpy.zeros(3)
    >>> _ = cygrad.from_numpy(array).add_(1)
    >>> array
    array([1., 1., 1.])
    """
    cdef Tensor result = _over(array)
    if not array.flags.writeable:
        warn_user(f"{called_operation('from_numpy')}: the array is read-only, so in-place operations on the tensor "
                  "will raise an error. Copy it with clone() to modify it.")
    return result


cdef bint _shareable(object array):
    """Return whether a tensor can share the memory of this ndarray; not if True is stored as another byte than 1."""
    if array.dtype.kind == "b" and array.view("u1").max(initial=0) > 1:
        return False
    return (array.dtype.isnative and array.flags.aligned and array.flags.writeable
            and all(stride % max(array.itemsize, 1) == 0 for stride in array.strides))


def as_tensor(data, dtype=None, device=None):
    """
    Convert data to a tensor, sharing memory and the graph where possible.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor
        A Tensor is returned unchanged, or cast by a recorded operation; the memory of a writable ndarray is shared.
    dtype : dtype, optional
        Default: inferred as in `tensor`.
    device : str, optional
        Must be ``"cpu"``.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> x = cygrad.tensor([1., 2.])
    >>> cygrad.as_tensor(x) is x
    True
    """
    cdef bint meta = check_place(device, None, False, "as_tensor")
    cdef int code = dtype_or(dtype, -1, "as_tensor")
    if isinstance(data, Tensor):
        if device is not None and meta != is_meta((<Tensor>data).array):
            data = data.to(device)
        if code < 0 or (<Tensor>data).array.dtype == code:
            return data
        return data.to(dtype)
    if isinstance(data, np.ndarray) and _shareable(data) and (code < 0 or dtype_code(data.dtype, "as_tensor") == code):
        return finish(_over(data), False, meta)
    return finish(tensor_from(data, code, "as_tensor"), False, meta)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """
    Convert tensors, arrays, DLPack objects, buffers, numbers and sequences to a tensor.

    Parameters
    ----------
    obj : object
        Memory of tensors, writable ndarrays, DLPack objects and buffers is shared where possible.
    dtype : dtype, optional
        Default: inferred. Buffers (``bytes``, ``bytearray``, ``memoryview``) are read as elements of this dtype.
    device : str, optional
        Must be ``"cpu"``.
    copy : bool, optional
        True: always copy. False: never copy, and raise an error if a copy is needed. None: copy only if needed.
    requires_grad : bool, optional
        Default: that of `obj`. False detaches the result of a tensor that requires grad.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `copy` is False and the memory of `obj` cannot be shared.

    Examples
    --------
    >>> cygrad.asarray([1, 2], dtype=cygrad.float32)
    tensor([1., 2.])
    """
    cdef bint meta = check_place(device, None, False, "asarray")
    cdef int code = dtype_or(dtype, -1, "asarray")
    original = obj
    if type(obj).__name__ == "PyCapsule":
        obj = from_dlpack(obj)
    if isinstance(obj, Tensor):
        result = obj
        if copy:
            result = result.clone()
        if code >= 0 and (<Tensor>result).array.dtype != code:
            if copy is not None and not copy:
                raise ValueError(f"asarray: another dtype requires a copy (got copy=False, a tensor of {obj.dtype} and "
                                 f"dtype={dtype})")
            result = result.to(dtype)
        if requires_grad is None:
            return result
        if not requires_grad or (<Tensor>result).node is not None:
            result = result.detach()
        return finish(result, True, meta) if requires_grad else result
    if not isinstance(obj, (np.ndarray, np.generic, list, tuple, str)):
        if hasattr(obj, "__dlpack__"):
            obj, known = _offered(obj, {})
            if known is not None:
                return asarray(_of_offer(obj, known), dtype=dtype, device=device, requires_grad=requires_grad,
                               copy=True if copy is None and not obj.flags.writeable else copy)
        elif isinstance(obj, (bytes, bytearray, memoryview)):
            obj = np.frombuffer(obj, dtype=_dtype_object_of(code))
        elif hasattr(obj, "__array_interface__"):
            obj = np.asarray(obj)
    if isinstance(obj, np.ndarray) and not copy and _shareable(obj) and (
            code < 0 or dtype_code(obj.dtype, "asarray") == code):
        result = _over(obj)
    else:
        if copy is not None and not copy:
            raise ValueError(f"asarray: the data cannot be shared without a copy (got copy=False and "
                             f"{type(original).__name__})")
        result = tensor_from(obj, code, "asarray")
    return finish(result, bool(requires_grad), meta)


cdef object _dtype_object_of(int code):
    """Return the NumPy dtype for a code, -1 for the default floating one."""
    return np.dtype(dtype_name(default_float() if code < 0 else code).decode())


class _Offer:
    """Wraps a requested capsule as an object with ``__dlpack__``."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class _Checked:
    """Wraps a DLPack object and checks its capsule before NumPy reads it."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **options):
        return checked_capsule(self.given.__dlpack__(**options))

    def __dlpack_device__(self):
        return self.given.__dlpack_device__()


cdef tuple _offered(object given, dict options):
    """Return an ndarray over the exported memory of an object, and the dtype of its elements if NumPy lacks it."""
    try:
        return np.from_dlpack(_Checked(given), **options), None
    except RuntimeError:                 # among others, a dtype that NumPy lacks
        asked = {name: value for name, value in options.items() if name == "copy"}
        try:
            capsule = given.__dlpack__(max_version=(1, 0), **asked)
        except TypeError:                # an older version
            capsule = given.__dlpack__()
        known = as_integers(capsule)
        if known is None:
            raise
    return np.from_dlpack(_Offer(capsule)), known


cdef Tensor _over(object ndarray):
    """A Tensor over the memory of an ndarray, which others may write to."""
    data_escapes()
    return wrap(array_from_numpy(ndarray, False))


cdef Tensor _of_offer(object shared, object known):
    data_escapes()
    cdef array_t *array = array_from_numpy(shared, False)
    if known is not None and array != NULL:
        array.dtype = dtype_code(known, "from_dlpack")
    return wrap(array)


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """
    Return a tensor over the memory of any object with ``__dlpack__``, of any DLPack version.

    Read-only memory is shared, too; in-place operations on the tensor then raise an error. This also applies to objects
    with DLPack before version 1, which has no read-only flag.

    Parameters
    ----------
    ext_tensor : object with ``__dlpack__`` and ``__dlpack_device__``, or a capsule
        An object on the CPU, or one that can copy itself to it.
    device : device or str, optional
        Must be the CPU.
    copy : bool, optional
        True: always copy. False: never copy. None: only if needed.

    Returns
    -------
    Tensor
        Shares the memory, and keeps the object alive.

    Raises
    ------
    TypeError
        If the object does not support DLPack, or its dtype is not supported.
    ValueError
        If its elements are not aligned, or a copy is needed and `copy` is False.
    BufferError
        If it is on another device.

    Examples
    --------
    >>> import numpy
    >>> cygrad.from_dlpack(numpy.array([1., 2.]))
    tensor([1., 2.], dtype=cygrad.float64)
    """
    cdef bint meta = check_place(device, None, False, "from_dlpack")
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Offer(ext_tensor)
    elif not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: the object does not support DLPack (got {type(ext_tensor).__name__}, expected "
                        "an array with __dlpack__). Use asarray() for other data.")
    options = {} if device is None else {"device": "cpu"}
    if copy is not None and not isinstance(ext_tensor, _Offer):
        options["copy"] = bool(copy)
    shared, known = _offered(ext_tensor, options)
    try:
        result = _of_offer(shared, known)
    except BaseException:
        shared = None  # drop the reference here: code of its owner must not run while an exception propagates
        raise
    return finish(result.clone() if copy and isinstance(ext_tensor, _Offer) else result, False, meta)


cdef Tensor _convert(object value, str operation):
    """Convert an argument of an operator that is not a Tensor."""
    return tensor_from(value, -1, operation)


protocol.convert = _convert


def constructed(dtype, tuple arguments not None, dict options not None, str operation not None):
    """
    Construct a tensor for the tensor types: of sizes (uninitialized), or of data in a dtype.

    Parameters
    ----------
    dtype : dtype
        None: the default floating one.
    arguments : tuple
        Nothing for an empty tensor; integers or a Size; or a sequence, ndarray or Tensor. A Tensor shares its memory,
        and keeps its dtype by default.
    options : dict
        At most ``device``.
    """
    cdef int code = dtype_or(dtype, default_float(), operation)
    cdef bint meta = check_place(options.get("device"), None, False, operation)
    if set(options) - {"device"} or (len(arguments) != 1 and not all([hasattr(n, "__index__") for n in arguments])):
        raise TypeError(f"{operation}: expected sizes, or one argument with the data (got {arguments} and "
                        f"{sorted(options)}). Use tensor(), empty() or zeros() for more.")
    data = arguments[0] if len(arguments) == 1 else arguments
    if isinstance(data, Tensor):
        if dtype is not None and (<Tensor>data).array.dtype != code:
            raise TypeError(f"{operation}: dtypes must match (got {data.dtype}, expected {dtype}). Convert "
                            "it with to().")
        return data.detach()
    if isinstance(data, Size) or len(arguments) != 1 or (isinstance(data, (int, np.integer))
                                                         and not isinstance(data, bool)):
        return empty_tensor(arguments or (0,), code, meta, operation)
    if not hasattr(data, "__len__") or isinstance(data, str):
        raise TypeError(f"{operation}: the data must be a sequence (got {type(data).__name__}). Use tensor() for a "
                        "number.")
    return finish(tensor_from(data, code, operation), False, meta)


def construct(Tensor self not None, tuple arguments not None, dict options not None):
    """Implement ``Tensor(...)``: the tensor gets the memory of a `constructed` one."""
    adopt(self, constructed(None, arguments, options, "Tensor"), False)


# --------------------------------------------------------------------------------------------------------------- access

# Access to the elements of a tensor from Python: as one number, or as a NumPy array over the same memory.

cdef extern from *:
    """
    /* The bytes of the code that calls, and where in them it is. */
    static PyObject *running_code(int *position) {
        PyFrameObject *frame = PyEval_GetFrame();
        PyCodeObject *code;
        PyObject *instructions;
        if (frame == NULL)
            return PyBytes_FromStringAndSize(NULL, 0);
        code = PyFrame_GetCode(frame);
        *position = PyFrame_GetLasti(frame);
        instructions = PyCode_GetCode(code);
        Py_DECREF(code);
        return instructions;
    }
    """
    bytes running_code(int *position)

cdef int _store = opmap["STORE_SUBSCR"], _build_slice = opmap["BUILD_SLICE"]


def item(Tensor input not None):
    """
    Return the only element as a Python number.

    Returns
    -------
    bool, int, float or complex

    Raises
    ------
    RuntimeError
        If the tensor has more than one element, or none.

    Examples
    --------
    >>> cygrad.tensor([2.5]).item()
    2.5
    """
    cdef array_t *array = input.array
    cdef char *data = array.data
    check_elements(array, "item")
    data_escapes()
    if array.size != 1:
        raise RuntimeError(f"item: a Tensor with {array.size} elements cannot be converted to Scalar (got shape "
                           f"{shape_text(array).decode()}, expected one element). Use tolist() for more.")
    if array.dtype == FLOAT32:
        return (<float *>data)[0]
    if array.dtype == FLOAT64:
        return (<double *>data)[0]
    if array.dtype == INT64:
        return (<int64_t *>data)[0]
    if array.dtype == BOOL:
        return (<uint8_t *>data)[0] != 0
    if array.dtype == INT32:
        return (<int32_t *>data)[0]
    if array.dtype == INT16:
        return (<int16_t *>data)[0]
    if array.dtype == INT8:
        return (<int8_t *>data)[0]
    if array.dtype == UINT8:
        return (<uint8_t *>data)[0]
    if array.dtype == COMPLEX64:
        return complex((<float *>data)[0], (<float *>data)[1])
    if array.dtype == COMPLEX128:
        return complex((<double *>data)[0], (<double *>data)[1])
    return ndarray_over(array).item()


cdef object _number(Tensor input, str kind):
    """
    Return the element for a conversion to a number.

    NumPy's ``array[0] = tensor`` calls ``float`` as users do; the running bytecode instruction tells them apart,
    because programs for PyTorch record their losses so. Where a slice has just been built, a list runs an iterator, as
    in ``losses[:] = map(float, tensors)``: NumPy takes such values as arrays.
    """
    cdef int position = -1
    cdef bytes code
    if grad_enabled() and input.requires_grad:
        code = running_code(&position)
        if (2 <= position < len(code) and <unsigned char>code[position] == _store
                and <unsigned char>code[position - 2] != _build_slice and library_name() == "cygrad"):
            raise RuntimeError(f"{kind}: a tensor that requires grad would lose its history as an element of an array. "
                               "Write to a Tensor, such as numpy.zeros_like(tensor), or write item().")
    if input.array.size != 1 and not is_entry(input):
        raise ValueError(f"{kind}: only one element tensors can be converted to Python scalars (got shape "
                         f"{shape_text(input.array).decode()}). Use tolist() for more.")
    number = item(input) if type(input) is Tensor else input.item()
    if isinstance(number, complex) and kind != "complex":
        if number.imag != 0:
            raise RuntimeError(f"{kind}: a complex value cannot be converted without losing its imaginary part (got "
                               f"{number}). Use .real or abs().")
        return number.real
    return number


def as_float(Tensor input not None):
    """Return the only element as a Python float."""
    return float(_number(input, "float"))


def as_int(Tensor input not None):
    """Return the only element as a Python int."""
    return int(_number(input, "int"))


def as_complex(Tensor input not None):
    """Return the only element as a Python complex."""
    return complex(_number(input, "complex"))


def numpy_view(Tensor input not None):
    """
    Return a NumPy array that shares the memory of the tensor.

    The array keeps the memory alive, not the tensor, whose memory can be replaced.
    """
    if is_entry(input) and type(input).numpy is not Tensor.numpy:
        return input.numpy()             # raises
    check_elements(input.array, "numpy")
    data_escapes()
    return owned_ndarray(retain(input.array))


def seen_as(Tensor input not None, dtype not None):
    """Return a view with another dtype, without history."""
    cdef array_t *array = input.array
    cdef int code = dtype_code(dtype, "view"), i, last = array.ndim - 1
    cdef int64_t old = itemsize(array.dtype), new = itemsize(code)
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    if old == new:
        return wrap(array_view(array, code, array.ndim, array.shape, array.strides, 0))
    given = input.stride()
    if last < 0 or given[last] != 1:
        raise RuntimeError("view: the last dimension must be contiguous to view elements of another size (got "
                           f"{input.dtype} of shape {tuple(input.shape)} and strides {given}, and {dtype}). Call "
                           "contiguous() first.")
    for i in range(last + 1):
        shape[i], strides[i] = array.shape[i], 1 if i == last else given[i] * old // new
        if (shape[i] if i == last else given[i]) * old % new:
            raise RuntimeError(f"view: the last dimension and all strides must be multiples of {new // old} to get "
                               f"elements of {dtype} (got {input.dtype} of shape {tuple(input.shape)} and strides "
                               f"{given}).")
    if input.storage_offset() * old % new:
        raise RuntimeError(f"view: the storage offset must be a multiple of the element size of {dtype} (got "
                           f"{input.dtype} at offset {input.storage_offset()}). Call clone() first.")
    shape[last] = shape[last] * old // new
    # Without memory there are no strides either.
    return wrap(array_view(array, code, array.ndim, shape, array.strides if array.storage == NULL else strides, 0))


def view_as(Tensor input not None, dtype not None):
    """Return the result of `Tensor.view` for a dtype."""
    if is_entry(input):
        return call_override(view_as, (input,), (input, dtype), {})
    return input.view(tuple(input.shape)) if input.dtype is dtype else seen_as(input, dtype)


def elements(Tensor input not None):
    """Return a read-only `numpy_view`, or a copy in a wider dtype if NumPy lacks the dtype."""
    check_elements(input.array, "numpy")
    return ndarray_over(input.array) if numpy_typenum(input.array.dtype) < 0 else numpy_view(input)
