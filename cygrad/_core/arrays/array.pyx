"""
The n-dimensional array of C: refcounted; its metadata is immutable once it is shared.

Shape and strides follow the struct in one block, so that up to three dimensions fit into 128 bytes and an array costs
one allocation (two with its storage).
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.arrays.dtype cimport (
    BOOL, BOOLEAN_CATEGORY, COMPLEX128, COMPLEX_CATEGORY, FLOAT64, FLOATING, INT64, category, code_of_typenum,
    complex_of, default_complex, default_float, dtype_name, itemsize, numpy_typenum, promote,
)
from cygrad._core.memory.atomic cimport atomic_increment, atomic_is_last
from cygrad._core.memory.errors cimport (
    MEMORY_ERROR, MESSAGE, MAX_ELEMENTS, OK, check, elements_of_huge, message, product_overflows, sizes_text,
)
from cygrad._core.memory.storage cimport (
    NO_ELEMENTS, allocate, deallocate, storage_foreign, storage_new, storage_release, storage_t, version_release,
)

import numpy as np
import threading
from cygrad._core.arrays.dtype import library_name


# ---------------------------------------------------------------------------------------------------------------- array

cdef inline int64_t _block_bytes(int ndim) noexcept nogil:
    """Allocate the struct with shape and strides."""
    return sizeof(array_t) + 2 * ndim * sizeof(int64_t)


cdef inline array_t *_allocate_array(int dtype, int ndim) noexcept nogil:
    """Allocate an array without storage; the caller fills in shape and strides. NULL and a message on failure."""
    cdef array_t *array = <array_t *>allocate(_block_bytes(ndim))
    if array == NULL:
        snprintf(message(), MESSAGE, b"out of memory for the shape of an array of %d dimensions", ndim)
        return NULL
    array.count = 1
    array.dtype = dtype
    array.ndim = ndim
    array.own_version = array.array_api = array.detached = array.is_gradient = False
    array.data = NULL
    array.storage = NULL
    array.version = NULL
    array.tensor = NULL
    array.shape = <int64_t *>(array + 1)
    array.strides = array.shape + ndim
    return array


cdef inline array_t *_new_array(int dtype, int ndim, const int64_t *shape, const int64_t *strides) noexcept nogil:
    """Create an array without storage, row-major without strides; NULL and a message on failure."""
    cdef array_t *array = _allocate_array(dtype, ndim)
    cdef int64_t size = 1
    cdef bint fits
    if array == NULL:
        return NULL
    fits = _set_contiguous(array, shape, &size) if strides == NULL else _set_strided(array, shape, strides, &size)
    if not fits or size > MAX_ELEMENTS:
        size = elements_of_huge(ndim, shape)
        if size < 0:
            deallocate(array, _block_bytes(ndim))
            return NULL
    array.size = size
    if size == 0:
        array.contiguous = True
    return array


cdef inline int64_t _times(int64_t step, int64_t size) noexcept nogil:
    """Multiply a stride by a size; wraps around for arrays without elements with other huge sizes."""
    return <int64_t>(<uint64_t>step * <uint64_t>size)


cdef inline bint _set_contiguous(array_t *array, const int64_t *shape, int64_t *size) noexcept nogil:
    """Set shape and row-major strides; set the size if it fits. A size of 0 counts as 1 in the strides, as in NumPy."""
    cdef int64_t step = 1
    cdef bint too_large = False
    cdef int i
    for i in range(array.ndim - 1, -1, -1):
        array.shape[i] = shape[i]
        array.strides[i] = step
        too_large |= product_overflows(size[0], shape[i], size)
        if shape[i] > 1:
            step = _times(step, shape[i])
    array.contiguous = True
    return not too_large


cdef inline bint _set_strided(
        array_t *array, const int64_t *shape, const int64_t *strides, int64_t *size) noexcept nogil:
    """Set shape, strides and the contiguous flag; set the size if it fits."""
    cdef int64_t expected = 1
    cdef int32_t contiguous = True
    cdef bint too_large = False
    cdef int i
    for i in range(array.ndim - 1, -1, -1):
        array.shape[i] = shape[i]
        array.strides[i] = strides[i]
        too_large |= product_overflows(size[0], shape[i], size)
        if shape[i] != 1:
            if strides[i] != expected:
                contiguous = False
            expected = _times(expected, shape[i])
    array.contiguous = contiguous
    return not too_large


cdef inline array_t *_shaped_like(const array_t *like, int dtype) noexcept nogil:
    """Create an array without storage of the shape and strides of another, without checking sizes."""
    cdef array_t *array = _allocate_array(dtype, like.ndim)
    cdef int i
    if array == NULL:
        return NULL
    for i in range(like.ndim):
        array.shape[i] = like.shape[i]
        array.strides[i] = like.strides[i]
    array.contiguous = like.contiguous
    array.size = like.size
    return array


cdef inline array_t *_with_storage(array_t *array) noexcept nogil:
    """Allocate the storage of a new array; NULL on failure."""
    if array == NULL:
        return NULL
    array.storage = storage_new(array.size * itemsize(array.dtype))
    if array.storage == NULL:
        deallocate(array, _block_bytes(array.ndim))
        return NULL
    array.data = array.storage.data
    array.version = &array.storage.version
    return array


cdef array_t *array_empty(int dtype, int ndim, const int64_t *shape) noexcept nogil:
    """Create a contiguous array, uninitialized."""
    return _with_storage(_new_array(dtype, ndim, shape, NULL))


cdef array_t *array_empty_like(const array_t *like, int dtype) noexcept nogil:
    """Create a contiguous array of the same shape, uninitialized."""
    if dtype < 0:
        dtype = like.dtype
    if like.ndim == 0 or like.ndim == 1 and like.strides[0] == 1 and like.size:
        return _with_storage(_shaped_like(like, dtype))
    return array_empty(dtype, like.ndim, like.shape)


cdef array_t *array_view(array_t *base, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil:
    """Create an array that shares storage and version with `base`."""
    cdef array_t *array = _new_array(dtype, ndim, shape, strides)
    if array == NULL:
        return NULL
    array.storage = base.storage
    array.data = base.data + offset * itemsize(dtype)     # an offset from NULL without storage
    if base.storage != NULL:
        atomic_increment(&base.storage.count)
        if base.storage.size_class == NO_ELEMENTS:        # fake tensor: all elements are one zero
            memset(array.strides, 0, ndim * sizeof(int64_t))
            array.data = base.storage.data
    array.version = base.version
    array.array_api = base.array_api
    array.own_version = base.own_version
    if base.own_version and base.version != NULL:
        atomic_increment(&base.version.count)
    return array


cdef int replace_version(array_t *array, version_t *version) noexcept nogil:
    if array.own_version:
        version_release(array.version)
    array.version, array.own_version = version, True
    return OK if version != NULL else MEMORY_ERROR


cdef array_t *array_meta(const array_t *base) noexcept nogil:
    cdef array_t *array = _shaped_like(base, base.dtype)
    if array == NULL:
        return NULL
    array.data = <char *>(base.data - (base.storage.data if base.storage != NULL else NULL))
    return array


cdef array_t *array_over(storage_t *storage, int dtype, int ndim, const int64_t *shape,
                         const int64_t *strides, int64_t offset) noexcept nogil:
    """Create an array over a storage, whose reference it takes over unless it fails."""
    cdef array_t *array = _new_array(dtype, ndim, shape, strides)
    if array == NULL:
        return NULL
    array.storage = storage
    array.data = storage.data + offset * itemsize(dtype)
    array.version = &storage.version
    return array


cdef void array_free(array_t *array) noexcept nogil:
    """Free an unreferenced array, with its share of storage and version."""
    if array.own_version:
        version_release(array.version)
    storage_release(array.storage)
    deallocate(array, _block_bytes(array.ndim))


cdef void release(array_t *array) noexcept nogil:
    """Drop one reference; the last one frees."""
    if array != NULL and atomic_is_last(&array.count):
        array_free(array)


cdef const char *shape_text(const array_t *array) noexcept nogil:
    """Return the shape as text, for messages; valid until eight texts later."""
    return sizes_text(array.ndim, <const long long *>array.shape)


cdef bint overlaps_itself(const array_t *array) noexcept nogil:
    """
    May two elements of the array share memory?

    Sorted by stride, each stride must exceed the reach of all smaller ones. Arrays of ``as_strided`` that interleave
    without overlap count as overlapping.
    """
    cdef int64_t[MAX_DIMS] steps
    cdef int64_t[MAX_DIMS] sizes
    cdef int64_t step, reach = 0
    cdef int i, j, n = 0
    if array.contiguous or array.size <= 1:
        return False
    for i in range(array.ndim):
        if array.shape[i] == 1:
            continue
        step = array.strides[i] if array.strides[i] >= 0 else -array.strides[i]
        j = n
        while j > 0 and steps[j - 1] > step:
            steps[j] = steps[j - 1]
            sizes[j] = sizes[j - 1]
            j -= 1
        steps[j] = step
        sizes[j] = array.shape[i]
        n += 1
    for i in range(n):
        if steps[i] <= reach:
            return True
        reach += steps[i] * (sizes[i] - 1)
    return False


cdef void _byte_range(const array_t *array, char **begin, char **end) noexcept nogil:
    """Return the address of the first byte and the one after the last."""
    cdef int64_t low = 0, high = 0, reach
    cdef int i
    for i in range(array.ndim):
        reach = (array.shape[i] - 1) * array.strides[i]
        if reach < 0:
            low += reach
        else:
            high += reach
    begin[0] = array.data + low * itemsize(array.dtype)
    end[0] = array.data + (high + 1) * itemsize(array.dtype)


cdef bint share_memory(const array_t *a, const array_t *b) noexcept nogil:
    """Return whether the byte ranges of the two arrays overlap. (Elements can interleave without sharing memory.)"""
    cdef char *a_begin
    cdef char *a_end
    cdef char *b_begin
    cdef char *b_end
    if a.storage == NULL or b.storage == NULL or a.size == 0 or b.size == 0:
        return False
    _byte_range(a, &a_begin, &a_end)
    _byte_range(b, &b_begin, &b_end)
    return a_begin < b_end and b_begin < a_end


# ----------------------------------------------------------------------------------------------------------------- size

# Construction and slicing of `Size` are C slots, almost as fast as those of tuple; indexing and comparing are tuple's.

cdef extern from "Python.h":
    ctypedef struct _Sequence "PySequenceMethods":
        object (*sq_repeat)(object, Py_ssize_t)
    ctypedef struct _Mapping "PyMappingMethods":
        object (*mp_subscript)(object, object)
    ctypedef struct _Type "PyTypeObject":
        object (*tp_alloc)(_Type *, Py_ssize_t)
        _Sequence *tp_as_sequence
        _Mapping *tp_as_mapping
    PyObject *_item "PyTuple_GET_ITEM"(object, Py_ssize_t)


class Size(tuple):
    """
    The sizes of the dimensions of a tensor: a tuple that knows how many elements there are.

    Parameters
    ----------
    sizes : iterable of int, optional

    Examples
    --------
    >>> size = cygrad.zeros(2, 3).shape
    >>> size, size.numel()
    ((2, 3), 6)
    >>> isinstance(size[1:], cygrad.Size)
    True
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        """Accept integers only."""
        whole = []
        for position, value in enumerate(sizes):
            if not hasattr(value, "__index__"):
                raise TypeError(f"Size: sizes must be integers (got {type(value).__name__} at position {position}).")
            whole.append(value.__index__())
        return tuple.__new__(cls, whole)

    def __repr__(self):
        name = library_name()
        if name == "cygrad":
            return tuple.__repr__(self)
        return f"{name}.Size([{', '.join(map(str, self))}])"

    def __reduce__(self):
        return Size, (tuple(self),)

    def __add__(self, other):
        return Size(tuple.__add__(self, other))

    def __radd__(self, other):
        return Size(tuple.__add__(other, tuple(self))) if isinstance(other, tuple) else NotImplemented

    def numel(self):
        """Return the product of the sizes."""
        count = 1
        for n in self:
            count *= n
        return count


