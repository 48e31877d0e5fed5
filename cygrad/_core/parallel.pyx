"""The one door to OpenMP: loops in fixed pieces, and teams of workers.

Three rules hold everywhere. Pieces depend on the problem alone, so results have the same bits for any
number of threads. A region inside a region is serial, unless it is a loop inside a team, whose idle
members then take pieces of it. And all regions that are open at a moment share one budget of threads,
so that several Python threads together use the cores once.

After fork the child is serial for good: the threads of the parent's OpenMP do not exist there, and its
run-time library would wait for them for ever.
"""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.atomic cimport (
    atomic_add, atomic_decrement, atomic_increment, atomic_load, atomic_store, lock, unlock)

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <sched.h>
    #ifdef _OPENMP
    #include <omp.h>
    #else
    static int omp_get_max_threads(void) { return 1; }
    static void omp_set_num_threads(int n) { (void)n; }
    #endif

    struct team;
    static __thread struct team *current_team;    /* the team that this thread is a member of */
    static __thread int in_region;                /* regions opened now by this thread are serial */
    static __thread int thread_cap;               /* of the context manager `threads`; 0: none */
    static __thread int expected_openmp;          /* OpenMP's limit when nobody has changed it; 0: the default */

    static void open_region(void (*member)(void *, int, int), void *context, int size) {
    #ifdef _OPENMP
        #pragma omp parallel num_threads(size)
        member(context, omp_get_thread_num(), omp_get_num_threads());
    #else
        (void)size;
        member(context, 0, 1);
    #endif
    }
    static void at_fork(void (*in_child)(void)) { pthread_atfork(NULL, NULL, in_child); }
    static void pause_briefly(int round) {
        if (round >= 64) sched_yield();
    #if defined(__x86_64__) || defined(__i386__)
        else __builtin_ia32_pause();
    #endif
    }
    """
    struct team:
        pass
    team *current_team
    int in_region
    int thread_cap
    int expected_openmp
    int omp_get_max_threads()
    void omp_set_num_threads(int n)
    void open_region(void (*member)(void *, int, int) noexcept nogil, void *context, int size)
    void at_fork(void (*in_child)() noexcept nogil)
    void pause_briefly(int round)

ctypedef struct job_t:
    # A loop that members of a team share; lives on the stack of the member that opened it.
    body_t body
    void *context
    int64_t n
    int64_t grain
    int64_t next_piece    # atomic: the first piece that nobody has taken
    int64_t helpers       # atomic: members at work in it, besides its owner; raised under the team's lock
    job_t *next

ctypedef struct team_t:
    member_t member
    void *context
    job_t *jobs
    int32_t jobs_lock

# Shared by all threads of the process.
cdef int64_t active_regions = 0
cdef int64_t used_threads = 0
cdef int chosen_threads = 0       # by set_num_threads; 0: OpenMP's own default
cdef int default_threads = omp_get_max_threads()
cdef bint forked = False


# ---- the budget

cdef int configured_threads() noexcept nogil:
    """How many threads this thread's regions could use if it were alone."""
    cdef int openmp = omp_get_max_threads()
    cdef int expected = expected_openmp if expected_openmp else default_threads
    cdef int limit = chosen_threads if chosen_threads else default_threads
    if forked:
        return 1
    # Somebody has spoken to OpenMP itself: threadpoolctl, or the user.
    if openmp != expected and (openmp < limit or not chosen_threads):
        limit = openmp
    if thread_cap and thread_cap < limit:
        limit = thread_cap
    return limit


cdef int thread_limit() noexcept nogil:
    """How many threads a region opened now by this thread may use."""
    cdef int64_t limit, free
    if in_region or current_team != NULL:
        return 1
    limit = configured_threads()
    if limit > 1:
        free = limit - atomic_load(&used_threads)
        limit = limit // (atomic_load(&active_regions) + 1)
        if limit > free:
            limit = free
    return <int>limit if limit > 1 else 1


cdef void open_counted(member_t member, void *context, int size) noexcept nogil:
    """A region that counts against the budget."""
    atomic_increment(&active_regions)
    atomic_add(&used_threads, size)
    open_region(member, context, size)
    atomic_add(&used_threads, -size)
    atomic_decrement(&active_regions)


# ---- loops

cdef void run_piece(job_t *job, int64_t piece) noexcept nogil:
    """One piece of a loop; regions that its body opens are serial."""
    global in_region
    cdef int before = in_region
    cdef int64_t begin = piece * job.grain
    cdef int64_t end = begin + job.grain
    in_region = True
    job.body(job.context, begin, end if end < job.n else job.n)
    in_region = before


