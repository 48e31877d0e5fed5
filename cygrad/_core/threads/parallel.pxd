"""The one door to threads: loops in fixed pieces, and teams of workers."""

from libc.stdint cimport int64_t
from cygrad._core.threads.workers cimport member_t

ctypedef void (*body_t)(void *context, int64_t begin, int64_t end) noexcept nogil

# body(context, begin, end) over 0..n in consecutive pieces of `grain` elements. The pieces depend on
# n and grain alone, never on the number of threads, so results have the same bits for any number.
# Serial when there is one piece or one thread; inside a team, idle members take pieces.
cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil
# How many threads a region opened now by this thread may use (budget shared by active regions).
cdef int thread_limit() noexcept nogil
# Run member(context, rank, size) here as rank 0 and on at most `size - 1` other threads. These come when they can,
# leave when they find nothing to do, and may come again with another rank: rank 0 must be able to do all alone.
cdef void run_team(member_t member, void *context, int size) noexcept nogil
# For members of a team: there is work for `n` members more.
cdef void call_team(int n) noexcept nogil
# Called by a member other than rank 0 between two pieces of work: True if it must return, as others need the core.
cdef bint leave_team() noexcept nogil
# Called by an idle team member: run one piece of somebody's parallel_for; False if there is none.
cdef bint help_team() noexcept nogil
# Is this thread a member of a team? Not any more in the child of a fork, whose team has stayed behind.
cdef bint in_team() noexcept nogil
