# distutils: extra_compile_args = -O1
"""Probes of memory, arrays, threads and the processor that Python cannot reach, for tests and benchmarks."""

from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdio cimport snprintf
from cygrad._core.arrays.array cimport (
    array_empty, array_empty_like, array_from_numpy, array_meta, array_t, array_view, exclusive, overlaps_itself,
    release, retain, shape_text, share_memory,
)
from cygrad._core.compiler.executable cimport ParallelSection
from cygrad._core.memory.atomic cimport (
    atomic_add, atomic_claim, atomic_increment, atomic_load, atomic_store, lock, lock_inner, unlock,
)
from cygrad._core.memory.errors cimport MESSAGE, OK, RUNTIME_ERROR, check, message
from cygrad._core.memory.storage cimport (
    allocate, deallocate, has_pending, has_waiting, release_pending, storage_new, storage_release, storage_t,
    version_new, version_release, version_t,
)
from cygrad._core.primitives.primitive_table cimport vector_loop_for
from cygrad._core.threads.parallel cimport (
    begin_work, help_team, mark_idle, parallel_for, pause_briefly, run_tasks, run_team, thread_limit, workers_now,
)

cdef extern from * nogil:
    """
    #include <time.h>
    #include <pthread.h>
    static void sleep_briefly(void) { struct timespec t = {0, 200000}; nanosleep(&t, NULL); }
    static unsigned long this_thread(void) { return (unsigned long)pthread_self(); }
    """
    void sleep_briefly()
    unsigned long this_thread()

cdef extern from "testing/multiply_adds.h" nogil:
    int64_t (*most_multiply_adds[2])(int64_t n)

ctypedef void (*vector_function_t)(const void *const *operands, void *out, int64_t n, int numbers) noexcept nogil


# ---- vector code

def apply_for_target(str name, int target, float[::1] x, float[::1] y, float[::1] out):
    """Run the vector code of a primitive for float32 as for a SIMD target; return whether there is any."""
    cdef vector_function_t loop = <vector_function_t>vector_loop_for(name.encode(), target)
    cdef const void *operands[2]
    operands[0], operands[1] = &x[0], &y[0]
    if loop != NULL:
        loop(operands, &out[0], x.shape[0], y.shape[0] == 1)
    return loop != NULL


# ---- memory

def allocate_blocks(int n, int64_t nbytes):
    """Allocate `n` blocks, write to them, and return their addresses."""
    cdef void *block
    cdef int64_t j
    addresses = []
    for _ in range(n):
        block = allocate(nbytes)
        for j in range(nbytes):
            (<char *>block)[j] = 7
        addresses.append(<uintptr_t>block)
    return addresses


def free_blocks(addresses, int64_t nbytes):
    """Free blocks, which another thread may have allocated."""
    for address in addresses:
        deallocate(<void *><uintptr_t>address, nbytes)


def allocate_and_free(int64_t n, int64_t nbytes):
    """Allocate and free a block `n` times: the fast path of the allocator."""
    cdef int64_t i
    with nogil:
        for i in range(n):
            deallocate(allocate(nbytes), nbytes)


def storage_facts(int64_t nbytes):
    """Create, fill and release a storage; return address of its data, bytes and refcount, or None."""
    cdef storage_t *storage = storage_new(nbytes)
    cdef int64_t j
    if storage == NULL:
        return None
    for j in range(nbytes):
        storage.data[j] = 7
    facts = <uintptr_t>storage.data, storage.nbytes, storage.count, bool(storage.writable), storage.version.value
    storage_release(storage)
    return facts


def version_facts():
    """Create, share and release a version counter; return its first refcount and value."""
    cdef version_t *version = version_new()
    facts = version.count, version.value
    atomic_increment(&version.count)
    version_release(version)
    version_release(version)
    return facts


def release_without_gil(ndarray):
    """Release the only array over an ndarray without the GIL; return whether the release was deferred."""
    cdef array_t *array = array_from_numpy(ndarray, False)
    cdef bint waiting
    with nogil:
        release(array)
        waiting = has_pending() and has_waiting()
    return waiting


def release_owners():
    """Release the deferred owners; return whether any are left."""
    release_pending()
    return has_pending()


# ---- arrays