cdef _Type *_size = <_Type *>Size
cdef _Type *_tuple = <_Type *>tuple


cdef object size_of(const array_t *array):
    cdef object made = _size.tp_alloc(_size, array.ndim)
    cdef object n
    cdef int i
    for i in range(array.ndim):
        n = array.shape[i]
        Py_INCREF(n)
        PyTuple_SET_ITEM(made, i, n)
    return made


cdef object _sized(object found):
    """Convert a plain tuple to a Size."""
    cdef Py_ssize_t i, n
    if not PyTuple_CheckExact(found):
        return found
    n = PyTuple_GET_SIZE(found)
    cdef object made = _size.tp_alloc(_size, n)
    for i in range(n):
        Py_INCREF(<object>_item(found, i))
        PyTuple_SET_ITEM(made, i, <object>_item(found, i))
    return made


cdef object _subscript(object self, object key):
    return _sized(_tuple.tp_as_mapping.mp_subscript(self, key)) if isinstance(key, slice) else \
        _tuple.tp_as_mapping.mp_subscript(self, key)


cdef object _repeat(object self, Py_ssize_t count):
    return _sized(_tuple.tp_as_sequence.sq_repeat(self, count))


_size.tp_as_mapping.mp_subscript = _subscript
_size.tp_as_sequence.sq_repeat = _repeat


