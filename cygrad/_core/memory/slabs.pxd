"""Slabs: the shared supply of small blocks, handed out in batches. Empty slabs return to the system."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    UNIT = 64                  # blocks are multiples of this, and aligned to it
    CLASSES = 33               # class c holds blocks of c * UNIT bytes; class 0 is not used
    LARGEST_SMALL = 2048

# A free block: a link in a chain.
ctypedef struct block_t:
    block_t *next

# Return a chain of at most `wanted` blocks and their number in `taken` (0 if memory is exhausted).
cdef block_t *take_blocks(int size_class, int32_t wanted, int32_t *taken) noexcept nogil
# Free a chain of blocks, from any thread.
cdef void give_blocks(block_t *chain) noexcept nogil
# Return unused slabs to the system; -> bytes returned.
cdef int64_t trim_slabs() noexcept nogil
# Return the bytes mapped for slabs, and the free bytes among them.
cdef void slab_bytes(int64_t *mapped, int64_t *idle) noexcept nogil
