"""Large blocks: data of more than 2 KiB, recycled by size class in a cache that all threads share."""

from libc.stdint cimport int64_t

ctypedef struct large_stats_t:
    int64_t in_use        # bytes in use, rounded up to size classes
    int64_t peak          # peak of `in_use`
    int64_t cached        # bytes of free blocks
    int64_t limit         # limit of `waiting`
    int64_t reused        # requests served from the cache
    int64_t fresh         # requests that went to the system

# Return a block of at least `nbytes`, 64-byte aligned, and its class; NULL if memory is exhausted.
cdef char *take_large(int64_t nbytes, int *size_class) noexcept nogil
cdef void give_large(char *block, int size_class) noexcept nogil
# The same for memory that is freed with its size instead of its class.
cdef void *take_exact(int64_t nbytes) noexcept nogil
cdef void give_exact(void *block, int64_t nbytes) noexcept nogil
# Return all free blocks to the system; -> bytes returned.
cdef int64_t trim_large() noexcept nogil
cdef void set_large_limit(int64_t nbytes) noexcept nogil
cdef large_stats_t large_stats() noexcept nogil
