"""Looking for nan while gradients are computed: what has been seen since the watch began, and scans of arrays."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

# What a thread has noticed since it last cleared this.
ctypedef struct watch_t:
    int on                # is this thread looking?
    int nan               # an element-wise program has written one
    int plain             # the program that runs is plain arithmetic on numbers and gradients: no nan goes in
    int kernels           # something else than element-wise programs has computed: unchecked

# How many threads are looking: where it is 0, nothing need be done. A glance, before `watch()` is asked.
cdef int64_t nan_watchers
# The watch of the calling thread.
cdef watch_t *watch() noexcept nogil
# How what a program writes is to be watched: 0 for not at all.
cdef enum:
    LISTEN = 1            # to the status flag that the processor sets if arithmetic makes a nan of numbers
    LOOK = 2              # at every number
cdef int how_to_watch() noexcept nogil
cdef void clear_invalid() noexcept nogil
cdef bint was_invalid() noexcept nogil
# The same question, answered for n elements that have just been written one after the other.
cdef bint may_hold_nan(int watched, const char *data, int dtype, int64_t n) noexcept nogil
cdef void begin_watch() noexcept nogil
cdef void end_watch() noexcept nogil
# Is there a nan among n elements, `step` bytes apart?
cdef bint row_holds_nan(const char *data, int dtype, int64_t n, int64_t step) noexcept nogil
cdef bint holds_nan(const array_t *array) noexcept nogil
