"""Fast path for a tensor and integers, such as ``x.view(2, 3)``, without a tuple."""

from cpython.object cimport PyObject
from cygrad._core.arrays.dtype cimport FLOAT16
from cygrad._core.graph.modes cimport CALL_MODES, thread_state
from cygrad._core.graph.tensor cimport Tensor, is_plain_object
from cygrad._core.table.operator cimport Operator, vectorcall_t

# ----------------------------------------------------------------------------------------------------------- size calls

# Fast path for a tensor and integers, such as ``x.view(2, 3)``, without a tuple.

cdef inline bint is_usual(PyObject *value) noexcept:
    """Return whether no mode handles calls, and the value is a plain Tensor of a dtype that kernels compute in."""
    return (is_plain_object(value) and (<Tensor>value).array.dtype < FLOAT16
            and not thread_state().modes & CALL_MODES)

# Call the operator with a tensor and a list of integers, if the arguments are plain; else `otherwise`.
cdef object call_with_sizes(Operator operator, vectorcall_t otherwise, PyObject *function, PyObject **given,
                            size_t count, PyObject *names)
