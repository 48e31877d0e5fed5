"""Calls of a tensor and integers, such as ``x.view(2, 3)``, without a tuple of them."""

from cpython.object cimport PyObject
from cygrad._core.table.operator cimport Operator

# What Python calls functions by: it gets the function, the arguments, how many there are, and names of the last ones.
ctypedef object (*vectorcall_t)(PyObject *function, PyObject **given, size_t count, PyObject *names)

# The operator of a tensor and a list of integers, if that is what was given, and nothing is unusual; else `otherwise`.
cdef object call_with_sizes(Operator operator, vectorcall_t otherwise, PyObject *function, PyObject **given,
                            size_t count, PyObject *names)
# Let Python call `own` where it called the function of Cython's so far; -> what it called.
cdef vectorcall_t replace_call(object function, vectorcall_t own)
