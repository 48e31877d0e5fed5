"""
The stack of modes of a thread, which handle the calls of its operators.

A mode is a subclass of `Mode` with a position in the order of `graph.modes`; at most one is active at each position of
a thread (those written in Python form a list at theirs). Modes of CALL_MODES handle the call: they return its result,
and pass it on with `call` or `call_inplace` to the modes after them. Modes of RESULT_MODES get arguments and results of
executed operators.
"""

from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

cdef class InplaceStep:
    """Actions of a mode before and after an in-place operation."""
    # `original` is a copy of the elements, made because a formula saves them.
    cdef int saved_copy(self, array_t *original) except -1
    # Called after the tensor was modified and its node (or None) created.
    cdef int finish(self, Tensor tensor, NativeNode node) except -1

cdef class Mode:
    cdef Mode outer           # the next one of the same position, or None
    # CALL_MODES: return the result of a call. `arguments` are in the order of the row, defaults filled in.
    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace)
    # RESULT_MODES: an operator was executed; `results` goes to the caller, `node` may be None.
    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1
    # RESULT_MODES: an in-place operation is about to run; return None if there is nothing to do.
    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame)
    # Begin a node of a backward; the returned event is passed to end_node.
    cdef object begin_node(self, str name)
    cdef int end_node(self, object event) except -1
    # TRACING_MODE: called if the thread does something that cannot be traced.
    cdef int unsupported(self, str reason) except -1

# Return the mode at a position, or None. thread_state().modes says whether it is active.
cdef Mode mode_at(int position)
# Set the active mode at a position, or None; returns the former one.
cdef Mode exchange_mode(int position, Mode mode)
# Return all modes of this thread, as a copy for another thread, which enters them with set_modes() and leaves with
# None.
cdef list active_modes()
cdef int set_modes(list modes) except -1

# Call an operator in a thread with CALL_MODES: the first mode handles it.
cdef object handle_call(Operator operator, PyObject **arguments, object out, bint inplace)
cdef int notify_executed(Operator operator, frame_t *frame, object results, NativeNode node) except -1
cdef InplaceStep begin_inplace(Operator operator, frame_t *frame)
# Abort the trace of this thread, if there is one.
cdef int abort_trace(str reason) except -1