def array_facts(ndarray):
    """Return the metadata of an array."""
    cdef array_t *array = array_from_numpy(ndarray, False)
    facts = {
        "contiguous": bool(array.contiguous),
        "size": array.size,
        "overlaps": overlaps_itself(array),
        "shape": tuple([array.shape[i] for i in range(array.ndim)]),
        "strides": tuple([array.strides[i] for i in range(array.ndim)]),
        "text": shape_text(array).decode(),
        "exclusive": exclusive(array),
        "writable": bool(array.storage.writable),
        "offset": array.data - array.storage.data,
        "nbytes": array.storage.nbytes,
    }
    release(array)
    return facts


def arrays_meet(a, b):
    """Return whether the core finds that two ndarrays share memory."""
    cdef array_t *first = array_from_numpy(a, False)
    cdef array_t *second = array_from_numpy(b, False)
    meet = share_memory(first, second)
    release(first)
    release(second)
    return meet


def exclusiveness(int dtype, shape):
    """
    Return whether a new array is exclusive: alone, while a second owner holds it, while a view exists, and after that.
    """
    cdef int64_t[64] sizes
    cdef array_t *array
    cdef array_t *view
    cdef array_t *like
    cdef array_t *meta
    for i, size in enumerate(shape):
        sizes[i] = size
    array = array_empty(dtype, len(shape), sizes)
    answers = [exclusive(array)]
    retain(array)
    answers.append(exclusive(array))
    release(array)
    view = array_view(array, array.dtype, array.ndim, array.shape, array.strides, 0)
    answers.append(exclusive(array))
    assert view.version == array.version and view.storage == array.storage
    release(view)
    answers.append(exclusive(array))
    like = array_empty_like(array, -1)
    meta = array_meta(array)
    assert like.storage != array.storage and like.size == array.size
    assert meta.storage == NULL and meta.size == array.size
    view = array_view(meta, array.dtype, array.ndim, array.shape, array.strides, 0)
    assert view.data == NULL
    release(view)
    release(like)
    release(meta)
    release(array)
    return answers


# ---- threads

ctypedef struct chunks_t:
    int64_t n                 # chunks so far
    int64_t inner             # chunks of inner loops
    int64_t inner_limit       # the largest thread limit seen inside
    int64_t sleep
    int64_t members
    int64_t left
    int64_t *begins
    int64_t *ends
    unsigned long *threads


cdef void _note_inner(void *context, int64_t begin, int64_t end) noexcept nogil:
    """A chunk of an inner loop."""
    atomic_increment(&(<chunks_t *>context).inner)


cdef void _record_chunk(void *context, int64_t begin, int64_t end) noexcept nogil:
    """Record which chunk this is and its thread; open an inner loop."""
    cdef chunks_t *chunks = <chunks_t *>context
    cdef int64_t i = atomic_increment(&chunks.n) - 1
    cdef int64_t limit = thread_limit(), seen = atomic_load(&chunks.inner_limit)
    chunks.begins[i], chunks.ends[i] = begin, end
    chunks.threads[i] = this_thread()
    while limit > seen and not atomic_claim(&chunks.inner_limit, seen, limit):
        seen = atomic_load(&chunks.inner_limit)
    if chunks.sleep:
        sleep_briefly()
    parallel_for(_note_inner, context, 10, 3)


cdef void _member(void *context, int rank, int size) noexcept nogil:
    """Rank 0 runs a loop; the others help until it is done."""
    cdef chunks_t *chunks = <chunks_t *>context
    atomic_store(&chunks.members, size)
    if rank == 0:
        parallel_for(_record_chunk, context, 1000, 10)
        atomic_add(&chunks.left, -1)
    else:
        while atomic_load(&chunks.left) > 0:
            help_team()


def loop_chunks(int64_t n, int64_t grain, team=0, sleep=False):
    """
    Run a loop, in a team of `team` members unless that is 0; return what its chunks recorded.

    A dict with the sorted ``chunks``, the ``threads`` that ran them, the number ``inner`` of chunks of the
    loops inside, the ``inner_limit`` that those saw, and the ``members`` of the team.
    """
    cdef chunks_t record
    cdef int64_t most = 100 if team else n // max(grain, 1) + 2
    cdef int size = team
    record.n = record.inner = record.inner_limit = record.members = 0
    record.left = 1
    record.sleep = sleep
    record.begins = <int64_t *>allocate(most * sizeof(int64_t))
    record.ends = <int64_t *>allocate(most * sizeof(int64_t))
    record.threads = <unsigned long *>allocate(most * sizeof(unsigned long))
    with nogil:
        if size:
            run_team(_member, &record, size)
        else:
            parallel_for(_record_chunk, &record, n, grain)
    answer = {
        "chunks": sorted([(record.begins[i], record.ends[i]) for i in range(record.n)]),
        "threads": {record.threads[i] for i in range(record.n)},
        "inner": record.inner,
        "inner_limit": record.inner_limit,
        "members": record.members,
    }
    deallocate(record.begins, most * sizeof(int64_t))
    deallocate(record.ends, most * sizeof(int64_t))
    deallocate(record.threads, most * sizeof(unsigned long))
    return answer


