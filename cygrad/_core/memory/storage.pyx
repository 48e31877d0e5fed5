"""Memory: refcounted storages, version counters and the caching allocator. Nothing needs the GIL.

Each thread has a lock-free cache of small blocks, one chain per size class of 64 bytes. It exchanges batches with slabs
that all threads share, and returns its blocks at thread exit. Larger data comes from a shared cache.

The header of a small storage is *after* its data in the same block: data is aligned to 64 bytes, and up to 56 bytes fit
with the header into 128.
"""

from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset
from cygrad._core.memory.atomic cimport atomic_is_last
from cygrad._core.memory.errors cimport MESSAGE, message, unlikely


# ----------------------------------------------------------------------------------------------------------- references

# Strong references to Python objects in C structs that are freed without the GIL.
#
# Without the GIL a reference is added to a list, which the next thread with the GIL or a pending call releases.

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t waiting_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void waiting_lock(void) { pthread_mutex_lock(&waiting_mutex); }
    static void waiting_unlock(void) { pthread_mutex_unlock(&waiting_mutex); }
    static void waiting_at_fork(void) { pthread_atfork(waiting_lock, waiting_unlock, waiting_unlock); }

    #if PY_VERSION_HEX >= 0x030D0000
    #define current_thread_state PyThreadState_GetUnchecked
    #else
    #define current_thread_state _PyThreadState_UncheckedGet
    #endif
    /* PyGILState_Check() is always true once there are subinterpreters. */
    static int holds_gil(void) {
        PyThreadState *own = PyGILState_GetThisThreadState();
        return own != NULL && own == current_thread_state();
    }
    /* A finalizer may clear the current exception, so save it. */
    static void give_back(void *object) {
    #ifndef Py_GIL_DISABLED
        if (Py_REFCNT((PyObject *)object) > 1) {        /* no finalizer runs */
            Py_DECREF((PyObject *)object);
            return;
        }
    #endif
    #if PY_VERSION_HEX >= 0x030C0000
        PyObject *raised = PyErr_GetRaisedException();
        Py_DECREF((PyObject *)object);
        PyErr_SetRaisedException(raised);
    #else
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF((PyObject *)object);
        PyErr_Restore(type, value, traceback);
    #endif
    }
    static void call_soon(int (*function)(void *)) {
        if (Py_IsInitialized()) Py_AddPendingCall(function, NULL);
    }
    """
    void waiting_lock()
    void waiting_unlock()
    void waiting_at_fork()
    bint holds_gil()
    void give_back(void *object)
    void call_soon(int (*function)(void *) noexcept)

ctypedef struct waiting_reference_t:
    void *object
    waiting_reference_t *next

cdef waiting_reference_t *waiting = NULL


cdef void *take_reference(object owner):
    Py_INCREF(owner)
    return <void *>owner


cdef void drop_reference(void *owner) noexcept nogil:
    global waiting
    cdef waiting_reference_t *link
    cdef bint first
    if owner == NULL:
        return
    if holds_gil():
        give_back(owner)
        return
    link = <waiting_reference_t *>malloc(sizeof(waiting_reference_t))
    if link == NULL:
        return                # leak one object rather than touch it without the GIL
    link.object = owner
    waiting_lock()
    first = waiting == NULL
    link.next = waiting
    waiting = link
    waiting_unlock()
    if first:
        call_soon(_release_soon)


cdef int _release_soon(void *unused) noexcept with gil:
    """Pending call: release the list."""
    release_waiting()
    return 0


cdef void release_waiting():
    """Drop the pending references. Each may run any Python code."""
    global waiting
    cdef waiting_reference_t *link
    cdef waiting_reference_t *next
    if waiting == NULL:
        return
    waiting_lock()
    link = waiting
    waiting = NULL
    waiting_unlock()
    while link != NULL:
        next = link.next
        give_back(link.object)
        free(link)
        link = next


cdef bint has_waiting() noexcept nogil:
    """Return whether references are pending, without locking."""
    return waiting != NULL


waiting_at_fork()


# --------------------------------------------------------------------------------------------------------- large blocks

# Large blocks: data of more than 2 KiB, recycled by size class in a cache that all threads share.
#
# Page faults of fresh memory cost more than the arithmetic on the page, so blocks are reused. Sizes are rounded up to
# four classes per power of two, so that a free block likely fits the next request. Above the limit, the least recently
# requested class is evicted first. Blocks of 2 MiB and more are aligned to 2 MiB for huge pages, whose page faults cost
# a tenth per byte; from 4 MiB on, sizes are multiples of 2 MiB.
#
# Blocks start at different offsets in their page: equal offsets would map all operands of a loop to the same cache
# sets, which takes up to twice as long.

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include "memory/system_memory.h"
    #define MAPPED_FROM ((size_t)256 << 10)    /* smaller ones come from malloc */
    #define COLORED ((size_t)4096)              /* a block begins within these first bytes of its mapping */
    #define COLOR ((size_t)13 * 64)             /* 64 offsets in them, successive ones far apart */
    static size_t mapped_bytes(size_t nbytes) {
        if (nbytes >= 2 * HUGE_PAGE)
            nbytes = (nbytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        return (nbytes + COLORED + LARGEST_PAGE - 1) & ~(LARGEST_PAGE - 1);
    }

    static pthread_mutex_t large_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void large_lock(void) { pthread_mutex_lock(&large_mutex); }
    static void large_unlock(void) { pthread_mutex_unlock(&large_mutex); }
    static void large_at_fork(void) { pthread_atfork(large_lock, large_unlock, large_unlock); }

    static char *system_take(size_t nbytes) {
        static size_t taken;
        if (nbytes < MAPPED_FROM)
            return (char *)take_aligned(nbytes);
        char *mapped = (char *)map_memory(mapped_bytes(nbytes), nbytes >= HUGE_PAGE ? HUGE_PAGE : 0);
        return mapped ? mapped + __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED) * COLOR % COLORED : NULL;
    }
    static void system_give(char *block, size_t nbytes) {
        if (nbytes < MAPPED_FROM) free(block);
        else unmap_memory((char *)((size_t)block & ~(COLORED - 1)), mapped_bytes(nbytes));
    }
    /* The address sanitizer reports accesses after the end of a block, or in a free block. */
    #ifdef __SANITIZE_ADDRESS__
    #include <sanitizer/asan_interface.h>
    #define FORBID(begin, nbytes) ASAN_POISON_MEMORY_REGION(begin, nbytes)
    #define ALLOW(begin, nbytes) ASAN_UNPOISON_MEMORY_REGION(begin, nbytes)
    #else
    #define FORBID(begin, nbytes) ((void)(begin))
    #define ALLOW(begin, nbytes) ((void)(begin))
    #endif
    static int highest_bit(unsigned long long n) { return 63 - __builtin_clzll(n); }
    """
    void large_lock()
    void large_unlock()
    void large_at_fork()
    char *system_take(size_t nbytes)
    void system_give(char *block, size_t nbytes)
    int highest_bit(unsigned long long n)
    void FORBID(char *begin, int64_t nbytes)
    void ALLOW(char *begin, int64_t nbytes)

