"""Detecting nan while gradients are computed (anomaly mode)."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

# What a thread has detected since it last cleared this.
ctypedef struct watch_t:
    int on                # does this thread watch?
    int nan               # an element-wise program has written a nan
    int plain             # the running program is plain arithmetic on numbers and gradients without nan
    int kernels           # a kernel other than an element-wise program has run: unchecked

# How many threads watch: if 0, skip everything. Cheaper than `watch()`.
cdef int64_t nan_watchers
# The watch of the calling thread.
cdef watch_t *watch() noexcept nogil
# How to watch what a program writes: 0 for not at all.
cdef enum:
    LISTEN = 1            # test the status flag that the processor sets if arithmetic makes a nan of numbers
    LOOK = 2              # scan every number
cdef int how_to_watch() noexcept nogil
cdef void clear_invalid() noexcept nogil
cdef bint was_invalid() noexcept nogil
# Is there a nan among n contiguous elements that have just been written?
cdef bint may_hold_nan(int watched, const char *data, int dtype, int64_t n) noexcept nogil
cdef void begin_watch() noexcept nogil
cdef void end_watch() noexcept nogil
# Is there a nan among n elements, `step` bytes apart?
cdef bint row_holds_nan(const char *data, int dtype, int64_t n, int64_t step) noexcept nogil
cdef bint holds_nan(const array_t *array) noexcept nogil
