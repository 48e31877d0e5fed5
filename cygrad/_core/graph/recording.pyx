"""Threads whose operations somebody notes."""

from cygrad._core.graph.modes cimport thread_state

cdef lost_t _lost


cdef int set_lost(lost_t lost) except -1:
    global _lost
    _lost = lost
    return 0


cdef int lost(str reason) except -1:
    return _lost(reason) if thread_state().dual_level == RECORDING else 0
