"""Tasks of which some wait for others, run by a team."""

from libc.stdint cimport int32_t

# In the order in which one thread would run them: nobody waits for a later one.
ctypedef struct tasks_t:
    int32_t n
    int32_t *waits            # for how many others each waits
    int32_t *first            # of each, and one more: where in `behind` those that wait for it begin
    int32_t *behind

# run(context, number of the task); -> a status, and a text in this thread's message() if that is not OK.
ctypedef int (*task_run_t)(void *context, int32_t task) noexcept nogil

# Run all of them. If some fail, those before the first of these have been run, and its status and message are given.
cdef int run_tasks(const tasks_t *tasks, task_run_t run, void *context) noexcept nogil
