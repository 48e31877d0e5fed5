"""From a Python call to a recorded operation: boxing, promotion, the kernel, the node."""

from cpython.object cimport PyObject
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# Call an operator. `arguments` are borrowed, one per argument of the row, defaults filled in; `out` is None or the
# tensors to write to.
cdef object call(Operator operator, PyObject **arguments, object out)
# Call its in-place form, which modifies arguments[0] and returns it.
cdef object call_inplace(Operator operator, PyObject **arguments)
# Call an element-wise operator of one or two operands, with a fast path for small contiguous tensors.
cdef object unary(Operator operator, object input, object out)
cdef object binary(Operator operator, object input, object other, object out)
