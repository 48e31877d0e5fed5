"""Large blocks: data of more than 2 KiB, recycled by size class in a cache that all threads share.

The enemy is the first touch of fresh memory: a page fault costs more than the arithmetic on the page.
So blocks are rounded up to one of four sizes per power of two, which makes it likely that one that was
given back fits the next request. When more waits than the limit allows, the class that was asked for
least recently goes first: a program that changes its sizes does not keep memory it no longer uses.
Blocks of 2 MiB and more lie at multiples of 2 MiB and ask the system for huge pages, which are first
touched ten times faster; from 4 MiB on their last page is a whole one, too.

Each block begins at another place in its page: a loop over several arrays of which all begin at the beginning of one
finds all its operands in the same sets of the caches, and takes up to twice as long.
"""

from libc.stdint cimport int64_t

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #define MAPPED_FROM ((size_t)256 << 10)    /* smaller ones come from malloc */
    #define HUGE_PAGE ((size_t)2 << 20)
    #define PAGE ((size_t)4096)
    #define COLOR ((size_t)13 * 64)             /* 64 places in a page, neighbors far apart */
    static size_t mapped_bytes(size_t nbytes) {
        return nbytes < 2 * HUGE_PAGE ? nbytes : (nbytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    }

    static pthread_mutex_t large_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void large_lock(void) { pthread_mutex_lock(&large_mutex); }
    static void large_unlock(void) { pthread_mutex_unlock(&large_mutex); }
    static void large_at_fork(void) { pthread_atfork(large_lock, large_unlock, large_unlock); }

    static char *system_take(size_t nbytes) {
        void *block = NULL;
        if (nbytes < MAPPED_FROM)
            return posix_memalign(&block, 64, nbytes) ? NULL : block;
        nbytes = mapped_bytes(nbytes);
        static size_t taken;
        size_t color = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED) * COLOR % PAGE;
        size_t extra = nbytes >= HUGE_PAGE ? HUGE_PAGE : 0;
        char *raw = mmap(NULL, nbytes + PAGE + extra, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (raw == MAP_FAILED) return NULL;
        if (extra) {
            size_t before = (HUGE_PAGE - ((size_t)raw & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
            if (before) munmap(raw, before);
            if (extra - before) munmap(raw + before + nbytes + PAGE, extra - before);
            raw += before;
    #ifdef MADV_HUGEPAGE
            madvise(raw, nbytes, MADV_HUGEPAGE);
    #endif
        }
        return raw + color;
    }
    static void system_give(char *block, size_t nbytes) {
        if (nbytes < MAPPED_FROM) free(block);
        else munmap((char *)((size_t)block & ~(PAGE - 1)), mapped_bytes(nbytes) + PAGE);
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


cdef inline int _class_of(int64_t nbytes) noexcept nogil:
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
    give_large(<char *>block, _class_of(_bounded(nbytes)))


cdef char *_take(int64_t nbytes, int reach, int *size_class) noexcept nogil:
    """Return a block of the class of `nbytes`, or a free one that is up to `reach` classes larger."""
    global clock
    cdef waiting_block_t *block = NULL
    cdef char *fresh
    cdef int wanted, near
    cdef int64_t size
    if not 0 <= nbytes <= <int64_t>1 << 60:
        return NULL
    wanted = _class_of(_bounded(nbytes))
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
    """Unmap what `_evict` removed, without the mutex; -> bytes."""
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
    except (ValueError, OSError):
        total = 4 << 30
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            total = min(total, int(file.read()))
    except (ValueError, OSError):     # "max", or no control groups here
        pass
    return total


large_at_fork()
set_large_limit(_memory_of_this_machine() // 4)
