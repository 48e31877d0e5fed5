"""Parallel loops in fixed chunks, teams, and the budget of threads that they share.

Chunks depend only on the problem, so results are bit-identical for any number of threads. A region inside a region is
serial, except a loop inside a team: idle members take chunks of it. All open regions share one budget of threads, so
that several Python threads together do not oversubscribe the cores.

Workers are members of an OpenMP region; OpenMP limits set by users are obeyed. A forked child computes serially until
it calls set_num_threads, because forking programs usually start a process per core.
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from cygrad._core.memory.atomic cimport (
    atomic_add, atomic_claim, atomic_decrement, atomic_increment, atomic_load, atomic_store, lock, unlock,
)
from cygrad._core.memory.errors cimport MEMORY_ERROR, MESSAGE, OK, message
from cygrad._core.threads.openmp cimport (
    hold_region, omp_get_max_threads, omp_get_thread_limit, omp_set_num_threads, set_region, start_thread,
)

import os
import sys
from importlib import import_module
from threading import RLock, get_ident
from weakref import ref


# ----------------------------------------------------------------------------------------------------------- fork locks

# Python locks that are free in a forked child.
#
# Fork handlers are compiled, so that no Python signal handler can raise between their steps.

cdef enum:
    MAX_SECONDS = 10           # that a fork waits for a lock

cdef set _locks = set()        # weak references, which remove themselves
cdef dict _held = {}           # thread id -> locks that it holds during a fork
cdef type _reentrant = type(RLock())


def renewed_at_fork(mutex):
    """
    Release a lock in a forked child, where the thread that held it does not exist.

    An RLock is acquired during the fork, so that the data it guards is consistent in the child.

    Parameters
    ----------
    mutex : Lock, RLock or Condition of `threading`

    Returns
    -------
    mutex
    """
    _locks.add(ref(mutex, _locks.discard))
    return mutex


cdef list _alive():
    return [lock for lock in [reference() for reference in list(_locks)] if lock is not None]


def _hold():
    cdef list held = []
    _held[get_ident()] = held
    for lock in _alive():
        if type(lock) is _reentrant and lock.acquire(timeout=MAX_SECONDS):
            held.append(lock)


def _release():
    for lock in _held.pop(get_ident(), ()):
        lock.release()


def _renew():
    _held.clear()
    for lock in _alive():
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)


# -------------------------------------------------------------------------------------------------------------- workers

# One set of workers serves the whole process. A thread with enough work opens a *region*, wakes the workers and takes
# chunks itself. When no chunk is left, it closes the region and waits only for helpers inside. On busy cores a late
# worker costs nothing, while the barrier of an OpenMP region per loop would cost a time slice.
#
# Workers are members of one OpenMP parallel region that stays open (openmp.pxd). A separate thread, the host, opens it
# when workers are first needed. As its master the host does no work, and sleeps until more or fewer workers are needed;
# then the members leave between two chunks, and the host opens the next region. Only the host waits at its barrier.
#
# A Python thread counts as a *caller* while it computes and shortly afterwards. Helpers join only while callers and
# helpers are fewer than the budget, and leave between two chunks when new callers appear, so several Python threads do
# not oversubscribe the cores.
#
# A forked child has no workers until its own host opens a region.

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <sched.h>
    #include <time.h>

    static pthread_mutex_t workers_mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t workers_called = PTHREAD_COND_INITIALIZER, host_called = PTHREAD_COND_INITIALIZER;
    static void workers_lock(void) { pthread_mutex_lock(&workers_mutex); }
    static void workers_unlock(void) { pthread_mutex_unlock(&workers_mutex); }
    static void wait_for_call(void) { pthread_cond_wait(&workers_called, &workers_mutex); }
    static void call_worker(void) { pthread_cond_signal(&workers_called); }
    static void call_all(void) { pthread_cond_broadcast(&workers_called); }
    static void call_host(void) { pthread_cond_signal(&host_called); }
    static void wait_as_host(void) { pthread_cond_wait(&host_called, &workers_mutex); }
    /* Wait as host, at most `seconds`; return whether it timed out */
    static int timed_wait(int seconds) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += seconds;
        return pthread_cond_timedwait(&host_called, &workers_mutex, &until) != 0;
    }

    /* A forking thread holds the mutex, so that the child's list is consistent. */
    static void (*forget_workers)(void);
    static void in_child(void) {
        pthread_cond_init(&workers_called, NULL);
        pthread_cond_init(&host_called, NULL);
        pthread_mutex_init(&workers_mutex, NULL);
        forget_workers();
    }
    static void workers_at_fork(void (*forget)(void)) {
        forget_workers = forget;
        pthread_atfork(workers_lock, workers_unlock, in_child);
    }

    /* An exiting interpreter unwinds threads that request the GIL: close a region on their stack before. */
    static void run_and_close(void (*member)(void *, int, int), void *context, int size,
                              void (*close)(void *), void *region) {
        pthread_cleanup_push(close, region);
        member(context, 0, size);
        pthread_cleanup_pop(1);
    }

    static long long nanoseconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    static void doze(void) { struct timespec t = {0, 20000}; nanosleep(&t, NULL); }
    static void relax(void) {
    #if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
    #endif
    }

    enum { SLOTS = 64 };
    /* Time of the last work of each caller, each on its own cache line. */
    typedef struct { int64_t time, taken, unused[6]; } seen_t;
    static seen_t seen[SLOTS] __attribute__((aligned(64)));
    static __thread int own_slot = -1;
    static __thread int work_depth;
    static pthread_key_t caller_end;
    static int watch_callers(void (*at_end)(void *)) { return pthread_key_create(&caller_end, at_end); }
    static void watch_caller(void *slot) { pthread_setspecific(caller_end, slot); }
    """
    void workers_lock()
    void workers_unlock()
    void wait_for_call()
    void call_worker()
    void call_all()
    void call_host()
    void wait_as_host()
    bint timed_wait(int seconds)
    void workers_at_fork(void (*_forget)() noexcept nogil)
    void run_and_close(member_t member, void *context, int size, void (*close)(void *) noexcept nogil, void *region)
    int64_t nanoseconds()
    void doze()
    void relax()
    void sched_yield()
    int watch_callers(void (*at_end)(void *) noexcept nogil)
    void watch_caller(void *slot)
    enum:
        SLOTS
    ctypedef struct seen_t:
        int64_t time
        int64_t taken
    seen_t seen[1]
    int own_slot
    int work_depth

