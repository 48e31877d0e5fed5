"""The argument out=: results written to tensors that are there; and the named tuples that results come in."""

from libc.stdint cimport uint32_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.table.operator cimport Operator

# May the call write there? To be asked before anything is computed.
cdef int check_out(Operator operator, frame_t *frame, object out, uint32_t needed) except -1
# Cast and copy the results; returns what the user gave as `out`.
cdef object write_out(Operator operator, value_t *results, object out)
# The named tuple for several results, made at the first use of the operator.
cdef object result_type(Operator operator)
