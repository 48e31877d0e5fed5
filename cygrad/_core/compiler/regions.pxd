"""Element-wise programs made while a recording is lowered, and sweeps: several of them in one pass over memory."""

from libc.stdint cimport int32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.elementwise.program cimport MAX_INPUTS, program_t

cdef enum:
    MAX_PLACES = 48

# One program of a sweep. Places are first the arguments, then the results, then rooms for what nobody else reads.
ctypedef struct part_t:
    program_t *program
    int32_t inputs[<int>MAX_INPUTS]
    int32_t out

ctypedef struct sweep_t:
    part_t *parts
    int32_t n_parts, n_arguments, n_results, n_rooms

cdef class Region:
    cdef program_t program
    cdef list numbers

cdef class Sweep:
    cdef sweep_t sweep
    cdef list regions

# Run it; results, which look like layouts[slots[k]], go into table[slots[k]].
cdef int run_sweep(const sweep_t *sweep, const value_t *arguments, array_t **layouts, const int32_t *slots,
                   array_t **table) noexcept nogil
