"""The one door to OpenMP: loops in fixed pieces, and teams of workers."""

from libc.stdint cimport int64_t

ctypedef void (*body_t)(void *context, int64_t begin, int64_t end) noexcept nogil
ctypedef void (*member_t)(void *context, int rank, int size) noexcept nogil

# body(context, begin, end) over 0..n in consecutive pieces of `grain` elements. The pieces depend on
# n and grain alone, never on the number of threads, so results have the same bits for any number.
# Serial when there is one piece or one thread; inside a team, idle members take pieces.
cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil
# How many threads a region opened now by this thread may use (budget shared by active regions).
cdef int thread_limit() noexcept nogil
# Run member(context, rank, size) once on each of `size` threads; the caller is rank 0.
cdef void run_team(member_t member, void *context, int size) noexcept nogil
# Called by an idle team member: run one piece of somebody's parallel_for; False if there is none.
cdef bint help_team() noexcept nogil
