"""Status codes: how code without the GIL reports an error, and the one place that raises it."""

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
# Raise the Python exception for `status` with this thread's message; 0 if status is OK.
cdef int check(int status) except -1
