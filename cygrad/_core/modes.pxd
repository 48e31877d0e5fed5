"""What each thread has switched on: grad mode, inference mode, saved-tensor hooks."""

from libc.stdint cimport int32_t, int64_t

ctypedef struct thread_state_t:
    int32_t grad_disabled      # zero is the state of a new thread: grad mode on
    int32_t inference
    int32_t depth              # how many backward calls this thread is inside
    int32_t draining           # this thread is destroying a chain of nodes (cygrad._core.node)
    int64_t sequence           # sequence number of the next node made by this thread's work

cdef thread_state_t *thread_state() noexcept nogil

cdef inline bint grad_enabled() noexcept nogil:
    return not thread_state().grad_disabled
