"""Chunk sizes of parallel loops, from the cost of an element."""

from libc.stdint cimport int64_t

cdef enum:
    CHUNK = 1 << 16            # additions of a chunk: some ten microseconds, in which a helper can join
    # Costs of an element, in additions.
    MOVED = 1                  # moved in contiguous memory, compared or subtracted
    GATHERED = 2               # moved from or to computed positions, or added to its neighbor
    COMPUTED = 4               # has some multiplications, or an exponential
    EXPENSIVE = 16             # takes dozens of operations, as in a sort or a recurrent cell


cdef inline int64_t rows_per_chunk(int64_t elements, int64_t cost) noexcept nogil:
    """Return how many rows of `elements` elements make a chunk."""
    return max(<int64_t>1, CHUNK // cost // max(elements, <int64_t>1))


cdef inline int64_t products_per_chunk(int64_t multiplications) noexcept nogil:
    """Return how many products make a chunk; four multiplications cost as much as an addition."""
    return rows_per_chunk(multiplications // 4, MOVED)
