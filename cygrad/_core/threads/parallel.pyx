"""Parallel loops in fixed chunks, teams, and the budget of threads that they share.

Chunks depend only on the problem, so results are bit-identical for any number of threads. A region inside a region is
serial, except a loop inside a team: idle members take chunks of it. All open regions share one budget of threads, so
that several Python threads together do not oversubscribe the cores.

The threads are those of workers.pyx, members of an OpenMP region; OpenMP limits set by users are obeyed.

A forked child computes serially until it calls set_num_threads, because forking programs usually start a process per
core.
"""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.memory.atomic cimport (
    atomic_add, atomic_decrement, atomic_increment, atomic_load, atomic_store, lock, unlock)
from cygrad._core.threads.openmp cimport omp_get_max_threads, omp_get_thread_limit, omp_set_num_threads
from cygrad._core.threads.workers cimport (
    begin_work, call_late_helpers, mark_idle, free_threads, limit_workers, must_leave, pause_briefly, region_t,
    run_region, want_helpers)

from importlib import import_module
import os
import sys

cdef extern from * nogil:
    """
    #include <dlfcn.h>
    #include <pthread.h>
    struct team;
    #include "memory/thread_variable.h"
    THREAD_VARIABLE struct team *current_team;    /* the team that this thread is a member of */
    THREAD_VARIABLE int in_region;                /* regions opened now by this thread are serial */
    THREAD_VARIABLE int thread_cap;               /* of the context manager `threads`; 0: none */
    THREAD_VARIABLE int outer_limit;              /* set through threadpoolctl; 0: none */
    THREAD_VARIABLE int64_t chunks_done;          /* of loops not inside a chunk, run by this thread */
    THREAD_VARIABLE int expected_openmp;          /* OpenMP's limit as set by this library; 0: the default */
    static void at_fork(void (*in_child)(void)) { pthread_atfork(NULL, NULL, in_child); }
    static const char *library_of(void *function) {
        Dl_info found;
        return dladdr(function, &found) ? found.dli_fname : NULL;
    }
    """
    struct team:
        pass
    team *current_team
    int in_region
    int thread_cap
    int outer_limit
    int64_t chunks_done
    int expected_openmp
    void at_fork(void (*_in_child)() noexcept nogil)
    const char *library_of(void *function)

ctypedef struct job_t:
    # Loop shared by the members of a team; on the stack of the member that opened it.
    body_t body
    void *context
    int64_t n
    int64_t grain
    int64_t next_chunk    # atomic: first chunk that is not taken
    int64_t helpers       # atomic: members at work in it, besides its owner; incremented under the team's lock
    job_t *next

# Loop with a region of its own.
ctypedef struct parallel_loop_t:
    region_t region
    job_t job

ctypedef struct team_t:
    region_t region
    member_t member
    void *context
    job_t *jobs
    int64_t n_jobs        # atomic: can be read without locking
    int32_t jobs_lock

cdef enum:
    LONG_LOOP = 64            # in chunks: workers may join such a loop later

# Shared by all threads of the process.
cdef int64_t chosen_threads = 0   # atomic: from set_num_threads; 0: OpenMP's default
cdef int default_threads = omp_get_max_threads()
cdef int most_threads = omp_get_thread_limit()


# ---- the budget

cdef int _budget() noexcept nogil:
    """Return how many threads may be at work together, as seen by this thread."""
    cdef int openmp = omp_get_max_threads()
    cdef int expected = expected_openmp if expected_openmp else default_threads
    cdef int chosen = <int>atomic_load(&chosen_threads)
    cdef int limit = chosen if chosen else default_threads
    # The user or threadpoolctl has changed OpenMP's limit.
    if openmp != expected and (openmp < limit or not chosen):
        limit = openmp
    limit = min(limit, most_threads)
    return outer_limit if outer_limit and outer_limit < limit else limit


cdef int _configured_threads() noexcept nogil:
    """Return how many threads this thread could use without other regions."""
    cdef int limit = _budget()
    return thread_cap if thread_cap and thread_cap < limit else limit


cdef int thread_limit() noexcept nogil:
    cdef int limit
    if in_region or current_team != NULL:
        return 1
    limit = _configured_threads()
    return min(limit, free_threads(_budget())) if limit > 1 else 1


# ---- loops

