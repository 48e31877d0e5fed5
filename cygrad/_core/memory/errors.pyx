"""Status codes: how code without the GIL reports an error, and the one place that raises it."""

from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.string cimport strncmp


# --------------------------------------------------------------------------------------------------------------- errors

cdef extern from * nogil:
    """
    static __thread char message_text[1024];
    static __thread char sizes_texts[8][256];
    static __thread unsigned sizes_next;
    """
    char message_text[1024]
    char sizes_texts[8][256]
    unsigned sizes_next


cdef char *message() noexcept nogil:
    return message_text


cdef const char *sizes_text(int n, const long long *values) noexcept nogil:
    global sizes_next
    cdef char *text = sizes_texts[sizes_next % 8]
    cdef int i, used = snprintf(text, SHAPE_TEXT, b"(")
    sizes_next += 1
    for i in range(n):
        if used > SHAPE_TEXT - 32:      # too long to print whole
            used += snprintf(text + used, SHAPE_TEXT - used, b"...")
            break
        used += snprintf(text + used, SHAPE_TEXT - used, b"%s%lld", b", " if i else b"", values[i])
    snprintf(text + used, SHAPE_TEXT - used, b"%s", b",)" if n == 1 else b")")
    return text


class IntegerDivisionError(RuntimeError, ZeroDivisionError):
    """Division by zero where there is no inf. A ZeroDivisionError, as in Python, and a RuntimeError, as in PyTorch."""


_exceptions = {
    RUNTIME_ERROR: RuntimeError,
    TYPE_ERROR: TypeError,
    VALUE_ERROR: ValueError,
    INDEX_ERROR: IndexError,
    MEMORY_ERROR: MemoryError,
    NOT_IMPLEMENTED: NotImplementedError,
    ZERO_DIVISION: IntegerDivisionError,
}


cdef const char *_too_large = b"sizes: too many elements "        # what a message of `sizes.elements_of` begins with


cdef int raise_status(int status) except -1:
    # A function that cannot allocate an array returns MEMORY_ERROR. The message passes from thread to thread with the
    # status and tells whether memory is exhausted or the shape has too many elements.
    if status == MEMORY_ERROR and strncmp(message_text, _too_large, 25) == 0:
        status = RUNTIME_ERROR
    text = message_text.decode("utf-8", "replace")
    raise _exceptions[status](f"operation{text}" if text[:1] == ":" else text)


# ---------------------------------------------------------------------------------------------------------------- sizes

# Shapes with more elements than can be counted.

cdef int64_t elements_of_huge(int ndim, const int64_t *shape) noexcept nogil:
    cdef int i
    for i in range(ndim):
        if shape[i] == 0:
            return 0
    # `raise_status` recognizes this beginning: no amount of memory would help.
    snprintf(message(), MESSAGE, b"sizes: too many elements for 64-bit arithmetic (got shape %s). Use smaller sizes, "
             b"or split the tensors.", sizes_text(ndim, <const long long *>shape))
    return -1
