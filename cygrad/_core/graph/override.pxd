"""Classes that override operations: subclasses of Tensor, and others with ``__torch_function__``."""

from cpython.object cimport PyObject
from cygrad._core.table.operator cimport Operator

# Does the class of the value override operations? Never inside an override.
cdef bint overrides(object value) except -1
# Is it a tensor with its elements in another object, which its class made: an entry of a batch?
cdef bint is_entry(object value) except -1
# Return the arguments of a call as Python passes them: a list of positional ones, a dict of others.
cdef tuple python_arguments(Operator operator, PyObject **arguments)
# Pass the call of an operator to the classes of its arguments; `inplace`: its in-place form.
cdef object override(Operator operator, PyObject **arguments, object out, bint inplace)
