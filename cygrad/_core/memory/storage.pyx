"""Memory: counted storages, version counters and the recycling allocator. Nothing needs the GIL.

Three layers. Each thread has a cache of free small blocks, one chain per class of 64 bytes, used
without any lock; it trades batches with the slabs that all threads share (slabs.pyx) and gives
everything back when the thread ends. Larger data comes from a shared cache (large_blocks.pyx).

The header of a storage stands *after* its small data, at the end of the same block: so the data are
aligned to 64 bytes and up to 56 bytes of them fit with the header into 128.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from cygrad._core.memory.atomic cimport atomic_is_last
from cygrad._core.memory.errors cimport MESSAGE, message, unlikely
from cygrad._core.memory.large_blocks cimport (
    give_exact, give_large, large_stats, large_stats_t, set_large_limit, take_exact, take_large, trim_large)
from cygrad._core.memory.references cimport drop_reference, has_waiting, release_waiting, take_reference
from cygrad._core.memory.slabs cimport (
    CLASSES, LARGEST_SMALL, UNIT, block_t, give_blocks, slab_bytes, take_blocks, trim_slabs)

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <stdlib.h>
    #include "memory/thread_variable.h"
    THREAD_VARIABLE void *thread_cache;
    THREAD_VARIABLE int generation = 1;     /* what `writable` of new storages says: not zero */

    /* In builds for looking for errors each small block is one of malloc's, as long as was asked for: what writes
       after it is seen there, where a slab would hide it. */
    #if defined(CYGRAD_DEBUG) || defined(__SANITIZE_ADDRESS__)
    enum { EACH_APART = 1 };
    #else
    enum { EACH_APART = 0 };
    #endif
    static long long until_failure;
    static int fails_now(void) {
        return EACH_APART && __atomic_load_n(&until_failure, __ATOMIC_RELAXED) > 0
               && __atomic_sub_fetch(&until_failure, 1, __ATOMIC_RELAXED) == 0;
    }
    static void *block_apart(size_t nbytes) {
        void *block;
        return posix_memalign(&block, 64, nbytes ? nbytes : 1) ? NULL : block;
    }

    static pthread_key_t thread_end;
    static pthread_mutex_t threads_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void threads_lock(void) { pthread_mutex_lock(&threads_mutex); }
    static void threads_unlock(void) { pthread_mutex_unlock(&threads_mutex); }
    static int watch_threads(void (*at_end)(void *)) {
        pthread_atfork(threads_lock, threads_unlock, threads_unlock);
        return pthread_key_create(&thread_end, at_end);
    }
    static void watch_this_thread(void *cache) { pthread_setspecific(thread_end, cache); }
    """
    void *thread_cache
    int generation
    bint EACH_APART
    long long until_failure
    bint fails_now()
    void *block_apart(size_t nbytes)
    void threads_lock()
    void threads_unlock()
    int watch_threads(void (*at_end)(void *) noexcept nogil)
    void watch_this_thread(void *cache)

cdef enum:
    CACHED_BYTES = 32768      # per thread and class; at most 1 MiB per thread
    FOREIGN = 0               # size_class of a storage over foreign data; NO_ELEMENTS is below
    FIRST_LARGE = 64          # size_class of a large block of class c: FIRST_LARGE + c

ctypedef struct cache_t:
    block_t *first[CLASSES]
    int32_t free_slots[CLASSES]
    int64_t taken             # bytes taken from the slabs minus bytes given back (may be negative)
    cache_t *next             # list of all caches, for the statistics
    cache_t *previous

cdef cache_t *caches = NULL
cdef int64_t ended_in_use = 0     # sum of `in_use` of threads that ended


# ---- small blocks

cdef inline int32_t _capacity(int size_class) noexcept nogil:
    """Return how many blocks of a class a thread keeps."""
    return CACHED_BYTES // (size_class * UNIT)


cdef inline int64_t _idle_bytes(cache_t *cache, int size_class) noexcept nogil:
    """Return the bytes of the free blocks of a class."""
    return <int64_t>(_capacity(size_class) - cache.free_slots[size_class]) * size_class * UNIT


cdef int64_t _in_use(cache_t *cache) noexcept nogil:
    """Return bytes allocated minus bytes freed by a thread (may be negative)."""
    cdef int64_t found = cache.taken
    cdef int size_class
    for size_class in range(1, CLASSES):
        found -= _idle_bytes(cache, size_class)
    return found


cdef cache_t *_new_cache() noexcept nogil:
    """Create the cache of this thread; NULL if memory is exhausted."""
    global caches, thread_cache
    cdef cache_t *cache = <cache_t *>calloc(1, sizeof(cache_t))
    cdef int size_class
    if cache == NULL:
        return NULL
    for size_class in range(1, CLASSES):
        cache.free_slots[size_class] = _capacity(size_class)
    threads_lock()
    cache.next = caches
    if caches != NULL:
        caches.previous = cache
    caches = cache
    threads_unlock()
    thread_cache = cache
    watch_this_thread(cache)
    return cache


