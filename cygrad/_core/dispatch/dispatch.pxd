"""From a Python call to a recorded operation: boxing, promotion, the kernel, the node."""

from cpython.object cimport PyObject
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

# What the generated functions call. `arguments` are borrowed, one per argument of the row (defaults filled in by
# the caller, so every entry is an object); `out` is None or the tensor(s) to write to.
cdef object call(Operator operator, PyObject **arguments, object out)
# The form with a trailing underscore: changes arguments[0] in place and returns it.
cdef object call_inplace(Operator operator, PyObject **arguments)
# Short ways for element-wise operators of one and two operands; they do just what `call` does.
cdef object unary(Operator operator, object input, object out)
cdef object binary(Operator operator, object input, object other, object out)
