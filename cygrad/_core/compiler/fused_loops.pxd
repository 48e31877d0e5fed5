"""Element-wise expressions of compiled programs, and fused loops: several of them in one pass over memory."""

from libc.stdint cimport int32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.program cimport MAX_INPUTS, program_t

cdef enum:
    MAX_OPERANDS = 48

# Expression of a fused loop. Operands are numbered: arguments, results, then temporaries of the loop.
ctypedef struct stage_t:
    program_t *program
    int32_t inputs[<int>MAX_INPUTS]
    int32_t out

ctypedef struct fused_loop_t:
    stage_t *stages
    int32_t n_stages, n_arguments, n_results, n_temporaries

cdef class Expression:
    cdef program_t program
    cdef list numbers

cdef class FusedLoop:
    cdef fused_loop_t fused_loop
    cdef list expressions

# Run a fused loop; results of the layouts layouts[slots[k]] go into table[slots[k]].
cdef int run_fused_loop(const fused_loop_t *fused_loop, const value_t *arguments, array_t **layouts,
                        const int32_t *slots, array_t **table) noexcept nogil
