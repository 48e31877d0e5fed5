"""Classes that take part in operations: subclasses of Tensor, and others that define ``__torch_function__``."""

from cpython.object cimport PyObject
from cygrad._core.table.operator cimport Operator

# Does the class of the value want to be asked? Never while a class is answering.
cdef bint overrides(object value) except -1
# Is it a tensor whose elements are elsewhere, with the object that its class made: an entry of a batch?
cdef bint is_entry(object value) except -1
# The arguments of a call as Python code gives them: a list of positional ones, a dict of others.
cdef tuple python_arguments(Operator operator, PyObject **arguments)
# The call of an operator, handed to the classes of its arguments; `inplace`: of the form with an underscore.
cdef object override(Operator operator, PyObject **arguments, object out, bint inplace)
