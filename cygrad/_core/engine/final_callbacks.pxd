"""Functions that are called when a backward has ended."""

from libc.stdint cimport int64_t

# By the number of the backward. Each thread touches its own calls only.
cdef dict callbacks

# Call those of a backward.
cdef int call_back(int64_t call) except -1