cdef void _flush(cache_t *cache) noexcept nogil:
    """Return all blocks of a cache to the slabs."""
    cdef int size_class
    for size_class in range(1, CLASSES):
        give_blocks(cache.first[size_class])
        cache.first[size_class] = NULL
        cache.taken -= _idle_bytes(cache, size_class)
        cache.free_slots[size_class] = _capacity(size_class)


cdef void _end_of_thread(void *pointer) noexcept nogil:
    """Thread-exit destructor of a cache."""
    global caches, ended_in_use, thread_cache
    cdef cache_t *cache = <cache_t *>pointer
    thread_cache = NULL
    # Leave the list first: while blocks go back one class after another, the sum would be wrong for a reader.
    threads_lock()
    ended_in_use += _in_use(cache)
    if cache.previous != NULL:
        cache.previous.next = cache.next
    else:
        caches = cache.next
    if cache.next != NULL:
        cache.next.previous = cache.previous
    threads_unlock()
    _flush(cache)
    free(cache)


cdef void *_refill(int size_class) noexcept nogil:
    """allocate() when the thread has no block of this class, or no cache yet."""
    cdef cache_t *cache = <cache_t *>thread_cache
    cdef block_t *block
    cdef int32_t taken = 0
    if cache == NULL:
        cache = _new_cache()
        if cache == NULL:
            return NULL
    block = take_blocks(size_class, _capacity(size_class) // 2, &taken)
    if taken == 0:
        return NULL
    cache.first[size_class] = block.next
    cache.taken += <int64_t>taken * size_class * UNIT
    cache.free_slots[size_class] = _capacity(size_class) - (taken - 1)
    return block


cdef void _spill(cache_t *cache, int size_class) noexcept nogil:
    """Return the older half of a full class to the slabs."""
    cdef int32_t keep = _capacity(size_class) // 2, i
    cdef block_t *last = cache.first[size_class]
    for i in range(keep - 1):
        last = last.next
    give_blocks(last.next)
    last.next = NULL
    cache.taken -= _idle_bytes(cache, size_class) - <int64_t>keep * size_class * UNIT
    cache.free_slots[size_class] = _capacity(size_class) - keep


cdef void *_allocate_apart(int size_class, int64_t nbytes) noexcept nogil:
    """Allocate exactly `nbytes` with malloc, counted as a block of its class."""
    cdef cache_t *cache = <cache_t *>thread_cache if thread_cache != NULL else _new_cache()
    cdef void *block = block_apart(nbytes) if cache != NULL and not fails_now() else NULL
    if block != NULL:
        cache.taken += size_class * UNIT
    return block


cdef inline void *_allocate_class(int size_class, int64_t nbytes) noexcept nogil:
    """Allocate a small block of class 1 ... CLASSES - 1."""
    cdef cache_t *cache = <cache_t *>thread_cache
    cdef block_t *block
    if EACH_APART:
        return _allocate_apart(size_class, nbytes)
    if unlikely(cache == NULL) or unlikely(cache.first[size_class] == NULL):
        return _refill(size_class)
    block = cache.first[size_class]
    cache.first[size_class] = block.next
    cache.free_slots[size_class] += 1
    return block


cdef inline void _deallocate_class(void *pointer, int size_class) noexcept nogil:
    """Return a block to the cache of this thread, whichever thread allocated it."""
    cdef cache_t *cache = <cache_t *>thread_cache
    cdef block_t *block = <block_t *>pointer
    if EACH_APART or unlikely(cache == NULL) or unlikely(cache.free_slots[size_class] == 0):
        deallocate_slowly(pointer, size_class)
        return
    block.next = cache.first[size_class]
    cache.first[size_class] = block
    cache.free_slots[size_class] -= 1


# By a pointer, so that the compiler does not inline it into the fast path.
cdef void (*deallocate_slowly)(void *, int) noexcept nogil
deallocate_slowly = _deallocate_slowly


cdef void _deallocate_slowly(void *pointer, int size_class) noexcept nogil:
    """The same if the thread has no cache yet or the cache is full."""
    cdef cache_t *cache = <cache_t *>thread_cache
    cdef block_t *block = <block_t *>pointer
    if cache == NULL:
        cache = _new_cache()
        if cache == NULL:
            if EACH_APART:
                free(pointer)
                return
            block.next = NULL
            give_blocks(block)
            return
    if EACH_APART:
        free(pointer)
        cache.taken -= size_class * UNIT
        return
    if cache.free_slots[size_class] == 0:
        _spill(cache, size_class)
    block.next = cache.first[size_class]
    cache.first[size_class] = block
    cache.free_slots[size_class] -= 1


cdef inline int _class_of(int64_t nbytes) noexcept nogil:
    """Return the class of blocks for n bytes, n >= 1."""
    return <int>(<uint64_t>(nbytes + UNIT - 1) // UNIT)


cdef void *allocate(int64_t nbytes) noexcept nogil:
    """Allocate plain memory, uninitialized."""
    if <uint64_t>nbytes - 1 < LARGEST_SMALL:
        return _allocate_class(_class_of(nbytes), nbytes)
    if nbytes == 0:
        return _allocate_class(1, nbytes)
    return take_exact(nbytes)      # very long lists


cdef void deallocate(void *block, int64_t nbytes) noexcept nogil:
    """Free what allocate(nbytes) returned."""
    if block == NULL:
        return
    if unlikely(nbytes > LARGEST_SMALL):
        give_exact(block, nbytes)
    else:
        _deallocate_class(block, _class_of(nbytes) if nbytes > 0 else 1)


# ---- storages

cdef int last_generation = 1


def begin_generation():
    """Mark the storages that this thread makes from now on with a new generation; -> its number."""
    global last_generation, generation
    last_generation += 1
    generation = last_generation
    return generation


def end_generation():
    """Mark new storages as usual again."""
    global generation
    generation = 1


cdef inline void _initialize(storage_t *storage, int64_t nbytes, char *data, int size_class) noexcept nogil:
    """Fill in the header."""
    storage.count = storage.version.count = storage.version.embedded = 1
    storage.nbytes = nbytes
    storage.data = data
    storage.owner = storage.version.code = NULL
    storage.size_class = size_class
    storage.writable = generation
    storage.version.value = 0
    storage.version.offset = 0


cdef storage_t *_no_memory(int64_t nbytes) noexcept nogil:
    """Set the message and return NULL."""
    snprintf(message(), MESSAGE, b"out of memory: cannot allocate %lld bytes. Free tensors, or use "
             b"smaller batches or checkpointing.", <long long>nbytes)
    return NULL


cdef storage_t *storage_new(int64_t nbytes) noexcept nogil:
    cdef int size_class
    cdef char *data
    cdef storage_t *storage
    if 0 <= nbytes <= LARGEST_SMALL - <int64_t>sizeof(storage_t):
        size_class = _class_of(nbytes + <int64_t>sizeof(storage_t))
        data = <char *>_allocate_class(size_class, nbytes)
        if data == NULL:
            return _no_memory(nbytes)
        storage = <storage_t *>(data + size_class * UNIT - sizeof(storage_t))
        if EACH_APART:
            storage = <storage_t *>block_apart(sizeof(storage_t))
            if storage == NULL:
                _deallocate_class(data, size_class)
                return _no_memory(nbytes)
        _initialize(storage, nbytes, data, size_class)
        return storage
    data = take_large(nbytes, &size_class) if nbytes > 0 and not fails_now() else NULL
    if data == NULL:
        return _no_memory(nbytes)
    storage = <storage_t *>allocate(sizeof(storage_t))
    if storage == NULL:
        give_large(data, size_class)
        return _no_memory(nbytes)
    _initialize(storage, nbytes, data, FIRST_LARGE + size_class)
    return storage


cdef storage_t *storage_foreign(void *data, int64_t nbytes, object owner, bint writable):
    """Return a storage over memory that `owner` keeps alive; NULL and a message if memory is exhausted."""
    cdef storage_t *storage
    release_pending()
    storage = <storage_t *>allocate(sizeof(storage_t))
    if storage == NULL:
        return _no_memory(nbytes)
    _initialize(storage, nbytes, <char *>data, FOREIGN)
    storage.writable = generation if writable else False
    storage.owner = take_reference(owner)
    return storage


cdef inline void _free_storage(storage_t *storage) noexcept nogil:
    """Free the struct, and small memory with it."""
    if unlikely(storage.version.code != NULL):
        drop_reference(storage.version.code)
    if unlikely(storage.size_class >= FIRST_LARGE or storage.size_class <= FOREIGN):
        deallocate(storage, sizeof(storage_t))
    else:
        _deallocate_class(storage.data, storage.size_class)
        if EACH_APART:
            free(storage)


cdef void storage_release(storage_t *storage) noexcept nogil:
    """Drop one reference; the last one frees. Call it without locks."""
    cdef void *owner
    if storage == NULL or not atomic_is_last(&storage.count):
        return
    owner = storage.owner
    if unlikely(storage.size_class >= FIRST_LARGE):
        give_large(storage.data, storage.size_class - FIRST_LARGE)
    if atomic_is_last(&storage.version.count):       # arrays share an embedded counter, and the last of them frees it
        _free_storage(storage)
    if unlikely(owner != NULL):
        drop_reference(owner)


# ---- version counters

cdef version_t *version_new() noexcept nogil:
    """Return a new version counter with refcount 1; NULL if memory is exhausted."""
    cdef version_t *version = <version_t *>allocate(sizeof(version_t))
    if version != NULL:
        memset(version, 0, sizeof(version_t))
        version.count = 1
    return version


cdef void version_release(version_t *version) noexcept nogil:
    """Drop one reference; the last one frees. The storage holds one reference to its embedded counter."""
    if version == NULL or not atomic_is_last(&version.count):
        return
    if version.embedded:
        _free_storage(<storage_t *>(<char *>version - (sizeof(storage_t) - sizeof(version_t))))  # it is the last member
        return
    if version.code != NULL:
        drop_reference(version.code)
    deallocate(version, sizeof(version_t))


# ---- references to Python objects

cdef void release_pending():
    release_waiting()


cdef bint has_pending() noexcept nogil:
    """Are references pending? (Read without locking.)"""
    return has_waiting()


# ---- what Python sees

def memory_stats():
    """
    Return how much memory the library holds, in bytes.

    Memory is recycled: what is freed stays with the library, up to a limit, because the first use of
    fresh memory is slow. Foreign memory (of NumPy arrays, say) is not counted.

    Returns
    -------
    dict
        ``small_in_use``
            Blocks of at most 2 KiB in use: metadata, graph, data of small tensors. Exact.
        ``small_mapped``
            What has been taken from the system for such blocks.
        ``large_in_use``, ``large_peak``
            Data of larger tensors in use, rounded up to recyclable sizes, and the most of it so far.
        ``large_cached``
            Large blocks waiting for reuse.
        ``limit``
            The most that may wait: a quarter of the machine's memory unless `set_cache_limit` was called.
        ``reused``, ``fresh``
            How many large blocks could be recycled, and how many had to be taken from the system.

    See Also
    --------
    empty_cache, set_cache_limit

    Examples
    --------
    >>> import cygrad
    >>> sorted(cygrad.memory_stats())[:2]
    ['fresh', 'large_cached']
    """
    cdef large_stats_t large = large_stats()
    cdef int64_t mapped = 0, idle = 0, small_in_use
    cdef cache_t *cache
    slab_bytes(&mapped, &idle)
    threads_lock()
    small_in_use = ended_in_use
    cache = caches
    while cache != NULL:
        small_in_use += _in_use(cache)
        cache = cache.next
    threads_unlock()
    return {
        "small_in_use": small_in_use,
        "small_mapped": mapped,
        "large_in_use": large.in_use,
        "large_peak": large.peak,
        "large_cached": large.cached,
        "limit": large.limit,
        "reused": large.reused,
        "fresh": large.fresh,
    }


def fail_allocation(number):
    """
    Make the allocation with that number, counted from 1, fail once; for tests in debug builds.

    Parameters
    ----------
    number : int
        0: none, from now on.

    Returns
    -------
    int
        How many allocations were left until one that was to fail before; 0 if it has failed.

    Raises
    ------
    RuntimeError
        In other builds.
    """
    global until_failure
    if not EACH_APART:
        raise RuntimeError("fail_allocation: this build cannot (got a release build, expected one with CYGRAD_DEBUG=1 "
                           "or CYGRAD_SANITIZE=address). Build it so.")
    left, until_failure = until_failure, number
    return left


def empty_cache():
    """
    Return all free memory to the system.

    Small blocks in the caches of other threads stay there (at most 1 MiB for each thread).

    Returns
    -------
    int
        How many bytes were returned.

    See Also
    --------
    memory_stats

    Examples
    --------
    >>> import cygrad
    >>> freed = cygrad.empty_cache()
    """
    release_pending()
    if thread_cache != NULL:
        _flush(<cache_t *>thread_cache)
    return trim_slabs() + trim_large()


def set_cache_limit(nbytes):
    """
    Set how much freed memory of large tensors is kept for reuse.

    Parameters
    ----------
    nbytes : int
        Bytes; 0 switches recycling off.

    Raises
    ------
    ValueError
        If `nbytes` is negative.

    See Also
    --------
    memory_stats, empty_cache

    Examples
    --------
    >>> import cygrad
    >>> limit = cygrad.memory_stats()["limit"]
    >>> cygrad.set_cache_limit(limit // 2)
    >>> cygrad.set_cache_limit(limit)
    """
    if nbytes < 0:
        raise ValueError(f"set_cache_limit: the limit must not be negative (got {nbytes})")
    set_large_limit(nbytes)


if watch_threads(_end_of_thread) != 0:
    raise ImportError("cygrad: the system has no free thread-local key")