cdef enum:
    PRESENT = 500000           # nanoseconds for which a caller counts as busy after its work
    # Nanoseconds for which a worker spins before it sleeps: waking takes as long as a small kernel, and the next region
    # often opens within tens of microseconds.
    WATCH = 100000
    GRACE = 1                  # seconds for which a surplus of workers is kept
    AT_ONCE = 64               # surplus workers are kept up to this number
    SPIN = 128                 # rounds of spinning before the core is yielded
    YIELD = 512                # rounds before sleeping

cdef int64_t AT_WORK = (<int64_t>1) << 62      # time stamp of a busy caller
cdef int64_t slots = 0             # number of entries of `seen` ever used

# Written under the mutex, read without it.
cdef region_t *regions = NULL      # open regions
cdef int64_t total_wanted = 0      # sum of their `wanted`
cdef int64_t most_workers = INT32_MAX
cdef int64_t asked = 0             # target number of workers
cdef int64_t opened = 0            # size of the open parallel region
cdef int64_t closing = 0           # the members must leave the parallel region
cdef bint hosted = False           # the host runs
cdef int64_t workers = 0           # members of the parallel region, without the host
cdef int64_t watching = 0          # members awake without a region
cdef int64_t sleeping = 0          # members asleep and not called
cdef int64_t called = 0            # members called and not yet awake
cdef int64_t helping = 0           # members in a region


