"""How many elements a shape has: the one place where products of sizes are checked."""

from libc.stdint cimport int64_t

cdef extern from * nogil:
    """
    #define MOST_ELEMENTS (INT64_MAX / 16)
    """
    const int64_t MOST_ELEMENTS
    bint product_overflows "__builtin_mul_overflow" (int64_t a, int64_t b, int64_t *product)


# The number of elements; -1 and a message if there are more than a sixteenth of what 64 bits count, so that bytes can
# be counted as well. With a size of 0 there are none, however large the others. Every shape that an array is made of,
# or operands broadcast to, goes through it before memory is asked for. That no size is negative is not checked here.
cdef inline int64_t elements_of(int ndim, const int64_t *shape) noexcept nogil:
    cdef int64_t size = 1
    cdef int i
    for i in range(ndim):
        if product_overflows(size, shape[i], &size):
            return elements_of_huge(ndim, shape)
    return size if size <= MOST_ELEMENTS else elements_of_huge(ndim, shape)


# The same, where a product along the way is too large: 0 or -1.
cdef int64_t elements_of_huge(int ndim, const int64_t *shape) noexcept nogil