cdef bint take_piece(job_t *job) noexcept nogil:
    """Run the next piece that nobody has taken; False if there is none."""
    cdef int64_t piece = atomic_add(&job.next_piece, 1) - 1
    if piece * job.grain >= job.n:
        return False
    run_piece(job, piece)
    return True


cdef void take_pieces(void *context, int rank, int size) noexcept nogil:
    """A member of a region opened for one loop."""
    while take_piece(<job_t *>context):
        pass


cdef void share_with_team(job_t *job, team_t *team) noexcept nogil:
    """Run a loop while idle members of the team take pieces of it."""
    cdef job_t **link
    cdef int round = 0
    lock(&team.jobs_lock)
    job.next = team.jobs
    team.jobs = job
    unlock(&team.jobs_lock)
    while take_piece(job):
        pass
    lock(&team.jobs_lock)
    link = &team.jobs
    while link[0] != job:
        link = &link[0].next
    link[0] = job.next
    unlock(&team.jobs_lock)
    # Nobody can find the job any more; those who have, finish their pieces.
    while atomic_load(&job.helpers) > 0:
        pause_briefly(round)
        round += 1


cdef void parallel_for(body_t body, void *context, int64_t n, int64_t grain) noexcept nogil:
    """body(context, begin, end) over 0..n in consecutive pieces of `grain` elements."""
    cdef job_t job
    cdef int64_t pieces, piece
    cdef int threads
    if n <= 0:
        return
    if grain < 1:
        grain = 1
    if n <= grain:
        # No region: a loop that the body opens may still be shared.
        body(context, 0, n)
        return
    pieces = (n - 1) // grain + 1
    job.body, job.context, job.n, job.grain = body, context, n, grain
    job.next_piece = job.helpers = 0
    job.next = NULL
    if current_team != NULL and not in_region:
        share_with_team(&job, <team_t *>current_team)
        return
    threads = thread_limit()
    if threads > pieces:
        threads = <int>pieces
    if threads > 1:
        open_counted(take_pieces, &job, threads)
    else:
        for piece in range(pieces):
            run_piece(&job, piece)


# ---- teams

cdef void enter_team(void *context, int rank, int size) noexcept nogil:
    """A member of a team: mark the thread while the member's function runs."""
    global current_team
    cdef team_t *own = <team_t *>context
    current_team = <team *>own if size > 1 else NULL
    own.member(own.context, rank, size)
    current_team = NULL


cdef void run_team(member_t member, void *context, int size) noexcept nogil:
    """Run member(context, rank, size) on each of `size` threads (fewer if the system gives fewer)."""
    cdef team_t own
    if size <= 1 or in_region or current_team != NULL or forked:
        member(context, 0, 1)
        return
    own.member, own.context = member, context
    own.jobs = NULL
    own.jobs_lock = 0
    open_counted(enter_team, &own, size)


cdef bint help_team() noexcept nogil:
    """Run one piece of a loop that another member of this thread's team has opened; False if none is left."""
    cdef team_t *own = <team_t *>current_team
    cdef job_t *job
    cdef bint helped = False
    if own == NULL or in_region or own.jobs == NULL:
        return False
    lock(&own.jobs_lock)
    job = own.jobs
    while job != NULL and atomic_load(&job.next_piece) * job.grain >= job.n:
        job = job.next
    if job != NULL:
        atomic_increment(&job.helpers)
    unlock(&own.jobs_lock)
    if job != NULL:
        helped = take_piece(job)
        atomic_decrement(&job.helpers)
    return helped


cdef void in_child() noexcept nogil:
    """After fork, in the child: there is nobody to share with."""
    global forked, current_team, in_region
    forked = True
    current_team = NULL
    in_region = 0
    atomic_store(&active_regions, 0)
    atomic_store(&used_threads, 0)


# ---- what Python sees

def set_num_threads(n):
    """
    Set how many threads may be at work at the same time.

    All Python threads share them. Results do not depend on the number: they have the same bits for any.

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
    global chosen_threads, expected_openmp
    cdef int number = _at_least_one(n, "set_num_threads")
    chosen_threads = number
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
    return configured_threads()


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
        self._before = []

    def __enter__(self):
        global thread_cap
        self._before.append(thread_cap)
        thread_cap = self._n
        return self

    def __exit__(self, *exception):
        global thread_cap
        thread_cap = self._before.pop()

    def __repr__(self):
        return f"threads({self._n})"


at_fork(in_child)
