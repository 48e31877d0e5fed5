"""Status codes: how code without the GIL reports an error, and the one place that raises it."""

from libc.stdint cimport int64_t

# --------------------------------------------------------------------------------------------------------------- errors

ctypedef enum status_t:
    OK = 0
    RUNTIME_ERROR
    TYPE_ERROR
    VALUE_ERROR
    INDEX_ERROR
    MEMORY_ERROR
    NOT_IMPLEMENTED
    ZERO_DIVISION

cdef extern from * nogil:
    bint unlikely(bint)            # a macro of Cython's

# Size of the buffers of `message()` and of each text of `shape_text`.
cdef enum:
    MESSAGE = 1024
    SHAPE_TEXT = 256

# This thread's message buffer. A failing function writes its text with
# `snprintf(message(), MESSAGE, ...)` and returns a status other than OK.
cdef char *message() noexcept nogil
# "(2, 3)" in one of a few rotating buffers of this thread: good until eight calls later.
cdef const char *sizes_text(int n, const long long *values) noexcept nogil
# Raise the Python exception for a status other than OK, with this thread's message.
cdef int raise_status(int status) except -1


# The same for a status of any kind; 0 if it is OK.
cdef inline int check(int status) except -1:
    return 0 if status == OK else raise_status(status)


# ---------------------------------------------------------------------------------------------------------------- sizes

# How many elements a shape has: the one place where products of sizes are checked.

cdef extern from * nogil:
    """
    #define MAX_ELEMENTS (INT64_MAX / 16)
    """
    const int64_t MAX_ELEMENTS
    bint product_overflows "__builtin_mul_overflow" (int64_t a, int64_t b, int64_t *product)


# Return the number of elements of a shape; -1 and a message if it exceeds MAX_ELEMENTS, so that bytes can be counted
# as well. With a size of 0 the number is 0, however large the other sizes. Call it for every shape before allocating.
# Sizes must not be negative.
cdef inline int64_t elements_of(int ndim, const int64_t *shape) noexcept nogil:
    cdef int64_t size = 1
    cdef int i
    for i in range(ndim):
        if product_overflows(size, shape[i], &size):
            return elements_of_huge(ndim, shape)
    return size if size <= MAX_ELEMENTS else elements_of_huge(ndim, shape)


# The same, where an intermediate product is too large: 0 or -1.
cdef int64_t elements_of_huge(int ndim, const int64_t *shape) noexcept nogil