# ---------------------------------------------------------------------------------------------------------------- value

cdef dict _kernels = {}


cdef int register_kernel(str name, kernel_t kernel) except -1:
    if name in _kernels:
        raise RuntimeError(f"register_kernel: '{name}' is registered twice")
    _kernels[name] = <size_t><void *>kernel
    return 0


cdef kernel_t find_kernel(str name) noexcept:
    return <kernel_t><void *><size_t>_kernels.get(name, 0)


cdef int _no_memory(int64_t nbytes) noexcept nogil:
    snprintf(message(), MESSAGE, b"out of memory for a list of %lld bytes", <long long>nbytes)
    return MEMORY_ERROR


cdef int set_integers(value_t *value, int count, const int64_t *integers) noexcept nogil:
    value.kind = INTEGERS
    value.count = count
    value.of.integers = NULL
    if count:
        value.of.integers = <int64_t *>allocate(count * sizeof(int64_t))
        if value.of.integers == NULL:
            value.kind = NOTHING
            return _no_memory(count * sizeof(int64_t))
        if integers == NULL:
            memset(value.of.integers, 0, count * sizeof(int64_t))
        else:
            memcpy(value.of.integers, integers, count * sizeof(int64_t))
    return OK


cdef int set_arrays(value_t *value, int count) noexcept nogil:
    value.kind = ARRAYS
    value.count = count
    value.of.arrays = NULL
    if count:
        value.of.arrays = <array_t **>allocate(count * sizeof(array_t *))
        if value.of.arrays == NULL:
            value.kind = NOTHING
            return _no_memory(count * sizeof(array_t *))
        memset(value.of.arrays, 0, count * sizeof(array_t *))
    return OK


