"""
Task graphs run by a team of threads.

Each member takes the first ready task, so the order is close to the serial one and hardly more memory stays alive. A
member without a task works on chunks of loops that other tasks opened, and leaves the team if there are none for a
while; it is called back when tasks become ready. The calling thread stays.
"""

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from cygrad._core.memory.atomic cimport lock, unlock
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.threads.parallel cimport call_team, help_team, leave_team, run_team, thread_limit
from cygrad._core.threads.workers cimport pause_briefly

cdef extern from * nogil:
    """
    #define lowest_bit(word) __builtin_ctzll(word)
    """
    int lowest_bit(uint64_t word)

cdef enum:
    IDLE_ROUNDS = 64          # rounds without work after which a member leaves

ctypedef struct tasks_run_t:
    const tasks_t *tasks
    task_run_t run
    void *context
    int32_t lock              # guards the fields below
    int32_t n_ready
    int32_t n_running
    int32_t first_word        # all words of `ready` before it are 0
    int32_t first_failed      # later tasks are not started
    int status
    int32_t *n_pending        # unfinished dependencies of each task
    uint64_t *ready           # one bit per task
    char text[<int>MESSAGE]


cdef void _push(tasks_run_t *work, int32_t task) noexcept nogil:
    work.ready[task >> 6] |= <uint64_t>1 << (task & 63)
    work.first_word = min(work.first_word, task >> 6)
    work.n_ready += 1


cdef int32_t _take(tasks_run_t *work) noexcept nogil:
    """Return the first ready task, or -1; the caller has locked the queue."""
    cdef int32_t task
    if work.n_ready == 0:
        return -1
    while work.ready[work.first_word] == 0:
        work.first_word += 1
    task = work.first_word * 64 + lowest_bit(work.ready[work.first_word])
    if task >= work.first_failed:
        work.n_ready = 0
        return -1
    work.ready[work.first_word] &= work.ready[work.first_word] - 1
    work.n_ready -= 1
    work.n_running += 1
    return task


cdef void _finish(tasks_run_t *work, int32_t task, int status) noexcept nogil:
    """Record that a task has finished; the caller has locked the queue."""
    cdef const tasks_t *tasks = work.tasks
    cdef int32_t k, other
    work.n_running -= 1
    if status == OK:
        for k in range(tasks.successor_start[task], tasks.successor_start[task + 1]):
            other = tasks.successors[k]
            work.n_pending[other] -= 1
            if work.n_pending[other] == 0 and other < work.first_failed:
                _push(work, other)
    elif task < work.first_failed:
        work.first_failed, work.status = task, status
        memcpy(work.text, message(), MESSAGE)


cdef void _member(void *context, int rank, int size) noexcept nogil:
    cdef tasks_run_t *work = <tasks_run_t *>context
    cdef int32_t task = -1, ready
    cdef int status = OK, idle = 0
    cdef bint leaves, over
    while True:
        leaves = rank != 0 and leave_team()
        lock(&work.lock)
        if task >= 0:
            _finish(work, task, status)
        task = -1 if leaves else _take(work)
        ready, over = work.n_ready, task < 0 and work.n_running == 0
        unlock(&work.lock)
        if ready > 0:
            call_team(ready)
        if task >= 0:
            status = work.run(work.context, task)
            idle = 0
        elif over or leaves:
            return
        elif help_team():
            idle = 0
        elif rank != 0 and idle == IDLE_ROUNDS:
            return
        else:
            pause_briefly(idle)
            idle += 1


cdef int run_tasks(const tasks_t *tasks, task_run_t run, void *context) noexcept nogil:
    cdef tasks_run_t work
    cdef int32_t task, n_words = (tasks.n + 63) // 64
    cdef char *memory = <char *>malloc(n_words * sizeof(uint64_t) + tasks.n * sizeof(int32_t))
    if memory == NULL:
        snprintf(message(), MESSAGE, b"no memory for a list of %d operations that wait", <int>tasks.n)
        return MEMORY_ERROR
    work.tasks, work.run, work.context = tasks, run, context
    work.lock = work.n_ready = work.n_running = work.first_word = 0
    work.first_failed, work.status = tasks.n, OK
    work.ready = <uint64_t *>memory
    work.n_pending = <int32_t *>(work.ready + n_words)
    memset(work.ready, 0, n_words * sizeof(uint64_t))
    memcpy(work.n_pending, tasks.n_dependencies, tasks.n * sizeof(int32_t))
    for task in range(tasks.n):
        if tasks.n_dependencies[task] == 0:
            _push(&work, task)
    run_team(_member, &work, thread_limit())
    if work.status != OK:
        memcpy(message(), work.text, MESSAGE)
    free(memory)
    return work.status
