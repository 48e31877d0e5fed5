"""The workers: threads that join an open region; no region waits for one that has not joined."""

from libc.stdint cimport int32_t, int64_t

# member(context, rank, size): rank 0 is who opened the region; helpers have other ranks, each time they come.
ctypedef void (*member_t)(void *context, int rank, int size) noexcept nogil

# A place where help is welcome; lives on the stack of its opener, who could do all of the work alone.
ctypedef struct region_t:
    member_t member
    void *context
    int32_t size              # threads that may be inside, the opener included
    int32_t budget            # threads that may be at work in the process for a helper to come
    int32_t next_rank
    int32_t closed            # changed under the mutex: no worker may join
    int64_t wanted            # atomic, changed under the workers' mutex: helpers that would find work
    int64_t inside            # atomic: helpers at work in it
    region_t *next

# The calling thread begins and ends work that counts: calls may be nested.
cdef void begin_work() noexcept nogil
cdef void mark_idle() noexcept nogil
# How many threads a region opened now by this thread may have, if all of them may be `budget`: at least 1.
cdef int free_threads(int budget) noexcept nogil
# Let workers come, run region.member(context, 0, size) here, and see that all have left. `size` and below are set.
cdef void run_region(region_t *region, member_t member, void *context, int size, int budget) noexcept nogil
# There is work in the region for `n` more helpers than are on their way.
cdef void want_helpers(region_t *region, int n) noexcept nogil
# For who stays, now and then: call helpers that had no place when the region was opened.
cdef void call_late_helpers(region_t *region) noexcept nogil
# For a helper, between two pieces of work: must it leave, because others need the core?
cdef bint must_leave(region_t *region) noexcept nogil
# At most `n` workers from now on, whatever budgets regions have; just as many, if there are any.
cdef void limit_workers(int n) noexcept nogil
# How many workers exist, how many of them help at this moment, and how many callers count.
cdef void workers_now(int64_t *threads, int64_t *helping, int64_t *callers) noexcept nogil
# Wait a little, longer the more rounds there were.
cdef void pause_briefly(int round) noexcept nogil
