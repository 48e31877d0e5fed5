"""Grain sizes of parallel loops, from the cost of an element."""

from libc.stdint cimport int64_t

cdef enum:
    CHUNK = 1 << 16            # elements of a chunk whose cost is 1
    # Costs of an element, relative to one that is moved between contiguous memory.
    MOVED = 1                  # ... or compared, or subtracted
    GATHERED = 2               # moved from or to computed positions, or added to its neighbor
    COMPUTED = 4               # has some multiplications, or an exponential
    EXPENSIVE = 16             # takes dozens of operations, as in a sort or a recurrent cell

# Return how many rows of `elements` elements make a chunk.
cdef inline int64_t rows_per_chunk(int64_t elements, int64_t cost) noexcept nogil:
    return max(<int64_t>1, CHUNK // cost // max(elements, <int64_t>1))
