"""Callbacks at the end of a backward."""

from libc.stdint cimport int64_t

# By the number of the backward. Each thread accesses only its own calls.
cdef dict callbacks

# Call those of a backward.
cdef int call_back(int64_t call) except -1
