"""
Fast path for a tensor and integers, such as ``x.view(2, 3)``, without a tuple.

Building a tuple and boxing its integers takes longer than the view itself, so they are read from the vectorcall
arguments.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.value cimport INTEGERS
from cygrad._core.dispatch.execution cimport call_boxed
from cygrad._core.graph.boxing cimport INTEGER_CAPACITY, begin_frame, frame_t
from cygrad._core.graph.tensor cimport Tensor, type_of
from cygrad._core.memory.errors cimport unlikely
from cygrad._core.table.operator cimport Operator, vectorcall_t

cdef extern from *:
    """
    #define argument_count(count) ((int)PyVectorcall_NARGS(count))
    """
    int argument_count(size_t count)
    int64_t PyLong_AsLongLongAndOverflow(PyObject *given, int *overflow)


cdef object call_with_sizes(Operator operator, vectorcall_t otherwise, PyObject *function, PyObject **given,
                            size_t count, PyObject *names):
    cdef frame_t frame
    cdef int i, overflow = 0, n = argument_count(count) - 1
    if unlikely(names != NULL or n < 1 or n > <int>INTEGER_CAPACITY or not is_usual(given[0])):
        return otherwise(function, given, count, names)
    for i in range(n):
        if type_of(given[i + 1]) != <PyObject *>int:
            return otherwise(function, given, count, names)
        frame.integers[i] = PyLong_AsLongLongAndOverflow(given[i + 1], &overflow)
        if unlikely(overflow):
            return otherwise(function, given, count, names)
    begin_frame(&frame, <Tensor>given[0], 1)
    frame.used = n
    frame.values[1].kind = INTEGERS
    frame.values[1].count = n
    frame.values[1].of.integers = frame.integers
    return call_boxed(operator, &frame, None, NULL)
