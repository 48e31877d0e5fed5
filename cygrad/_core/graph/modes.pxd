"""Thread-local modes: operator modes, grad mode, inference mode, saved-tensor hooks."""

from libc.stdint cimport int32_t, uint32_t

cdef extern from "graph/thread_state.h" nogil:
    # The modes of a thread, in the order in which they handle calls: see mode_stack.pxd. The classes of
    # the arguments (__torch_function__, entries of vmap) handle it after PRECOMPUTED_MODE, once they are boxed.
    cdef enum:
        USER_MODE              # written in Python, the innermost block first (cygrad.utils.operator_modes)
        PROFILER_MODE          # times the call
        AUTOCAST_MODE          # casts the operands
        PRECOMPUTED_MODE       # has the results: the call only records its node
        FORWARD_MODE           # computes the tangents of the results
        TRACING_MODE           # adds the call to the trace of `compile`
        MODES
    ctypedef struct thread_state_t:
        uint32_t modes         # bit i: mode i sees calls; 0: the stack is empty
        int32_t grad_disabled  # zero is the state of a new thread: grad mode on
        int32_t inference      # in inference mode, where nothing is recorded
        int32_t reports_grad   # in inference mode, whether is_grad_enabled() is True
        int32_t depth          # number of nested backward calls
        int32_t draining       # this thread is destroying a chain of nodes (cygrad._core.graph.node)
        int32_t guarded        # in-place operations call cygrad._core.graph.saved (allow_mutation_on_saved_tensors)
        int32_t anomaly        # ANOMALY_... flags
        int32_t dual_level     # number of the level of forward mode, or 0; change it with set_dual_level()
        void *saved_hooks      # the innermost SavedHooks (a strong reference) or NULL (cygrad._core.graph.saved)
        void *mode_objects[MODES]     # the Mode for each bit, strong references or NULL

cdef enum:
    ANOMALY_ON = 1             # nodes store the Python stack that created them
    ANOMALY_NAN = 2            # backward checks every gradient for nan
    # Sets of modes.
    CALL_MODES = 1 << USER_MODE | 1 << PROFILER_MODE | 1 << AUTOCAST_MODE | 1 << PRECOMPUTED_MODE      # handle calls
    RESULT_MODES = 1 << FORWARD_MODE | 1 << TRACING_MODE      # get the arguments and results of executed operators
    BACKWARD_MODES = 1 << USER_MODE | 1 << TRACING_MODE       # handle the operators of a backward without graph, too
    EXCEPT_AUTOCAST = ~(1 << AUTOCAST_MODE)                   # autocast leaves float32 operands of primitives alone

cdef thread_state_t *thread_state() noexcept nogil

cdef inline bint grad_enabled() noexcept nogil:
    return not thread_state().grad_disabled

cdef inline bint is_tracing() noexcept nogil:
    return thread_state().modes & 1 << TRACING_MODE != 0

# Return whether backward runs nodes one by one on the calling thread, for anomaly mode or a profiler.
cdef inline bint is_watched() noexcept nogil:
    return thread_state().anomaly or thread_state().modes & 1 << PROFILER_MODE

cdef inline void set_dual_level(int32_t level) noexcept nogil:
    cdef thread_state_t *state = thread_state()
    state.dual_level = level
    if level:
        state.modes |= 1 << FORWARD_MODE
    else:
        state.modes &= ~(1 << FORWARD_MODE)