cdef void _run_chunk(job_t *job, int64_t chunk) noexcept nogil:
    """Run one chunk of a loop; regions opened by its body are serial."""
    global in_region, chunks_done
    cdef int before = in_region
    cdef int64_t begin = chunk * job.grain
    cdef int64_t end = begin + job.grain
    if not before:
        chunks_done += 1
    in_region = True
    job.body(job.context, begin, end if end < job.n else job.n)
    in_region = before


cdef bint _take_chunk(job_t *job) noexcept nogil:
    """Run the next chunk; return False if there is none."""
    cdef int64_t chunk = atomic_add(&job.next_chunk, 1) - 1
    if chunk * job.grain >= job.n:
        return False
    _run_chunk(job, chunk)
    return True


cdef void _run_region_member(void *context, int rank, int size) noexcept nogil:
    """Run a member of a region opened for one loop."""
    cdef parallel_loop_t *loop = <parallel_loop_t *>context
    if rank == 0:
        while _take_chunk(&loop.job):
            call_late_helpers(&loop.region)
    else:
        while not must_leave(&loop.region) and _take_chunk(&loop.job):
            pass


cdef void _share_with_team(job_t *job, team_t *team) noexcept nogil:
    """Run a loop while idle members of the team take chunks of it."""
    cdef job_t **link
    cdef int round = 0
    lock(&team.jobs_lock)
    job.next = team.jobs
    team.jobs = job
    atomic_increment(&team.n_jobs)
    unlock(&team.jobs_lock)
    want_helpers(&team.region, <int>min(<int64_t>team.region.size, (job.n - 1) // job.grain))
    while _take_chunk(job):
        call_late_helpers(&team.region)
    lock(&team.jobs_lock)
    link = &team.jobs
    while link[0] != job:
        link = &link[0].next
    link[0] = job.next
    atomic_decrement(&team.n_jobs)
    unlock(&team.jobs_lock)
    # No new helper can find the job; wait for those that have.
    while atomic_load(&job.helpers) > 0:
        pause_briefly(round)
        round += 1


cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil:
    cdef parallel_loop_t loop
    cdef job_t *job = &loop.job
    cdef int64_t n_chunks, chunk
    cdef int threads
    cdef bint counts
    if n <= 0:
        return
    if grain < 1:
        grain = 1
    if n <= grain:
        # No region, but a loop that the body opens may be shared.
        body(context, 0, n)
        return
    n_chunks = (n - 1) // grain + 1
    job.body, job.context, job.n, job.grain = body, context, n, grain
    job.next_chunk = job.helpers = 0
    job.next = NULL
    if current_team != NULL and not in_region:
        _share_with_team(job, <team_t *>current_team)
        return
    counts = not in_region and current_team == NULL
    threads = _configured_threads() if counts else 1
    # Without free workers, a region pays off only for long loops.
    if threads > 1 and (n_chunks >= LONG_LOOP or free_threads(_budget()) > 1):
        run_region(&loop.region, _run_region_member, &loop, <int>min(<int64_t>threads, n_chunks), _budget())
        return
    if counts:
        begin_work()
    for chunk in range(n_chunks):
        _run_chunk(job, chunk)
    if counts:
        mark_idle()


# ---- teams

cdef void _enter_team(void *context, int rank, int size) noexcept nogil:
    """Mark the thread as a member while the function of the team runs."""
    global current_team
    cdef team_t *own = <team_t *>context
    current_team = <team *>own if size > 1 else NULL
    own.member(own.context, rank, size)
    current_team = NULL


cdef void run_team(member_t member, void *context, int size) noexcept nogil:
    cdef team_t own
    size = min(size, _configured_threads())
    if size <= 1 or in_region or current_team != NULL:
        member(context, 0, 1)
        return
    own.member, own.context = member, context
    own.jobs = NULL
    own.n_jobs = 0
    own.jobs_lock = 0
    run_region(&own.region, _enter_team, &own, size, _budget())


cdef void call_team(int n) noexcept nogil:
    cdef team_t *own = <team_t *>current_team
    if own != NULL:
        want_helpers(&own.region, n)
        call_late_helpers(&own.region)


cdef bint leave_team() noexcept nogil:
    return current_team != NULL and must_leave(&(<team_t *>current_team).region)


cdef bint in_team() noexcept nogil:
    return current_team != NULL


cdef bint help_team() noexcept nogil:
    cdef team_t *own = <team_t *>current_team
    cdef job_t *job
    cdef bint helped = False
    if own == NULL or in_region or atomic_load(&own.n_jobs) == 0:
        return False
    lock(&own.jobs_lock)
    job = own.jobs
    while job != NULL and atomic_load(&job.next_chunk) * job.grain >= job.n:
        job = job.next
    if job != NULL:
        atomic_increment(&job.helpers)
    unlock(&own.jobs_lock)
    if job != NULL:
        helped = _take_chunk(job)
        atomic_decrement(&job.helpers)
    return helped


cdef void _in_child() noexcept nogil:
    """Compute serially in a forked child."""
    global current_team, in_region
    atomic_store(&chosen_threads, 1)
    current_team = NULL
    in_region = 0


# ---- Python API

def set_num_threads(n):
    """
    Set how many threads may be at work at the same time.

    All Python threads share them. Results are bit-identical for any number.

    Parameters
    ----------
    n : int
        At least 1. The default is what OpenMP chooses: ``OMP_NUM_THREADS``, or the cores that the
        process may use.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    get_num_threads, threads

    Examples
    --------
    >>> import cygrad
    >>> before = cygrad.get_num_threads()
    >>> cygrad.set_num_threads(1)
    >>> cygrad.get_num_threads()
    1
    >>> cygrad.set_num_threads(before)
    """
    global expected_openmp, outer_limit
    cdef int number = _at_least_one(n, "set_num_threads")
    _tell_threadpoolctl()
    atomic_store(&chosen_threads, number)
    limit_workers(number - 1)
    outer_limit = 0
    # Told to OpenMP as well, so that limits set there later (by threadpoolctl) are seen as changes.
    omp_set_num_threads(number)
    expected_openmp = omp_get_max_threads()


def get_num_threads():
    """
    How many threads an operation of the calling thread may use, if no other thread is at work.

    Returns
    -------
    int
        The smallest of what `set_num_threads`, an enclosing `threads` and limits set on OpenMP itself
        (``omp_set_num_threads``, threadpoolctl) allow.

    See Also
    --------
    set_num_threads, threads

    Examples
    --------
    >>> import cygrad
    >>> cygrad.get_num_threads() >= 1
    True
    """
    return _configured_threads()


def chunks_run():
    """Return how many chunks of loops this thread has run."""
    return chunks_done


def openmp_library():
    """Return the path of the library that provides OpenMP, or None if it is unknown."""
    cdef const char *name = library_of(<void *>omp_get_max_threads)
    return None if name == NULL else os.fsdecode(name)


def get_limit():
    """For threadpoolctl: return the thread limit of this thread without the context manager."""
    return _budget()


def set_limit(int n):
    """For threadpoolctl: limit the operations of this thread; an invalid number removes the limit."""
    global outer_limit
    outer_limit = 0
    if 1 <= n < _budget():
        outer_limit = n


def _tell_threadpoolctl():
    """Register with threadpoolctl; deferred until a limit can matter, because importing it takes time."""
    import_module("cygrad._core.threads.thread_limits")


def _at_least_one(n, operation):
    number = n.__index__() if hasattr(n, "__index__") else None
    if number is None:
        raise TypeError(f"{operation}: the number of threads must be an int (got {type(n).__name__})")
    if not 1 <= number <= 1 << 16:
        raise ValueError(f"{operation}: the number of threads must be between 1 and 65536 (got {number})")
    return number


class threads:
    """
    Limit the number of threads of the operations in a ``with`` block, for the calling thread alone.

    The innermost of nested blocks counts. It can only lower what `set_num_threads` allows.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    ValueError
        If `n` is less than 1.

    See Also
    --------
    set_num_threads, get_num_threads

    Examples
    --------
    >>> import cygrad
    >>> with cygrad.threads(1):
    ...     cygrad.get_num_threads()
    1
    """

    def __init__(self, n):
        self._n = _at_least_one(n, "threads")
        self._before = None                # (limit, what was entered before)

    def __enter__(self):
        global thread_cap
        self._before = thread_cap, self._before
        thread_cap = self._n
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # a tuple or a list might find no memory
        global thread_cap
        thread_cap, self._before = self._before

    def __repr__(self):
        return f"threads({self._n})"


at_fork(_in_child)
if "threadpoolctl" in sys.modules:
    _tell_threadpoolctl()
