"""Parallel loops in fixed chunks, and teams of workers."""

from libc.stdint cimport int64_t
from cygrad._core.threads.workers cimport member_t

ctypedef void (*body_t)(void *context, int64_t begin, int64_t end) noexcept nogil

# Call body(context, begin, end) for consecutive chunks of `grain` elements of 0..n. The chunks depend on n and grain
# alone, so results are bit-identical for any number of threads. Runs serially with one chunk or one thread; inside a
# team, idle members take chunks.
cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil
# Return how many threads a region opened now may use; active regions share one budget.
cdef int thread_limit() noexcept nogil
# Run member(context, rank, size) here as rank 0 and on at most `size - 1` other threads. These join when they are free,
# leave without work, and may join again with another rank, so rank 0 must be able to do all of the work.
cdef void run_team(member_t member, void *context, int size) noexcept nogil
# Tell a team that there is work for `n` more members.
cdef void call_team(int n) noexcept nogil
# Must this member return, because other regions need the core? Called between chunks by members other than rank 0.
cdef bint leave_team() noexcept nogil
# Run one chunk of a parallel_for of another member; return False if there is none.
cdef bint help_team() noexcept nogil
# Is this thread a member of a team? False in a forked child.
cdef bint in_team() noexcept nogil
