"""Parallel loops in fixed chunks, and teams of workers."""

from libc.stdint cimport int32_t, int64_t

# -------------------------------------------------------------------------------------------------------------- workers

# Workers join open regions. No region waits for a worker that has not joined.

# member(context, rank, size): rank 0 opened the region; a helper gets another rank each time it joins.
ctypedef void (*member_t)(void *context, int rank, int size) noexcept nogil

# A region that workers may join; on the stack of its opener, which can do all of the work alone.
ctypedef struct region_t:
    member_t member
    void *context
    int32_t size              # threads allowed inside, the opener included
    int32_t budget            # helpers may join while fewer threads are busy in the process
    int32_t next_rank
    int32_t closed            # set under the mutex: no worker may join
    int64_t wanted            # atomic, set under the workers' mutex: number of requested helpers
    int64_t inside            # atomic: helpers inside
    region_t *next

# Count the calling thread as busy, or no longer; calls may be nested.
cdef void begin_work() noexcept nogil
cdef void mark_idle() noexcept nogil
# Return how many threads a region opened now by this thread may have under `budget`: at least 1.
cdef int free_threads(int budget) noexcept nogil
# Wake workers, run region.member(context, 0, size) here, and wait until all have left. `size` and the fields after it
# are set.
cdef void run_region(region_t *region, member_t member, void *context, int size, int budget) noexcept nogil
# Request `n` more helpers for the region.
cdef void want_helpers(region_t *region, int n) noexcept nogil
# Call helpers that were busy when the region was opened; rank 0 does so occasionally.
cdef void call_late_helpers(region_t *region) noexcept nogil
# Return whether a helper must leave between two chunks, because other callers need the core.
cdef bint must_leave(region_t *region) noexcept nogil
# Limit the workers to `n`, whatever the budgets of regions; start or stop workers to have exactly `n` if there are any.
cdef void limit_workers(int n) noexcept nogil
# Return the numbers of workers, of helpers in regions, and of busy callers.
cdef void workers_now(int64_t *threads, int64_t *helping, int64_t *callers) noexcept nogil
# Pause briefly, longer with each round.
cdef void pause_briefly(int round) noexcept nogil

# ------------------------------------------------------------------------------------------------------------- parallel

ctypedef void (*body_t)(void *context, int64_t begin, int64_t end) noexcept nogil

# Call body(context, begin, end) for consecutive chunks of `grain` elements of 0..n. The chunks depend on n and grain
# alone, so results are bit-identical for any number of threads. Runs serially with one chunk or one thread; inside a
# team, idle members take chunks.
cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil

# Return how many threads a region opened now may use; active regions share one budget.
cdef int thread_limit() noexcept nogil
# Return how many threads may take chunks of a loop opened now: 1 inside a chunk.
cdef int loop_threads() noexcept nogil
# Run member(context, rank, size) here as rank 0 and on at most `size - 1` other threads. These join when they are free,
# leave without work, and may join again with another rank, so rank 0 must be able to do all of the work.
cdef void run_team(member_t member, void *context, int size) noexcept nogil
# Tell a team that there is work for `n` more members.
cdef void call_team(int n) noexcept nogil
# Return whether this member must return, because other regions need the core. Called between chunks by members other
# than rank 0.
cdef bint leave_team() noexcept nogil
# Run one chunk of a parallel_for of another member; return False if there is none.
cdef bint help_team() noexcept nogil
# Return whether this thread is a member of a team; False in a forked child.
cdef bint in_team() noexcept nogil

# ---------------------------------------------------------------------------------------------------------------- tasks

# Tasks in serial order: none depends on a later one.
ctypedef struct tasks_t:
    int32_t n
    int32_t *n_dependencies   # of each task
    int32_t *successor_start  # where the successors of each task begin, and the end
    int32_t *successors

# Run a task and return a status; on failure the text is in message() of this thread.
ctypedef int (*task_run_t)(void *context, int32_t task) noexcept nogil

# Run all tasks. On failure, return status and message of the first failed task; all before it have run.
cdef int run_tasks(const tasks_t *tasks, task_run_t run, void *context) noexcept nogil
