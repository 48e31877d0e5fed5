"""Estimate of the work of a call."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport ARRAY, ARRAYS
from cygrad._core.graph.boxing cimport frame_t


cdef inline int64_t size_of(frame_t *frame) noexcept:
    """Return the number of elements of the arguments."""
    cdef int i, j
    cdef int64_t size = 0
    for i in range(frame.n):
        if frame.values[i].kind == ARRAY:
            size += frame.values[i].of.array.size
        elif frame.values[i].kind == ARRAYS:
            for j in range(frame.values[i].count):
                if frame.values[i].of.arrays[j] != NULL:
                    size += frame.values[i].of.arrays[j].size
    return size
