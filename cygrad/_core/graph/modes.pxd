"""What each thread has switched on: grad mode, inference mode, saved-tensor hooks, forward mode."""

from libc.stdint cimport int32_t

ctypedef struct thread_state_t:
    int32_t grad_disabled      # zero is the state of a new thread: grad mode on
    int32_t inference
    int32_t depth              # how many backward calls this thread is inside
    int32_t draining           # this thread is destroying a chain of nodes (cygrad._core.graph.node)
    void *saved_hooks          # the innermost SavedHooks (a strong reference) or NULL (cygrad._core.graph.saved)
    int32_t anomaly            # ANOMALY_... flags
    int32_t dual_level         # the level of forward mode that this thread is in, or 0 (cygrad._core.dispatch.tangents)
    int32_t guarded            # in-place changes first ask cygrad._core.graph.saved (allow_mutation_on_saved_tensors)

cdef enum:
    ANOMALY_ON = 1             # nodes remember the Python stack that made them
    ANOMALY_NAN = 2            # backward looks for nan in every gradient

cdef thread_state_t *thread_state() noexcept nogil

cdef inline bint grad_enabled() noexcept nogil:
    return not thread_state().grad_disabled
