"""What a profiler is told: when an operation or a node begins, and when it ends; and taking operations over."""

from cygrad._core.arrays.array cimport retain
from cygrad._core.arrays.value cimport set_array, set_arrays, value_t
from cygrad._core.graph.modes cimport thread_state
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.errors cimport check
from cygrad._core.table.operator cimport LIST_RESULT, Operator, operator_t

import threading


class _Recorders(threading.local):
    """The recorder of each thread that is profiled, and the results that its next operation has already."""

    current = given = None


_recorders = _Recorders()


cdef object begin_event(str name, str kind, list arguments):
    return _recorders.current.begin(name, kind, arguments) if profiled() and _recorders.current is not None else None


cdef int end_event(object event) except -1:
    recorder = _recorders.current
    if event is not None and recorder is not None:         # it may have been taken away in between
        recorder.end(event)
    return 0


cdef tuple intercept(Operator operator, list values, object out, bint inplace):
    """The result of an operation that the recorder takes over, alone in a tuple; None if it does not do that."""
    cdef operator_t *op = operator.descriptor
    cdef int i, n = op.n_positional
    handler = getattr(_recorders.current, "intercept", None)
    if handler is None:
        return None
    options = {}
    for i in range(n, op.n_arguments):
        options[op.arguments[i].name.decode()] = values[i]
    return handler(operator.name, values[:n], options, out, inplace),


def call_given(str name, tuple results, function, arguments, options):
    """Call an operator's function so that it records its node, and takes `results` without computing them."""
    _recorders.given = name, results
    thread_state().anomaly |= GIVEN
    try:
        return function(*arguments, **options)
    finally:
        _recorders.given = None
        thread_state().anomaly &= ~GIVEN


cdef tuple take_given(str name):
    """The results that this operation has already, once; None if it has none."""
    if _recorders.given is None or _recorders.given[0] != name:
        return None
    results = _recorders.given[1]
    _recorders.given = None
    thread_state().anomaly &= ~GIVEN
    return results


cdef int fill_given(tuple given, const operator_t *op, value_t *results) except -1:
    """Put them where a kernel would have."""
    cdef int i
    if op.flags & LIST_RESULT:
        check(set_arrays(&results[0], len(given)))
    for i in range(len(given)):
        tensor = <Tensor>(<Tensor?>given[i]).detach()             # arrays that no Tensor has yet
        if op.flags & LIST_RESULT:
            results[0].of.arrays[i] = retain((<Tensor>tensor).array)
        else:
            set_array(&results[i], retain((<Tensor>tensor).array))
    return 0


def recorder():
    """The recorder of this thread, or None."""
    return _recorders.current


def set_recorder(recorder):
    """
    Tell `recorder` of every operation and node of this thread from now on; None: nobody.

    It has the methods ``begin(name, kind, arguments)``, which returns something, and ``end(that)``. While one is told
    of an operation, no others within it are reported. With a method ``intercept(name, arguments, options, out,
    inplace)`` it computes operations itself, and is not told of them otherwise.
    """
    former = _recorders.current
    _recorders.current = recorder
    if recorder is None:
        thread_state().anomaly &= ~PROFILED
    else:
        thread_state().anomaly |= PROFILED
    return former
