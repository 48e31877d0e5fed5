"""Slabs: the shared supply of small blocks, in batches, of which empty parts return to the system.

A slab is 256 KiB of memory at a multiple of 256 KiB, cut into blocks of one size class. Its header is
found by clearing the low bits of a block's address, so a block needs no header of its own, and a slab
knows how many of its blocks are out: the last one that comes back frees the slab for any other class.
Slabs come in regions of eight, each one huge page: to touch that for the first time costs less than to
touch the 64 ordinary pages of one slab.

Threads come here for batches only (storage.pyx keeps a cache for each), hence one mutex for all. It is
a mutex and not a spin lock because the system may be called while it is held.
"""

from libc.stdint cimport int32_t, int64_t, uintptr_t

cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <sys/mman.h>
    #define SLAB_BYTES ((size_t)256 << 10)
    #define REGION_BYTES ((size_t)2 << 20)

    static pthread_mutex_t slabs_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void slabs_lock(void) { pthread_mutex_lock(&slabs_mutex); }
    static void slabs_unlock(void) { pthread_mutex_unlock(&slabs_mutex); }
    /* A forking thread holds the mutex, so that the child finds the slabs in order and unlocked. */
    static void slabs_at_fork(void) { pthread_atfork(slabs_lock, slabs_unlock, slabs_unlock); }

    static void *map_region(void) {
        /* Map twice as much and cut off what lies outside of the aligned part. */
        char *raw = mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (raw == MAP_FAILED) return NULL;
        size_t before = (REGION_BYTES - ((size_t)raw & (REGION_BYTES - 1))) & (REGION_BYTES - 1);
        if (before) munmap(raw, before);
        munmap(raw + before + REGION_BYTES, REGION_BYTES - before);
    #ifdef MADV_HUGEPAGE
        madvise(raw + before, REGION_BYTES, MADV_HUGEPAGE);
    #endif
        return raw + before;
    }
    static void unmap_region(void *region) { munmap(region, REGION_BYTES); }
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
