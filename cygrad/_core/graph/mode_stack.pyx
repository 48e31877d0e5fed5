"""The stack of modes of a thread, which handle the calls of its operators."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.modes cimport (
    FORWARD_MODE, MODES, TRACING_MODE, is_tracing, thread_state, thread_state_t)
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.tensor cimport Tensor, protocol
from cygrad._core.table.operator cimport Operator


@cython.binding(False)      # methods check the type of self
cdef class InplaceStep:

    cdef int saved_copy(self, array_t *original) except -1:
        return 0

    cdef int finish(self, Tensor tensor, NativeNode node) except -1:
        return 0


@cython.binding(False)
cdef class Mode:

    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace):
        raise NotImplementedError(f"{type(self).__name__} does not handle calls.")

    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1:
        return 0

    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame):
        return None

    cdef object begin_node(self, str name):
        return None

    cdef int end_node(self, object event) except -1:
        return 0

    cdef int unsupported(self, str reason) except -1:
        return 0


cdef Mode mode_at(int position):
    cdef void *mode = thread_state().mode_objects[position]
    return None if mode == NULL else <Mode>mode


cdef Mode exchange_mode(int position, Mode mode):
    cdef thread_state_t *state = thread_state()
    cdef Mode former = mode_at(position)
    cdef void *owned = state.mode_objects[position]
    if mode is None:
        state.modes &= ~(<uint32_t>1 << position)
        state.mode_objects[position] = NULL
    else:
        Py_INCREF(mode)
        state.mode_objects[position] = <void *>mode
        state.modes |= <uint32_t>1 << position
    Py_XDECREF(<PyObject *>owned)
    return former


cdef list active_modes():
    cdef int i
    return [mode_at(i) if thread_state().modes >> i & 1 else None for i in range(<int>MODES)]


cdef int set_modes(list modes) except -1:
    cdef int i
    for i in range(<int>MODES):
        exchange_mode(i, None if modes is None else <Mode>modes[i])
    return 0


cdef object handle_call(Operator operator, PyObject **arguments, object out, bint inplace):
    cdef uint32_t modes = thread_state().modes
    cdef int position = 0
    cdef Mode mode
    while not modes >> position & 1:
        position += 1
    mode = mode_at(position)
    # Calls by the mode are seen by the modes after it.
    exchange_mode(position, mode.outer)
    try:
        return mode.handle(operator, arguments, out, inplace)
    finally:
        exchange_mode(position, mode)


cdef int notify_executed(Operator operator, frame_t *frame, object results, NativeNode node) except -1:
    if thread_state().modes & 1 << FORWARD_MODE:
        mode_at(FORWARD_MODE).executed(operator, frame, results, node)
    if is_tracing():
        mode_at(TRACING_MODE).executed(operator, frame, results, node)
    return 0


cdef InplaceStep begin_inplace(Operator operator, frame_t *frame):
    # Never both: entering a level of forward mode aborts a trace.
    return mode_at(TRACING_MODE if is_tracing() else FORWARD_MODE).begin_inplace(operator, frame)


cdef int abort_trace(str reason) except -1:
    return mode_at(TRACING_MODE).unsupported(reason) if is_tracing() else 0


cdef int _data_escapes() except -1:
    return abort_trace("elements went to Python or NumPy, or came from there")


protocol.data_escapes = _data_escapes
