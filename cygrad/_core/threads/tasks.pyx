"""
Tasks of which some wait for others, run by a team.

Every member takes the first task that waits for none any more: so they are run nearly in the order in which one thread
would run them, and what they keep alive is little more. A member that finds none takes pieces of loops that tasks of
others have opened, and leaves if there are none for a while: it is called back when there is something. The calling
thread stays.
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
    WAIT = 64                 # rounds in which a member that finds nothing looks again before it leaves

ctypedef struct tasks_run_t:
    const tasks_t *tasks
    task_run_t run
    void *context
    int32_t lock              # guards everything below
    int32_t n_ready
    int32_t n_running
    int32_t first_word        # words of `ready` before it are empty
    int32_t stop              # tasks from here on are not begun: this one has failed
    int status
    int32_t *waiting          # for how many others each still waits
    uint64_t *ready           # a bit for each
    char text[<int>MESSAGE]


cdef void _push(tasks_run_t *work, int32_t task) noexcept nogil:
    work.ready[task >> 6] |= <uint64_t>1 << (task & 63)
    work.first_word = min(work.first_word, task >> 6)
    work.n_ready += 1


cdef int32_t _take(tasks_run_t *work) noexcept nogil:
    """The first task that is ready, -1: there is none. It is locked."""
    cdef int32_t task
    if work.n_ready == 0:
        return -1
    while work.ready[work.first_word] == 0:
        work.first_word += 1
    task = work.first_word * 64 + lowest_bit(work.ready[work.first_word])
    if task >= work.stop:
        work.n_ready = 0
        return -1
    work.ready[work.first_word] &= work.ready[work.first_word] - 1
    work.n_ready -= 1
    work.n_running += 1
    return task


cdef void _finish(tasks_run_t *work, int32_t task, int status) noexcept nogil:
    """A task has been run. It is locked."""
    cdef const tasks_t *tasks = work.tasks
    cdef int32_t k, other
    work.n_running -= 1
    if status == OK:
        for k in range(tasks.first[task], tasks.first[task + 1]):
            other = tasks.behind[k]
            work.waiting[other] -= 1
            if work.waiting[other] == 0 and other < work.stop:
                _push(work, other)
    elif task < work.stop:
        work.stop, work.status = task, status
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
        elif rank != 0 and idle == WAIT:
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
    work.stop, work.status = tasks.n, OK
    work.ready = <uint64_t *>memory
    work.waiting = <int32_t *>(work.ready + n_words)
    memset(work.ready, 0, n_words * sizeof(uint64_t))
    memcpy(work.waiting, tasks.waits, tasks.n * sizeof(int32_t))
    for task in range(tasks.n):
        if tasks.waits[task] == 0:
            _push(&work, task)
    run_team(_member, &work, thread_limit())
    if work.status != OK:
        memcpy(message(), work.text, MESSAGE)
    free(memory)
    return work.status
