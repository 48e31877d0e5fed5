"""Element types: their codes, sizes, names and promotion."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

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
    # Storage-only dtypes from here on: kernels compute them in others, see computed_in().
    FLOAT16
    BFLOAT16
    COMPLEX32
    UINT16
    UINT32
    UINT64
    DTYPES            # number of dtypes: fits into four bits

ctypedef enum category_t:
    BOOLEAN_CATEGORY = 0
    INTEGRAL
    FLOATING
    COMPLEX_CATEGORY

# Predicates of every operation are bit tables: a few bits for each dtype.

cdef inline int64_t itemsize(int d) noexcept nogil:
    return <int64_t>1 << (<uint64_t>0x3212114332321000 >> 4 * d & 15)

cdef inline bint is_floating(int d) noexcept nogil:
    return 0xcc0 >> d & 1

cdef inline bint is_complex(int d) noexcept nogil:
    return 0x1300 >> d & 1

cdef inline bint is_differentiable(int d) noexcept nogil:
    return 0x1fc0 >> d & 1

cdef inline bint is_integral(int d) noexcept nogil:
    """Integers, bool excluded."""
    return 0xe03e >> d & 1

cdef inline bint is_unsigned(int d) noexcept nogil:
    return d == UINT8 or d >= UINT16

cdef inline int category(int d) noexcept nogil:
    return <uint32_t>0x57afa554 >> 2 * d & 3

cdef inline bint is_short(int d) noexcept nogil:
    """Return whether it is float16, bfloat16 or complex32, which kernels compute in 32-bit parts and round once."""
    return FLOAT16 <= d <= COMPLEX32

cdef inline int computed_in(int d) noexcept nogil:
    """Return the compute dtype: float16 -> float32, uint16 -> int64; most dtypes compute in themselves."""
    return <uint64_t>0xf558669876543210 >> 4 * d & 15

cdef inline int real_of(int d) noexcept nogil:
    """Return the dtype of the real part: complex64 -> float32, complex128 -> float64, others unchanged."""
    return FLOAT32 if d == COMPLEX64 else FLOAT64 if d == COMPLEX128 else FLOAT16 if d == COMPLEX32 else d

cdef inline int complex_of(int d) noexcept nogil:
    """
    Return the complex dtype: float32 -> complex64, float64 -> complex128; bfloat16 -> complex64, the smallest that
    fits.
    """
    return (COMPLEX64 if d == FLOAT32 or d == BFLOAT16 else COMPLEX128 if d == FLOAT64
            else COMPLEX32 if d == FLOAT16 else d)

cdef inline double largest(int d) noexcept nogil:
    """Return the largest finite number of a floating dtype, or of the parts of a complex one."""
    return (65504.0 if d == FLOAT16 or d == COMPLEX32 else 3.3895313892515355e38 if d == BFLOAT16
            else 1.7976931348623157e308 if d == FLOAT64 or d == COMPLEX128 else 3.4028234663852886e38)

# Return the smallest dtype that holds both, as PyTorch promotes two tensors of equal rank, and NumPy unsigned integers.
cdef int promote(int a, int b) noexcept nogil
# Return whether the two can be promoted; uint64 and signed integers cannot.
cdef bint promotable(int a, int b) noexcept nogil
cdef const char *dtype_name(int d) noexcept nogil
# The default floating dtype (FLOAT32 until set_default_dtype) and its complex companion.
cdef int default_float_code
cdef int default_complex() noexcept nogil


cdef inline int default_float() noexcept nogil:
    return default_float_code


cdef class dtype:
    """Return the Python object of a dtype; there is one for each."""
    cdef readonly int code
    cdef readonly str name

# Python object <-> code. `dtype_code` accepts a dtype, a NumPy dtype or scalar type, or the
# Python types float, int, bool and complex; anything else is a TypeError naming `operation`.
cdef dtype dtype_object(int code)
cdef int dtype_code(object value, str operation) except -1
# NumPy type number (NPY_FLOAT32 ...) for a code, and back (-1 where there is none).
cdef int numpy_typenum(int code) noexcept nogil
cdef int code_of_typenum(int typenum) noexcept nogil
