"""
The stack of modes of a thread: what sees the calls of its operators.

A mode is a subclass of `Mode`, and has a position in the order of `graph.modes`; at most one is active at each
position of a thread (those written in Python form a list at theirs). Modes of CALL_MODES handle the call: they return
what the caller gets, and let it go on with `call` or `call_inplace`, which the modes after them see. Modes of
RESULT_MODES get arguments and results of what was executed.
"""

from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport array_t
from cygrad._core.graph.boxing cimport frame_t
from cygrad._core.graph.native cimport NativeNode
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.table.operator cimport Operator

cdef class InplaceStep:
    """What a mode does before and after an in-place operation."""
    # `original` is a copy of the elements, made because a formula saves them.
    cdef int saved_copy(self, array_t *original) except -1
    # The tensor is modified, and its node (or None) is made.
    cdef int finish(self, Tensor tensor, NativeNode node) except -1

cdef class Mode:
    cdef Mode outer           # the one of the same position that sees the call next, or None
    # CALL_MODES: the result of a call. `arguments` are in the order of the row, defaults filled in.
    cdef object handle(self, Operator operator, PyObject **arguments, object out, bint inplace)
    # RESULT_MODES: an operator was executed; `results` is what the caller gets, `node` may be None.
    cdef int executed(self, Operator operator, frame_t *frame, object results, NativeNode node) except -1
    # RESULT_MODES: an in-place operation is about to be executed; None if there is nothing to do.
    cdef InplaceStep begin_inplace(self, Operator operator, frame_t *frame)
    # A node of a backward begins, and ends with the event that was returned.
    cdef object begin_node(self, str name)
    cdef int end_node(self, object event) except -1
    # TRACING_MODE: the thread does what a trace cannot contain.
    cdef int unsupported(self, str reason) except -1

# The mode at a position, or None. Whether it is active is said by thread_state().modes.
cdef Mode mode_at(int position)
# Let a mode, or None, be the active one at a position; returns the one before it.
cdef Mode exchange_mode(int position, Mode mode)
# All modes of this thread, and their copy for another thread: it enters them with set_modes(), and leaves with None.
cdef list active_modes()
cdef int set_modes(list modes) except -1

# The call of an operator in a thread with CALL_MODES: the first one handles it.
cdef object handle_call(Operator operator, PyObject **arguments, object out, bint inplace)
cdef int tell_executed(Operator operator, frame_t *frame, object results, NativeNode node) except -1
cdef InplaceStep begin_inplace(Operator operator, frame_t *frame)
# Abort the trace of this thread, if there is one.
cdef int abort_trace(str reason) except -1