cdef void clear(value_t *value) noexcept nogil:
    cdef int i
    if value.kind == ARRAY:
        release(value.of.array)
    elif value.kind == ARRAYS:
        for i in range(value.count):
            release(value.of.arrays[i])
        if value.count:
            deallocate(value.of.arrays, value.count * sizeof(array_t *))
    elif value.kind == INTEGERS and value.count:
        deallocate(value.of.integers, value.count * sizeof(int64_t))
    value.kind = NOTHING


cdef int copy_value(value_t *to, const value_t *source) noexcept nogil:
    cdef int i, status
    if source.kind == INTEGERS:
        return set_integers(to, source.count, source.of.integers)
    if source.kind == ARRAYS:
        status = set_arrays(to, source.count)
        if status == OK:
            for i in range(source.count):
                if source.of.arrays[i] != NULL:
                    to.of.arrays[i] = retain(source.of.arrays[i])
        return status
    to[0] = source[0]
    if source.kind == ARRAY:
        retain(source.of.array)
    return OK


# ------------------------------------------------------------------------------------------------------------ promotion

cdef int rank_of(const value_t *operand) noexcept nogil:
    if operand.kind != ARRAY:
        return WEAK
    return DIMENSIONED if operand.of.array.ndim else ZERO_DIM


cdef int dtype_of(const value_t *operand) noexcept nogil:
    if operand.kind == ARRAY:
        return operand.of.array.dtype
    return (BOOL if operand.kind == BOOLEAN else INT64 if operand.kind == INTEGER
            else FLOAT64 if operand.kind == REAL else COMPLEX128)


