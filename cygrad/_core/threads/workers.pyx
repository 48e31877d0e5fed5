"""
The workers: threads that join an open region; no region waits for one that has not joined.

One set of workers serves the whole process. A thread with enough work opens a *region*, wakes the workers and joins in.
A worker that joins takes a share; when the opener finds nothing left it closes the region and waits only for helpers
that are inside. On busy cores, where a worker may be scheduled too late, that costs nothing, while the barrier of an
OpenMP region that is opened for one loop would cost a time slice.

Where the workers come from: they are the members of one OpenMP parallel region that stays open (openmp.pxd). A thread
of ours, the host, opens it when workers are first needed. It stands for the caller: it has the first place of the
team, takes no part in the work, and sleeps until there are to be more workers, or have been too many for a while; then
the members leave, between two pieces of work, and the host opens the next region. No other thread waits at its barrier.

Who is at work is known: each Python thread that computes counts as a *caller*, for a moment longer than it really
computes, as it will go on with Python code; helpers come only if callers and helpers are fewer than the budget, and
leave between two pieces of work when new callers show up. So several Python threads use the cores once.

After fork the child has no workers and a host of its own opens a region for it.
"""

from libc.stdint cimport INT32_MAX, int64_t
from libc.string cimport memset
from cygrad._core.memory.atomic cimport (
    atomic_add, atomic_claim, atomic_decrement, atomic_increment, atomic_load, atomic_store)
from cygrad._core.threads.openmp cimport hold_region, set_region, start_thread

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
    /* The same for a while; was it not called? */
    static int timed_wait(int seconds) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += seconds;
        return pthread_cond_timedwait(&host_called, &workers_mutex, &until) != 0;
    }

    /* A forking thread holds the mutex, so that the child finds the list in order. */
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

    /* An exiting interpreter ends threads that ask for the GIL by unwinding their stacks. A region lives on such
       a stack: it has to be closed before. */
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
    /* When each caller was last at work, each on a cache line of its own. */
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
    # Nanoseconds for which a worker spins for the next region before it sleeps: waking it takes as long as a small
    # kernel, and the next region often comes within some tens of microseconds.
    WATCH = 100000
    GRACE = 1                  # seconds for which a surplus of workers is kept
    AT_ONCE = 64               # workers that are kept even if not all are needed; for more, the parallel region closes
    SPIN = 128                 # rounds of spinning before the core is yielded
    YIELD = 512                # rounds before sleeping

cdef int64_t AT_WORK = (<int64_t>1) << 62      # time stamp of a caller that is at work now
cdef int64_t slots = 0             # how many of `seen`, from the front, have ever been used

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


# ---- who is at work

cdef int _take_slot() noexcept nogil:
    """Claim a slot for this thread; when none is free, the last one is shared."""
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
    """May `more` helpers join the region, or, with 0, those inside stay?"""
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
        atomic_decrement(&region.inside)       # from here on the region may be gone
        atomic_increment(&watching)
        until = nanoseconds() + WATCH
        while atomic_load(&total_wanted) == 0 and nanoseconds() < until:
            for i in range(32):
                relax()
            sched_yield()          # if all cores are busy, this one may be the caller's
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
    """Wake workers for the region; -> must a host be started? The mutex is held."""
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
    """Start the host that is counted already. On failure, the work is done by the existing threads."""
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
    """Must a helper leave, because others need the core or the number of workers changes?"""
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
    if link[0] != NULL:                # unless this is the child of a fork inside the region
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
    while regions != NULL:             # a thread inside a region, perhaps this one, is alone there
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
