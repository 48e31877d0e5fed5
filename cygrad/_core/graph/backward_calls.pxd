"""Records of backward calls, for messages that name the call that freed a graph."""

from libc.stdint cimport int64_t
from cygrad._core.graph.node cimport node_t

# Set the call that this thread works for (0: none, -1: a call from no user code); returns the former one.
cdef int64_t work_for(int64_t call) noexcept nogil
cdef int64_t working_for() noexcept nogil
# Record where the call that begins was made, if it may free anything. Needs the GIL.
cdef int remember_call(int64_t call, bint keep) except -1
# Record that this thread's call has released what the node saved.
cdef void note_release(node_t *node) noexcept nogil
# Write the message about a node whose saved tensors were freed, with the call that freed them; returns RUNTIME_ERROR.
cdef int freed_error(const node_t *node) noexcept nogil
