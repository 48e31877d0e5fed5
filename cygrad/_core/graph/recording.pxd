"""Threads whose operations somebody notes."""

cdef enum:
    RECORDING = -1            # `dual_level` of such a thread, which holds no tangents

ctypedef int (*lost_t)(str reason) except -1
# Who notes is told here of what cannot be noted.
cdef int set_lost(lost_t lost) except -1
# What a thread does cannot be noted, if anybody listens.
cdef int lost(str reason) except -1
