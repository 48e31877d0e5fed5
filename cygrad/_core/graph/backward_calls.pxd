"""Which call of backward a thread works for, and where each was made: who freed a graph can be told."""

from libc.stdint cimport int64_t
from cygrad._core.graph.node cimport node_t

# This thread works for this call from now on (0: for none, -1: a call from no place that users know); returns the
# former one.
cdef int64_t work_for(int64_t call) noexcept nogil
cdef int64_t working_for() noexcept nogil
# Note where the call that begins was made, if it may free anything. Needs the GIL.
cdef int remember_call(int64_t call, bint keep) except -1
# The call that this thread works for has released what the node saved.
cdef void note_release(node_t *node) noexcept nogil
# Writes the message about a node whose saved values are gone, and which call released them; returns RUNTIME_ERROR.
cdef int freed_error(const node_t *node) noexcept nogil