cdef void pause_briefly(int round) noexcept nogil:
    if round < SPIN:
        relax()
    elif round < YIELD:
        sched_yield()
    else:
        doze()


# ---- busy callers

cdef int _take_slot() noexcept nogil:
    """Claim a slot for this thread; share the last one if none is free."""
    cdef int64_t used
    cdef int i
    for i in range(SLOTS - 1):
        if atomic_load(&seen[i].taken) == 0 and atomic_claim(&seen[i].taken, 0, 1):
            watch_caller(&seen[i])
            break
    else:
        i = SLOTS - 1
    used = atomic_load(&slots)
    while used <= i and not atomic_claim(&slots, used, i + 1):
        used = atomic_load(&slots)
    return i


cdef void _leave_slot(void *slot) noexcept nogil:
    """Thread-exit destructor of a slot."""
    atomic_store(&(<seen_t *>slot).time, 0)
    atomic_store(&(<seen_t *>slot).taken, 0)


cdef void begin_work() noexcept nogil:
    global own_slot, work_depth
    work_depth += 1
    if work_depth == 1:
        if own_slot < 0:
            own_slot = _take_slot()
        atomic_store(&seen[own_slot].time, AT_WORK)


cdef void mark_idle() noexcept nogil:
    global work_depth
    work_depth -= 1
    if work_depth == 0:
        atomic_store(&seen[own_slot].time, nanoseconds())


cdef int _callers_now(int except_slot) noexcept nogil:
    """Return how many callers are busy, without this one."""
    cdef int64_t since = nanoseconds() - PRESENT
    cdef int64_t used = atomic_load(&slots)
    cdef int i, count = 0
    for i in range(<int>(used if used < SLOTS else SLOTS)):
        if i != except_slot and atomic_load(&seen[i].time) > since:
            count += 1
    return count