ctypedef struct task_record_t:
    int64_t runs
    int64_t begin             # index among all begins and ends
    int64_t end
    unsigned long thread
    bint fails


ctypedef struct task_records_t:
    task_record_t *tasks
    int64_t n
    bint sleep


cdef int _run_probe_task(void *context, int32_t task) noexcept nogil:
    cdef task_records_t *record = <task_records_t *>context
    cdef task_record_t *own = &record.tasks[task]
    own.begin, own.thread = atomic_increment(&record.n), this_thread()
    atomic_increment(&own.runs)
    if record.sleep:
        sleep_briefly()
    own.end = atomic_increment(&record.n)
    if own.fails:
        snprintf(message(), MESSAGE, b"task %d", <int>task)
        return RUNTIME_ERROR
    return OK


def task_run(ParallelSection section, fails=(), sleep=False):
    """Run tasks, of which some fail; return for each (number of runs, begin, end, thread)."""
    cdef task_records_t record
    cdef int i, status, n = section.tasks.n
    record.n, record.sleep = 0, sleep
    record.tasks = <task_record_t *>allocate(n * sizeof(task_record_t))
    try:
        for i in range(n):
            record.tasks[i] = task_record_t(0, 0, 0, 0, i in fails)
        with nogil:
            status = run_tasks(&section.tasks, _run_probe_task, &record)
        answer = [(record.tasks[i].runs, record.tasks[i].begin, record.tasks[i].end, record.tasks[i].thread)
                  for i in range(n)]
        check(status)
        return answer
    finally:
        deallocate(record.tasks, n * sizeof(task_record_t))


def limit_here():
    """Return the thread limit of a region opened now."""
    return thread_limit()


def workers():
    """Return the number of workers, of those at work, and of busy callers."""
    cdef int64_t threads, helping, callers
    workers_now(&threads, &helping, &callers)
    return {"threads": threads, "helping": helping, "callers": callers}


def enter():
    """Count the calling thread as busy from here on."""
    begin_work()


def leave():
    """End what `enter` began."""
    mark_idle()


def break_a_rule(which):
    """Break a lock rule; debug builds abort the process."""
    cdef int32_t first = 0, second = 0
    if which == "order":
        lock_inner(&first)
        lock(&second)
        unlock(&second)
        unlock(&first)
    elif which == "gil":
        lock(&first)
        with nogil:
            unlock(&first)
    elif which == "return":
        unlock(&first)


# ---- cost of threads

def take_and_return_locks(int64_t n):
    """Lock and unlock a mutex `n` times, without the GIL."""
    cdef int32_t one = 0
    cdef int64_t i
    with nogil:
        for i in range(n):
            lock(&one)
            unlock(&one)


def hand_over_the_gil(int64_t n):
    """Release and acquire the GIL `n` times."""
    cdef int64_t i
    for i in range(n):
        with nogil:
            pass


cdef void _nothing_to_do(void *context, int rank, int size) noexcept nogil:
    """A member without work."""


def start_and_end_teams(int64_t n, int size):
    """Open and close a team without work `n` times."""
    cdef int64_t i
    with nogil:
        for i in range(n):
            run_team(_nothing_to_do, NULL, size)


cdef void _wait_for_company(void *context, int rank, int size) noexcept nogil:
    """Wait until all members have arrived."""
    cdef int64_t *arrived = <int64_t *>context
    cdef int round = 0
    atomic_increment(arrived)
    while atomic_load(arrived) < size and round < 1000000:
        pause_briefly(round)
        round += 1


def assemble_teams(int64_t n, int size):
    """Open a team and close it when all members have arrived, `n` times; return how often all came."""
    cdef int64_t i, arrived, complete = 0
    with nogil:
        for i in range(n):
            arrived = 0
            run_team(_wait_for_company, &arrived, size)
            complete += arrived >= size
    return complete


# ---- the processor

def multiply_adds(bint double_precision, int64_t n):
    """Multiply and add in registers, in `n` rounds; return the number of multiply-adds."""
    cdef int64_t count
    with nogil:
        count = most_multiply_adds[double_precision](n)
    return count
