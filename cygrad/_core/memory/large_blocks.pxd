"""Large blocks: data of more than 2 KiB, recycled by size class in a cache that all threads share."""

from libc.stdint cimport int64_t

ctypedef struct large_stats_t:
    int64_t in_use        # bytes handed out, rounded up to their classes
    int64_t peak          # the most that `in_use` has been
    int64_t cached        # bytes waiting for reuse
    int64_t limit         # the most that may wait
    int64_t reused        # how many requests the cache could serve
    int64_t fresh         # ... and how many went to the system

# A block of at least `nbytes`, 64-byte aligned, and its class; NULL if memory is exhausted.
cdef char *take_large(int64_t nbytes, int *size_class) noexcept nogil
cdef void give_large(char *block, int size_class) noexcept nogil
# The same without a class to remember: for plain memory that is given back with its size.
cdef void *take_exact(int64_t nbytes) noexcept nogil
cdef void give_exact(void *block, int64_t nbytes) noexcept nogil
# Return all waiting blocks to the system; -> bytes returned.
cdef int64_t trim_large() noexcept nogil
cdef void set_large_limit(int64_t nbytes) noexcept nogil
cdef large_stats_t large_stats() noexcept nogil
