"""Slabs: the shared supply of small blocks, in batches, of which empty parts return to the system."""

from libc.stdint cimport int32_t, int64_t

cdef enum:
    UNIT = 64                  # blocks are multiples of this, and aligned to it
    CLASSES = 33               # class c holds blocks of c * UNIT bytes; class 0 is not used
    LARGEST_SMALL = 2048

# A free block: a link in a chain.
ctypedef struct block_t:
    block_t *next

# A chain of at most `wanted` blocks; *taken says how many (0 if memory is exhausted).
cdef block_t *take_blocks(int size_class, int32_t wanted, int32_t *taken) noexcept nogil
# Give a chain back; the blocks may have been taken by any thread.
cdef void give_blocks(block_t *chain) noexcept nogil
# Return slabs without a used block to the system; -> bytes returned.
cdef int64_t trim_slabs() noexcept nogil
# Bytes mapped for slabs, and the free bytes among them.
cdef void slab_bytes(int64_t *mapped, int64_t *idle) noexcept nogil
