"""Classes that take part in operations: subclasses of Tensor, and others that define ``__torch_function__``."""

from cpython.object cimport PyObject
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

cdef extern from *:
    """
    #define borrowed_type(value) ((PyObject *)Py_TYPE(value))
    """
    PyObject *borrowed_type(object value)

cdef PyObject *plain_subclass     # the one that most tensors of a subclass have; its results are plain Tensors


cdef inline bint is_plain(object value) noexcept:
    """Is it a Tensor whose class need not even be looked up?"""
    return type(value) is Tensor or borrowed_type(value) == plain_subclass


# Does the class of the value want to be asked? Never while a class is answering.
cdef bint overrides(object value) except -1
# Is it a tensor whose elements are elsewhere, with the object that its class made: an entry of a batch?
cdef bint is_entry(object value) except -1
# The call of an operator, handed to the classes of its arguments; `inplace`: of the form with an underscore.
cdef object override(Operator operator, PyObject **arguments, object out, bint inplace)
