"""Several cheap operations on the same elements, block by block, with what one makes in registers for the next."""

from libc.stdint cimport int64_t

cdef extern from "primitives/chains.h" nogil:
    ctypedef int64_t (*chain_t)(const chain_step_t *, int64_t, int64_t) noexcept nogil
    const chain_t chain_loops[1][2]
    int simd_target()


cdef int64_t run_chain(bint double_precision, const chain_step_t *steps, int64_t count, int64_t n) noexcept nogil:
    return chain_loops[simd_target()][double_precision](steps, count, n)
