"""Element types: their codes, sizes, names and promotion."""

from libc.stdint cimport int64_t

ctypedef enum dtype_t:
    BOOL = 0
    UINT8
    INT8
    INT16
    INT32
    INT64
    FLOAT32
    FLOAT64
    COMPLEX64
    COMPLEX128
    DTYPES            # how many there are

ctypedef enum category_t:
    BOOLEAN_CATEGORY = 0
    INTEGRAL
    FLOATING
    COMPLEX_CATEGORY

cdef inline int64_t itemsize(int d) noexcept nogil:
    return (1 if d <= INT8 else 2 if d == INT16 else 4 if (d == INT32 or d == FLOAT32)
            else 16 if d == COMPLEX128 else 8)

cdef inline bint is_floating(int d) noexcept nogil:
    return d == FLOAT32 or d == FLOAT64

cdef inline bint is_complex(int d) noexcept nogil:
    return d >= COMPLEX64

cdef inline bint is_differentiable(int d) noexcept nogil:
    return d >= FLOAT32

cdef inline bint is_integral(int d) noexcept nogil:
    """Integers, bool excluded."""
    return UINT8 <= d <= INT64

cdef inline int category(int d) noexcept nogil:
    return (BOOLEAN_CATEGORY if d == BOOL else INTEGRAL if d <= INT64
            else FLOATING if d <= FLOAT64 else COMPLEX_CATEGORY)

cdef inline int real_of(int d) noexcept nogil:
    """The dtype of the real part: complex64 -> float32, complex128 -> float64, others unchanged."""
    return FLOAT32 if d == COMPLEX64 else FLOAT64 if d == COMPLEX128 else d

cdef inline int complex_of(int d) noexcept nogil:
    """float32 -> complex64, float64 -> complex128, others unchanged."""
    return COMPLEX64 if d == FLOAT32 else COMPLEX128 if d == FLOAT64 else d

# The smallest type that holds both, as PyTorch promotes two tensors of equal rank.
cdef int promote(int a, int b) noexcept nogil
cdef const char *dtype_name(int d) noexcept nogil
# The default floating dtype (FLOAT32 until set_default_dtype) and its complex companion.
cdef int default_float() noexcept nogil
cdef int default_complex() noexcept nogil

cdef class dtype:
    """The Python object for an element type; one object for each type."""
    cdef readonly int code
    cdef readonly str name

# Python object <-> code. `dtype_code` accepts a dtype, a NumPy dtype or scalar type, or the
# Python types float, int, bool and complex; anything else is a TypeError naming `operation`.
cdef dtype dtype_object(int code)
cdef int dtype_code(object value, str operation) except -1
# NumPy type number (NPY_FLOAT32 ...) for a code, and back (-1 where there is none).
cdef int numpy_typenum(int code) noexcept nogil
cdef int code_of_typenum(int typenum) noexcept nogil
