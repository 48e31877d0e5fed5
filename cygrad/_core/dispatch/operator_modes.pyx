"""Modes that Python code sets: profilers, modes written in Python, and precomputed results."""

cimport cython
from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport retain
from cygrad._core.arrays.value cimport NOTHING, clear, set_array, set_arrays, value_t
from cygrad._core.dispatch.dispatch cimport call, call_inplace
from cygrad._core.dispatch.execution cimport call_boxed
from cygrad._core.graph.boxing cimport box, frame_t, unbox
from cygrad._core.graph.mode_stack cimport Mode, exchange_mode, mode_at
from cygrad._core.graph.modes cimport PRECOMPUTED_MODE, PROFILER_MODE, USER_MODE
from cygrad._core.graph.override cimport override, python_arguments
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.memory.errors cimport check
from cygrad._core.table.operator cimport LIST_RESULT, MAX_RESULTS, Operator, operator_t


cdef inline object _proceed(Operator operator, PyObject **arguments, object out, bint inplace):
    return call_inplace(operator, arguments) if inplace else call(operator, arguments, out)


# ---- profilers

@cython.binding(False)
cdef class ProfilerMode(Mode):
    """Reports calls and nodes to a recorder, but no nested calls."""

    cdef object recorder

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        event = self.recorder.begin(operator.name + "_" if inplace else operator.name, "operator",
                                    [<object>arguments[i] for i in range(operator.descriptor.n_arguments)])
        try:
            return _proceed(operator, arguments, out, inplace)
        finally:
            self.end_node(event)

    cdef object begin_node(self, str name):
        return self.recorder.begin(name, "node", [])

    cdef int end_node(self, object event) except -1:
        if event is not None:
            self.recorder.end(event)
        return 0


def recorder():
    """Return the recorder of this thread, or None."""
    cdef Mode mode = mode_at(PROFILER_MODE)
    return None if mode is None else (<ProfilerMode>mode).recorder


def set_recorder(recorder):
    """
    Report every operator and node of this thread to `recorder`, or stop with None; return the former one.

    It has the methods ``begin(name, kind, arguments)``, which returns an event or None, and ``end(event)``.
    """
    cdef ProfilerMode mode = None
    if recorder is not None:
        mode = ProfilerMode()
        mode.recorder = recorder
    former = exchange_mode(PROFILER_MODE, mode)
    return None if former is None else (<ProfilerMode>former).recorder


# ---- modes written in Python

@cython.binding(False)
cdef class UserMode(Mode):
    """Passes calls to ``handler(name, arguments, options, out, inplace)``, which returns the result of the call."""

    cdef object handler

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        positional, options = python_arguments(operator, arguments)
        return self.handler(operator.name, positional, options, out, inplace)


def push_user_mode(handler):
    """Push a mode on this thread that passes calls to `handler` first."""
    cdef UserMode mode = UserMode()
    mode.handler, mode.outer = handler, mode_at(USER_MODE)
    exchange_mode(USER_MODE, mode)
    return mode.outer


def set_user_mode(Mode mode):
    """Set the innermost mode: one that push_user_mode() returned, or None; return the former one."""
    return exchange_mode(USER_MODE, mode)


# ---- precomputed results

@cython.binding(False)
cdef class PrecomputedMode(Mode):
    """Gives one operator precomputed results: its call records the node and computes nothing."""

    cdef str name
    cdef tuple results

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        cdef frame_t frame
        cdef value_t[MAX_RESULTS] values
        cdef int i
        if self.name != operator.name or inplace:
            return _proceed(operator, arguments, out, inplace)
        self.name = None
        _keep_alive = box(operator, arguments, &frame)
        if frame.overridden:                 # the class of an argument computes
            unbox(&frame)
            return override(operator, arguments, out, False)
        for i in range(MAX_RESULTS):
            values[i].kind = NOTHING
        try:
            _fill(self.results, operator.descriptor, values)
        except BaseException:
            unbox(&frame)
            for i in range(MAX_RESULTS):
                clear(&values[i])
            raise
        return call_boxed(operator, &frame, out, values)


def call_precomputed(str name, tuple results, function, arguments, options):
    """Call an operator's function so that it records its node, and returns `results` instead of computing them."""
    cdef PrecomputedMode mode = PrecomputedMode()
    mode.name, mode.results = name, results
    cdef Mode user = exchange_mode(USER_MODE, None)           # other modes count what is computed
    cdef Mode profiler = exchange_mode(PROFILER_MODE, None)
    cdef Mode outer = exchange_mode(PRECOMPUTED_MODE, mode)
    try:
        return function(*arguments, **options)
    finally:
        exchange_mode(PRECOMPUTED_MODE, outer)
        exchange_mode(PROFILER_MODE, profiler)
        exchange_mode(USER_MODE, user)


cdef int _fill(tuple given, const operator_t *op, value_t *results) except -1:
    """Return the results as a kernel does, in arrays without a Tensor."""
    cdef int i
    if op.flags & LIST_RESULT:
        check(set_arrays(&results[0], len(given)))
    for i in range(len(given)):
        tensor = <Tensor>(<Tensor?>given[i]).detach()
        if op.flags & LIST_RESULT:
            results[0].of.arrays[i] = retain((<Tensor>tensor).array)
        else:
            set_array(&results[i], retain((<Tensor>tensor).array))
    return 0
