"""The argument out=, and the named tuples of several results."""

from libc.stdint cimport uint32_t
from cygrad._core.arrays.value cimport value_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.table.operator cimport Operator

# May the call write there? Ask before computing.
cdef int check_out(Operator operator, frame_t *frame, object out, uint32_t needed) except -1
# Cast and copy the results; returns the user's `out`.
cdef object write_out(Operator operator, value_t *results, object out)
# Return the named tuple of several results, created on the operator's first use.
cdef object result_type(Operator operator)