cdef enum:
    LARGE_CLASSES = 256
    NEAR_CLASSES = 2      # a request may take a block that is one or two classes too large

ctypedef struct waiting_block_t:
    # Header in the first bytes of a free block.
    waiting_block_t *next

ctypedef struct shelf_t:
    waiting_block_t *first
    int64_t last_use      # `clock` of the last request for this class

cdef shelf_t shelves[LARGE_CLASSES]
cdef int64_t clock = 0
cdef large_stats_t stats


cdef inline int _large_class_of(int64_t nbytes) noexcept nogil:
    """Four classes per power of two: base < nbytes <= 2 * base in steps of base / 4."""
    cdef int high = highest_bit(<unsigned long long>(nbytes - 1))
    return high * 4 + <int>((nbytes - 1 - (<int64_t>1 << high)) >> (high - 2))


cdef inline int64_t _class_bytes(int size_class) noexcept nogil:
    """Return the block size of a class."""
    cdef int64_t base = <int64_t>1 << (size_class // 4)
    return base + (size_class % 4 + 1) * (base // 4)


cdef inline int64_t _bounded(int64_t nbytes) noexcept nogil:
    """Return the size to look up, at least the smallest for which there are four classes per power of two."""
    return nbytes if nbytes > 1024 else 1024


cdef char *take_large(int64_t nbytes, int *size_class) noexcept nogil:
    return _take(nbytes, NEAR_CLASSES, size_class)


cdef void *take_exact(int64_t nbytes) noexcept nogil:
    """Return a block of exactly the class of `nbytes`."""
    cdef int size_class
    return _take(nbytes, 0, &size_class)


cdef void give_exact(void *block, int64_t nbytes) noexcept nogil:
    """Free what take_exact(nbytes) returned."""
    give_large(<char *>block, _large_class_of(_bounded(nbytes)))


cdef char *_take(int64_t nbytes, int reach, int *size_class) noexcept nogil:
    """Return a block of the class of `nbytes`, or a free one that is up to `reach` classes larger."""
    global clock
    cdef waiting_block_t *block = NULL
    cdef char *fresh
    cdef int wanted, near
    cdef int64_t size
    if not 0 <= nbytes <= <int64_t>1 << 60:
        return NULL
    wanted = _large_class_of(_bounded(nbytes))
    large_lock()
    clock += 1
    for near in range(wanted, wanted + reach + 1):
        block = shelves[near].first
        if block != NULL:
            shelves[near].first = block.next
            size_class[0] = near
            break
    if block == NULL:
        size_class[0] = wanted
    shelves[wanted].last_use = clock
    shelves[size_class[0]].last_use = clock
    size = _class_bytes(size_class[0])
    stats.in_use += size
    if stats.in_use > stats.peak:
        stats.peak = stats.in_use
    if block != NULL:
        stats.cached -= size
        stats.reused += 1
    else:
        stats.fresh += 1
    large_unlock()
    if block != NULL:
        ALLOW(<char *>block, nbytes)
        return <char *>block
    fresh = system_take(size)
    if fresh == NULL:
        # Memory is exhausted: release the free blocks of other classes and try again.
        trim_large()
        fresh = system_take(size)
    if fresh == NULL:
        large_lock()
        stats.in_use -= size
        large_unlock()
    else:
        FORBID(fresh + nbytes, size - nbytes)
    return fresh


cdef int _stalest() noexcept nogil:
    """Return the least recently requested class with free blocks, or -1."""
    cdef int found = -1, i
    for i in range(LARGE_CLASSES):
        if shelves[i].first != NULL and (found < 0 or shelves[i].last_use < shelves[found].last_use):
            found = i
    return found


cdef waiting_block_t *_evict(int64_t allowed) noexcept nogil:
    """Remove free blocks until `allowed` bytes are left; they keep their class. The mutex is held."""
    cdef waiting_block_t *evicted = NULL
    cdef waiting_block_t *block
    cdef int victim
    while stats.cached > allowed:
        victim = _stalest()
        if victim < 0:
            break
        block = shelves[victim].first
        shelves[victim].first = block.next
        stats.cached -= _class_bytes(victim)
        block.next = evicted
        (<int64_t *>(block + 1))[0] = victim
        evicted = block
    return evicted


cdef int64_t _give_to_system(waiting_block_t *blocks) noexcept nogil:
    """Unmap what `_evict` removed, without the mutex; return bytes."""
    cdef waiting_block_t *block
    cdef int64_t size, total = 0
    while blocks != NULL:
        block = blocks
        blocks = block.next
        size = _class_bytes(<int>(<int64_t *>(block + 1))[0])
        total += size
        ALLOW(<char *>block, size)
        system_give(<char *>block, size)
    return total


cdef void give_large(char *data, int size_class) noexcept nogil:
    """Cache a freed block, within the limit."""
    cdef waiting_block_t *block = <waiting_block_t *>data
    cdef waiting_block_t *evicted = NULL
    cdef int64_t size = _class_bytes(size_class), used = sizeof(waiting_block_t) + sizeof(int64_t)
    FORBID(data + used, size - used)
    large_lock()
    stats.in_use -= size
    block.next = shelves[size_class].first
    shelves[size_class].first = block
    stats.cached += size
    if stats.cached > stats.limit:
        evicted = _evict(stats.limit)
    large_unlock()
    if evicted != NULL:
        _give_to_system(evicted)


cdef int64_t trim_large() noexcept nogil:
    cdef waiting_block_t *evicted
    large_lock()
    evicted = _evict(0)
    large_unlock()
    return _give_to_system(evicted)


cdef void set_large_limit(int64_t nbytes) noexcept nogil:
    """Set how many bytes of free blocks are kept."""
    cdef waiting_block_t *evicted
    large_lock()
    stats.limit = nbytes
    evicted = _evict(nbytes)
    large_unlock()
    _give_to_system(evicted)


cdef large_stats_t large_stats() noexcept nogil:
    """Return a consistent copy of the counters."""
    cdef large_stats_t copy
    large_lock()
    copy = stats
    large_unlock()
    return copy


def _memory_of_this_machine():
    """Return the bytes of memory that this process may use: the machine's, or its control group's if smaller."""
    import os
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):     # not POSIX
        total = 4 << 30
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            total = min(total, int(file.read()))
    except (ValueError, OSError):     # "max", or no control groups here
        pass
    return total


large_at_fork()
set_large_limit(_memory_of_this_machine() // 4)


# ---------------------------------------------------------------------------------------------------------------- slabs

# Slabs: the shared supply of small blocks, handed out in batches.
#
# A slab is 256 KiB, aligned to its size and divided into blocks of one size class. Clearing the low bits of a block's
# address gives the header. A slab without used blocks is free for any class. Eight slabs are a region, one huge page,
# whose single page fault costs less than the 64 of a slab.
#
# One mutex suffices, because threads request batches only; a spin lock would not do, because the system may be called
# while it is held.

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include "memory/system_memory.h"
    #define SLAB_BYTES ((size_t)256 << 10)
    #define REGION_BYTES HUGE_PAGE

    static pthread_mutex_t slabs_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void slabs_lock(void) { pthread_mutex_lock(&slabs_mutex); }
    static void slabs_unlock(void) { pthread_mutex_unlock(&slabs_mutex); }
    /* A forking thread holds the mutex, so that the child's slabs are consistent and unlocked. */
    static void slabs_at_fork(void) { pthread_atfork(slabs_lock, slabs_unlock, slabs_unlock); }
    static void *map_region(void) { return map_memory(REGION_BYTES, REGION_BYTES); }
    static void unmap_region(void *region) { unmap_memory(region, REGION_BYTES); }
    """
    size_t SLAB_BYTES
    size_t REGION_BYTES
    void slabs_lock()
    void slabs_unlock()
    void slabs_at_fork()
    void *map_region()
    void unmap_region(void *region)

ctypedef struct slab_t:
    # Header, in place of the first 64 bytes of a slab.
    slab_t *next          # links of the list that the slab is in
    slab_t *previous
    block_t *free         # freed blocks
    int32_t size_class    # 0: empty, for any class
    int32_t used          # blocks in use
    int32_t capacity
    int32_t carved        # blocks ever handed out; later ones are untouched
    int32_t listed        # has free blocks, and is in the list of those
    int32_t busy_slabs    # in the first slab of a region: number of its slabs with a class

cdef enum:
    SLABS_PER_REGION = 8
    KEPT_REGIONS = 64     # unused regions kept for reuse: 128 MiB

cdef slab_t *available[CLASSES]    # [0]: empty slabs
cdef int64_t n_regions = 0
cdef int64_t n_idle_regions = 0    # regions of empty slabs
cdef int64_t n_used_bytes = 0


cdef inline slab_t *_slab_of(void *block) noexcept nogil:
    """Return the slab of a block."""
    return <slab_t *>(<uintptr_t>block & ~<uintptr_t>(SLAB_BYTES - 1))


cdef inline void _link_slab(slab_t *slab) noexcept nogil:
    """Insert a slab at the head of the list of its class."""
    cdef slab_t *first = available[slab.size_class]
    slab.next = first
    slab.previous = NULL
    slab.listed = True
    if first != NULL:
        first.previous = slab
    available[slab.size_class] = slab


cdef inline void _unlink_slab(slab_t *slab) noexcept nogil:
    """Remove a slab from that list."""
    if slab.previous != NULL:
        slab.previous.next = slab.next
    else:
        available[slab.size_class] = slab.next
    if slab.next != NULL:
        slab.next.previous = slab.previous
    slab.listed = False


cdef inline slab_t *_first_slab(slab_t *slab) noexcept nogil:
    """Return the first slab of the slab's region."""
    return <slab_t *>(<uintptr_t>slab & ~<uintptr_t>(REGION_BYTES - 1))


cdef bint _new_region() noexcept nogil:
    """Map a region and list its slabs as empty; False if memory is exhausted."""
    global n_regions, n_idle_regions
    cdef char *region = <char *>map_region()
    cdef slab_t *slab
    cdef int i
    if region == NULL:
        return False
    for i in range(SLABS_PER_REGION - 1, -1, -1):
        slab = <slab_t *>(region + i * SLAB_BYTES)
        slab.size_class = slab.busy_slabs = 0
        _link_slab(slab)
    n_regions += 1
    n_idle_regions += 1
    return True


cdef void _remove_region(slab_t *first) noexcept nogil:
    """Return a region whose slabs are all empty to the system."""
    global n_regions, n_idle_regions
    cdef int i
    for i in range(SLABS_PER_REGION):
        _unlink_slab(<slab_t *>(<char *>first + i * SLAB_BYTES))
    unmap_region(first)
    n_regions -= 1
    n_idle_regions -= 1


cdef slab_t *_new_slab(int size_class) noexcept nogil:
    """Prepare an empty slab for a class; NULL if memory is exhausted."""
    global n_idle_regions
    cdef slab_t *slab
    cdef slab_t *first
    if available[0] == NULL and not _new_region():
        return NULL
    slab = available[0]
    _unlink_slab(slab)
    first = _first_slab(slab)
    if first.busy_slabs == 0:
        n_idle_regions -= 1
    first.busy_slabs += 1
    slab.free = NULL
    slab.size_class = size_class
    slab.used = slab.carved = 0
    slab.capacity = <int32_t>((SLAB_BYTES - UNIT) // (size_class * UNIT))
    _link_slab(slab)
    return slab


cdef void _empty_slab(slab_t *slab) noexcept nogil:
    """Mark an empty slab free for any class, or return its region to the system."""
    global n_idle_regions
    cdef slab_t *first = _first_slab(slab)
    if slab.listed:
        _unlink_slab(slab)
    slab.size_class = 0
    _link_slab(slab)
    first.busy_slabs -= 1
    if first.busy_slabs == 0:
        n_idle_regions += 1
        if n_idle_regions > KEPT_REGIONS:
            _remove_region(first)


cdef block_t *take_blocks(int size_class, int32_t wanted, int32_t *taken) noexcept nogil:
    global n_used_bytes
    cdef int64_t nbytes = size_class * UNIT
    cdef block_t *chain = NULL
    cdef block_t **end = &chain
    cdef block_t *block
    cdef slab_t *slab
    taken[0] = 0
    slabs_lock()
    while taken[0] < wanted:
        slab = available[size_class]
        if slab == NULL:
            slab = _new_slab(size_class)
            if slab == NULL:
                break
        if slab.free != NULL:
            block = slab.free
            slab.free = block.next
        else:
            block = <block_t *>(<char *>slab + UNIT + slab.carved * nbytes)
            slab.carved += 1
        # In the order of addresses, for locality.
        end[0] = block
        end = &block.next
        taken[0] += 1
        slab.used += 1
        if slab.used == slab.capacity:
            _unlink_slab(slab)
    end[0] = NULL
    n_used_bytes += taken[0] * nbytes
    slabs_unlock()
    return chain


cdef void give_blocks(block_t *chain) noexcept nogil:
    global n_used_bytes
    cdef block_t *block
    cdef slab_t *slab
    slabs_lock()
    while chain != NULL:
        block = chain
        chain = block.next
        slab = _slab_of(block)
        n_used_bytes -= slab.size_class * UNIT
        block.next = slab.free
        slab.free = block
        slab.used -= 1
        if slab.used == 0:
            _empty_slab(slab)
        elif not slab.listed:
            _link_slab(slab)
    slabs_unlock()


cdef int64_t trim_slabs() noexcept nogil:
    """Return regions without used blocks to the system."""
    cdef int64_t returned
    cdef slab_t *slab
    cdef slab_t *next
    slabs_lock()
    returned = n_idle_regions * <int64_t>REGION_BYTES
    slab = available[0]
    while slab != NULL:
        # Removing the region removes its eight slabs, wherever they are in the list: skip them first.
        next = slab.next
        while next != NULL and _first_slab(next) == _first_slab(slab):
            next = next.next
        if _first_slab(slab).busy_slabs == 0:
            _remove_region(_first_slab(slab))
        slab = next
    slabs_unlock()
    return returned


cdef void slab_bytes(int64_t *mapped, int64_t *idle) noexcept nogil:
    slabs_lock()
    mapped[0] = n_regions * <int64_t>REGION_BYTES
    idle[0] = mapped[0] - n_used_bytes
    slabs_unlock()


slabs_at_fork()


# -------------------------------------------------------------------------------------------------------------- storage

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <stdlib.h>
    #include "memory/thread_variable.h"
    THREAD_VARIABLE void *thread_cache;
    THREAD_VARIABLE int generation = 1;     /* `writable` of new storages: not zero */

    /* Debug and sanitizer builds call malloc for each small block, with its exact size, so that overruns are detected.
       */
    #if defined(CYGRAD_DEBUG) || defined(__SANITIZE_ADDRESS__)
    enum { SEPARATE_BLOCKS = 1 };
    #else
    enum { SEPARATE_BLOCKS = 0 };
    #endif
    static long long until_failure;
    static int fails_now(void) {
        return SEPARATE_BLOCKS && __atomic_load_n(&until_failure, __ATOMIC_RELAXED) > 0
               && __atomic_sub_fetch(&until_failure, 1, __ATOMIC_RELAXED) == 0;
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
    bint SEPARATE_BLOCKS
    long long until_failure
    bint fails_now()
    void *take_aligned(size_t nbytes)
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


cdef void *_allocate_separately(int size_class, int64_t nbytes) noexcept nogil:
    """Allocate exactly `nbytes` with malloc, counted as a block of its class."""
    cdef cache_t *cache = <cache_t *>thread_cache if thread_cache != NULL else _new_cache()
    cdef void *block = take_aligned(nbytes) if cache != NULL and not fails_now() else NULL
    if block != NULL:
        cache.taken += size_class * UNIT
    return block


cdef inline void *_allocate_class(int size_class, int64_t nbytes) noexcept nogil:
    """Allocate a small block of class 1 ... CLASSES - 1."""
    cdef cache_t *cache = <cache_t *>thread_cache
    cdef block_t *block
    if SEPARATE_BLOCKS:
        return _allocate_separately(size_class, nbytes)
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
    if SEPARATE_BLOCKS or unlikely(cache == NULL) or unlikely(cache.free_slots[size_class] == 0):
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
            if SEPARATE_BLOCKS:
                free(pointer)
                return
            block.next = NULL
            give_blocks(block)
            return
    if SEPARATE_BLOCKS:
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
    """Mark the storages that this thread makes from now on with a new generation; return its number."""
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
        if SEPARATE_BLOCKS:
            storage = <storage_t *>take_aligned(sizeof(storage_t))
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
        if SEPARATE_BLOCKS:
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
    """Return whether references are pending, without locking."""
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
    if not SEPARATE_BLOCKS:
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
    >>> limit = cygrad.memory_stats()["limit"]
    >>> cygrad.set_cache_limit(limit // 2)
    >>> cygrad.set_cache_limit(limit)
    """
    if nbytes < 0:
        raise ValueError(f"set_cache_limit: the limit must not be negative (got {nbytes})")
    set_large_limit(nbytes)


if watch_threads(_end_of_thread) != 0:
    raise ImportError("cygrad: the system has no free thread-local key")