cdef int resolve_weak(int weak) noexcept nogil:
    return default_float() if weak == FLOAT64 else default_complex() if weak == COMPLEX128 else weak


cdef int _outranked(int higher, int lower) noexcept nogil:
    """
    Promote an operand and one of lower rank.

    The lower rank counts only if its category (bool, integer, float, complex) is higher: a float32 matrix times a
    float64 scalar stays float32, an int64 matrix times a float scalar becomes floating.
    """
    if higher < 0:
        return lower
    if lower < 0:
        return higher
    if category(higher) == COMPLEX_CATEGORY:
        return higher
    if category(higher) == FLOATING:
        return complex_of(higher) if category(lower) == COMPLEX_CATEGORY else higher
    if category(higher) == BOOLEAN_CATEGORY or category(lower) >= FLOATING:
        return promote(higher, lower)
    return higher


cdef int common_dtype(int dimensioned, int zero_dim, int weak) noexcept nogil:
    if dimensioned < 0 and zero_dim < 0:
        return weak
    return _outranked(dimensioned, _outranked(zero_dim, resolve_weak(weak)))


cdef int result_type(const value_t *operands, int n) noexcept nogil:
    cdef int[3] ranks
    cdef int i, rank, code
    ranks[0] = ranks[1] = ranks[2] = -1
    for i in range(n):
        rank = rank_of(&operands[i])
        code = dtype_of(&operands[i])
        ranks[rank] = code if ranks[rank] < 0 else promote(ranks[rank], code)
    return resolve_weak(ranks[WEAK]) if ranks[DIMENSIONED] < 0 and ranks[ZERO_DIM] < 0 else common_dtype(
        ranks[DIMENSIONED], ranks[ZERO_DIM], ranks[WEAK])


# -------------------------------------------------------------------------------------------------------------- interop

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
    """Return an ndarray over the array's memory; `owner` keeps it alive and becomes its `base`."""
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


# ------------------------------------------------------------------------------------------------------------ placement

# Only the CPU is available. Other devices have names, whose use is an error; tensors of `meta` have no memory.

_TYPES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
          "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")


@cython.binding(False)      # methods check the type of self
cdef class device:
    """
    A device: where the elements of a tensor are.

    Parameters
    ----------
    type : str, device
        ``"cpu"``, ``"meta"``, or the name of an unavailable device; with an index as in ``"cpu:0"``.
    index : int, optional

    Notes
    -----
    A context manager and decorator that sets the default device of this thread.

    Examples
    --------
    >>> cygrad.device("cpu:0")
    device(type='cpu', index=0)
    >>> with cygrad.device("meta"):
    ...     x = cygrad.zeros(1000, 1000)
    >>> x.is_meta, x.shape
    (True, (1000, 1000))
    """

    def __init__(self, type, index=None):
        if isinstance(type, device) and index is None:
            self.type, self.index = (<device>type).type, (<device>type).index
            return
        if isinstance(type, int) and not isinstance(type, bool) and index is None:
            type, index = "cuda", type           # an index alone means an accelerator
        if not isinstance(type, str):
            raise TypeError(f"device: expected a name such as 'cpu' (got {type!r}).")
        name, colon, number = type.partition(":")
        if not name.isascii() or not name.isalpha() or not name.islower() or colon and not (
                number.isascii() and number.isdigit() and number == str(int(number))):
            raise RuntimeError(f"device: Invalid device string: {type!r} (expected 'cpu', or a name and a number as in "
                               "'cpu:0').")
        if name not in _TYPES:
            raise RuntimeError(f"device: no such type (got {type!r}{', GPUs are named cuda' * (name == 'gpu')}). "
                               f"Expected one of {', '.join(_TYPES)} device type at start of device string: {type}")
        if colon:
            if index is not None:
                raise RuntimeError(f"device: the index was given twice (got {type!r} and index={index!r}).")
            index = int(number)
        if index is not None:
            index = index.__index__()
            if index < 0:
                raise RuntimeError(f"device: the index must not be negative (got {index}).")
        self.type, self.index = name, index

    def __repr__(self):
        return f"device(type={self.type!r})" if self.index is None else \
            f"device(type={self.type!r}, index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == (<device>other).type and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self):
        self.entered = getattr(_own, "default", None), self.entered
        _set_default(self)
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # *args might fail to allocate
        former, self.entered = self.entered
        _set_default(former)


