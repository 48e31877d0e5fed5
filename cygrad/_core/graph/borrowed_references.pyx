"""
Borrowed pointers to Python objects that may be dying: mutexes for reading them without a GIL.

A mutex in each array would enlarge arrays in builds that need none, so arrays share these.
"""

from libc.stdint cimport int32_t

cdef enum:
    LOCKS = 64
    LINE = 16                  # a cache line each

cdef int32_t[LOCKS * LINE] _locks


cdef int32_t *lending_lock(const void *address) noexcept nogil:
    # Blocks of 128 bytes are the most frequent: neighbors get separate mutexes.
    return &_locks[((<size_t>address >> 7) ^ (<size_t>address >> 13)) % LOCKS * LINE]