cdef int free_threads(int budget) noexcept nogil:
    cdef int others
    if budget <= 1:
        return 1
    others = _callers_now(own_slot)
    # A fair share, rounded up; at most one per worker.
    return max(1, min((budget + others) // (others + 1), budget - others - <int>atomic_load(&helping)))


cdef bint _has_place(const region_t *region, int more) noexcept nogil:
    """Return whether `more` helpers can join the region, or, with 0, those inside can stay."""
    cdef int callers
    if region.budget <= 1:
        return False
    callers = max(1, _callers_now(-1))
    return (callers + atomic_load(&helping) + more <= region.budget
            and atomic_load(&region.inside) + more <= (region.budget - 1) // callers)


# ---- workers

cdef region_t *_region_to_join() noexcept nogil:
    """Return a region that wants help and may have more helpers; the mutex is held."""
    cdef region_t *region = regions
    while region != NULL and not (region.wanted > 0 and _has_place(region, 1)):
        region = region.next
    return region


cdef void _work() noexcept nogil:
    """Main loop of a worker, until its parallel region closes."""
    global sleeping, called
    cdef region_t *region
    cdef int64_t until
    cdef int rank, i
    workers_lock()
    while not closing:
        region = _region_to_join()
        if region == NULL:
            atomic_add(&watching, -1)
            sleeping += 1
            while called == 0 and not closing:
                wait_for_call()
            if called > 0:
                called -= 1
            atomic_add(&watching, 1)
            continue
        atomic_add(&watching, -1)
        atomic_add(&region.wanted, -1)
        atomic_add(&total_wanted, -1)
        rank = region.next_rank
        region.next_rank += 1
        atomic_increment(&region.inside)
        atomic_increment(&helping)
        workers_unlock()
        region.member(region.context, rank, region.size)
        atomic_decrement(&helping)
        atomic_decrement(&region.inside)       # the region may no longer exist
        atomic_increment(&watching)
        until = nanoseconds() + WATCH
        while atomic_load(&total_wanted) == 0 and nanoseconds() < until:
            for i in range(32):
                relax()
            sched_yield()          # the caller may need this core
        workers_lock()
    workers_unlock()


cdef void _close_parallel_region() noexcept nogil:
    """Make the members, then the host leave the parallel region. The mutex is held."""
    atomic_store(&closing, 1)
    call_all()
    call_host()


cdef void _keep_open(int members) noexcept nogil:
    """Wait in the host until the parallel region closes; `members` may be fewer than requested."""
    global workers
    workers_lock()
    workers = members
    atomic_add(&watching, members - opened)
    while not closing:
        if asked > opened or (asked < opened and timed_wait(GRACE) and asked < opened):
            _close_parallel_region()
        elif asked == opened:
            wait_as_host()
    workers_unlock()


cdef void *_host(void *unused) noexcept nogil:
    """Host thread: open a parallel region, and another whenever its size changes, while workers are wanted."""
    global sleeping, called, hosted, workers, opened
    cdef int members
    workers_lock()
    while asked > 0:
        opened = asked
        atomic_store(&watching, asked)         # not yet called
        members = <int>asked
        workers_unlock()
        hold_region(members)
        workers_lock()
        atomic_store(&closing, 0)
        atomic_store(&watching, 0)
        workers = opened = sleeping = called = 0
    hosted = False
    workers_unlock()
    return NULL


cdef void _ask_for(int64_t n) noexcept nogil:
    """Set the target number of workers. The mutex is held."""
    global asked
    asked = n
    if n > opened > 0:
        _close_parallel_region()
    else:
        call_host()


cdef void limit_workers(int n) noexcept nogil:
    global most_workers
    workers_lock()
    most_workers = n
    if hosted and asked != n:
        _ask_for(min(n, max(opened, AT_ONCE)))
    workers_unlock()


cdef bint _call_workers(region_t *region, int n) noexcept nogil:
    """Wake workers for the region; return whether a host must be started. The mutex is held."""
    global sleeping, called, hosted
    cdef bint host_missing
    n = n - <int>(atomic_load(&watching) + called)
    while n > 0 and sleeping > 0:
        sleeping -= 1
        called += 1
        call_worker()
        n -= 1
    if n > 0 and asked < min(region.budget - 1, most_workers):
        _ask_for(min(min(region.budget - 1, most_workers), max(asked + n, AT_ONCE)))
    host_missing = asked > 0 and not hosted
    hosted = hosted or host_missing
    return host_missing


cdef void _start_host() noexcept nogil:
    """Start the host, which is already counted. On failure the existing threads do the work."""
    global hosted
    if start_thread(_host) != 0:
        workers_lock()
        hosted = False
        workers_unlock()


# ---- regions

cdef void want_helpers(region_t *region, int n) noexcept nogil:
    cdef bint host_missing = False
    n = min(n, region.size - 1 - <int>(atomic_load(&region.inside) + atomic_load(&region.wanted)))
    if n <= 0:
        return
    workers_lock()
    n = min(n, region.size - 1 - <int>(atomic_load(&region.inside) + atomic_load(&region.wanted)))
    if n > 0 and not region.closed:
        atomic_add(&region.wanted, n)
        atomic_add(&total_wanted, n)
        if _has_place(region, 1):
            host_missing = _call_workers(region, n)
    workers_unlock()
    if host_missing:
        _start_host()


cdef void call_late_helpers(region_t *region) noexcept nogil:
    cdef bint host_missing = False
    if atomic_load(&region.wanted) <= 0 or not _has_place(region, 1):
        return
    workers_lock()
    if atomic_load(&watching) + called == 0:
        host_missing = _call_workers(region, 1)
    workers_unlock()
    if host_missing:
        _start_host()


cdef bint must_leave(region_t *region) noexcept nogil:
    """Return whether a helper must leave, because others need the core or the number of workers changes."""
    if _has_place(region, 0) and not atomic_load(&closing):
        return False
    workers_lock()
    if not region.closed:
        atomic_add(&region.wanted, 1)
        atomic_add(&total_wanted, 1)
    workers_unlock()
    return True


cdef void _close_region(void *pointer) noexcept nogil:
    """Close the region and wait for the workers inside."""
    global regions
    cdef region_t *region = <region_t *>pointer
    cdef region_t **link = &regions
    cdef int round = 0
    workers_lock()
    while link[0] != NULL and link[0] != region:
        link = &link[0].next
    if link[0] != NULL:                # NULL in the child of a fork inside the region
        link[0] = region.next
    region.closed = True
    atomic_add(&total_wanted, -atomic_load(&region.wanted))
    atomic_store(&region.wanted, 0)
    workers_unlock()
    while atomic_load(&region.inside) > 0:
        pause_briefly(round)
        round += 1
    mark_idle()


cdef void run_region(region_t *region, member_t member, void *context, int size, int budget) noexcept nogil:
    global regions
    memset(region, 0, sizeof(region_t))
    region.member, region.context, region.size, region.budget = member, context, size, budget
    region.next_rank = 1
    begin_work()
    workers_lock()
    region.next = regions
    regions = region
    workers_unlock()
    want_helpers(region, size - 1)
    run_and_close(member, context, size, _close_region, region)


cdef void workers_now(int64_t *threads, int64_t *helpers, int64_t *callers) noexcept nogil:
    workers_lock()
    threads[0] = workers
    workers_unlock()
    helpers[0] = atomic_load(&helping)
    callers[0] = _callers_now(-1)


cdef void _forget() noexcept nogil:
    """Reset after fork in the child, where only this thread exists."""
    global regions, total_wanted, workers, watching, sleeping, called, helping, own_slot, slots
    global asked, opened, closing, hosted
    cdef int i
    while regions != NULL:             # only this thread may be inside a region
        regions.inside = regions.wanted = 0
        regions = regions.next
    total_wanted = workers = watching = sleeping = called = helping = asked = opened = closing = 0
    hosted = False
    for i in range(SLOTS):
        seen[i].time = seen[i].taken = 0
    slots = 0
    own_slot = -1
    if work_depth > 0:
        own_slot = _take_slot()
        seen[own_slot].time = AT_WORK


set_region(_keep_open, _work)
workers_at_fork(_forget)
if watch_callers(_leave_slot) != 0:
    raise ImportError("cygrad: the system has no free thread-local key")


# ------------------------------------------------------------------------------------------------------------- parallel

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

# A loop with its own region.
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

cdef int loop_threads() noexcept nogil:
    return _configured_threads() if current_team != NULL and not in_region else thread_limit()


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
    # No new helper can join the job; wait for those inside.
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
        # Without a region; loops of the body may still be parallel.
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
    Set how many threads may compute concurrently.

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
    # Set OpenMP's limit too, so that later changes by threadpoolctl are detected.
    omp_set_num_threads(number)
    expected_openmp = omp_get_max_threads()


def get_num_threads():
    """
    Return how many threads an operation of this thread may use if no other thread computes.

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
    >>> with cygrad.threads(1):
    ...     cygrad.get_num_threads()
    1
    """

    def __init__(self, n):
        self._n = _at_least_one(n, "threads")
        self._before = None                # (limit, previous value of `_before`)

    def __enter__(self):
        global thread_cap
        self._before = thread_cap, self._before
        thread_cap = self._n
        return self

    def __exit__(self, type=None, value=None, traceback=None):       # *args might fail to allocate
        global thread_cap
        thread_cap, self._before = self._before

    def __repr__(self):
        return f"threads({self._n})"


at_fork(_in_child)
if "threadpoolctl" in sys.modules:
    _tell_threadpoolctl()


# ---------------------------------------------------------------------------------------------------------------- tasks

# Each member takes the first ready task, so order and memory are close to serial execution. A member without a task
# runs chunks of loops of other tasks, and leaves the team when idle until tasks become ready. The calling thread stays.

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