CPU = device("cpu")
META = device("meta")
cdef device _cpu = CPU
_own = threading.local()                 # .default: the default device of this thread, or None
cdef bint _any_default = False           # a thread has set a default
HAS_DEFAULT_DEVICE = []                  # not empty then: for modules that compare it


cdef int _set_default(device place) except -1:
    global _any_default
    if place is not None and place.type not in ("cpu", "meta"):
        refuse(place, "default device")
    if place is not None and not _any_default:
        _any_default = True
        HAS_DEFAULT_DEVICE.append(True)
    _own.default = place
    return 0


def set_default_device(device):
    """
    Set the default device of this thread.

    Parameters
    ----------
    device : device, str or None
        ``"cpu"``, ``"meta"``; None for the CPU.

    Examples
    --------
    >>> cygrad.set_default_device("cpu")
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    _set_default(None if device is None else as_device(device, "set_default_device"))


def get_default_device():
    """
    Return the default device of this thread.

    Returns
    -------
    device

    Examples
    --------
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    return getattr(_own, "default", None) or CPU


def as_device(place, str operation not None):
    """Convert a device or its name to a device."""
    if isinstance(place, device):
        return place
    if not isinstance(place, (str, int)) or isinstance(place, bool):
        raise TypeError(f"{operation}: expected a device or its name (got {place!r}).")
    return device(place)


class UnavailableDevice(RuntimeError, AssertionError):
    """The error for a device that is not there; PyTorch raises the one or the other, and programs catch either."""


def refuse(place, str operation not None):
    """Raise the error for an unavailable device."""
    asked = "backends.mps" if str(place).startswith("mps") else "cuda"
    raise UnavailableDevice(f"{operation}: no such device (got {str(place)!r}, expected 'cpu'). cygrad supports only "
                            f"the CPU: select the device with {asked}.is_available(), which returns False.")


cdef int meta_place(object place, str operation) except -1:
    if place is None:
        if not _any_default:
            return 0
        place = getattr(_own, "default", None)
        if place is None:
            return 0
    if place is _cpu or (PyUnicode_CheckExact(place) and place == "cpu"):
        return 0
    cdef device asked = <device>as_device(place, operation)
    if asked.type == "cpu" and (asked.index is None or asked.index == 0):
        return 0
    if asked.type == "meta":
        return 1
    refuse(asked, operation)


def is_meta_place(place, str operation not None):
    """Return whether a device is `meta`; raise for unavailable ones."""
    return bool(meta_place(place, operation))


# ------------------------------------------------------------------------------------------- layouts and memory formats

class _Name:
    """A named constant."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{library_name()}.{self.name}"

    def __reduce__(self):
        return _named, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class layout(_Name):
    """The layout of a tensor. All tensors are ``strided``; the other names exist for comparisons.

    Examples
    --------
    >>> cygrad.ones(2).layout is cygrad.strided
    True
    """

    __slots__ = ()


class memory_format(str):
    """The order of dimensions in memory: ``contiguous_format``, ``channels_last``, ...

    Examples
    --------
    >>> cygrad.ones(1, 2, 3, 3).to(memory_format=cygrad.channels_last).stride()
    (18, 1, 6, 2)
    """

    # A str, because operators take text arguments.
    __repr__ = __str__ = lambda self: f"{library_name()}.{self[:]}"

    def __reduce__(self):
        return _named, (self[:],)


LAYOUTS, MEMORY_FORMATS = {}, {}
for _name in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"):
    LAYOUTS[_name] = layout(_name)
for _name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
    MEMORY_FORMATS[_name] = memory_format(_name)
_NAMES = {**LAYOUTS, **MEMORY_FORMATS}
STRIDED = LAYOUTS["strided"]


def _named(name):
    return _NAMES[name]
