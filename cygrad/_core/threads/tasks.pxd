"""Task graphs run by a team of threads."""

from libc.stdint cimport int32_t

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
