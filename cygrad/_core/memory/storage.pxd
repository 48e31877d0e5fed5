"""Memory: refcounted storages, version counters and the caching allocator. Nothing needs the GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t

# ----------------------------------------------------------------------------------------------------------- references

# Strong references to Python objects in C structs that are freed without the GIL.

# A strong reference as plain memory.
cdef void *take_reference(object owner)
# Drop it from any thread: immediately if this thread holds the GIL, else when a thread does. Call it without locks,
# because a finalizer may run any Python code.
cdef void drop_reference(void *owner) noexcept nogil
# Drop the pending references; needs the GIL.
cdef void release_waiting()
cdef bint has_waiting() noexcept nogil

# --------------------------------------------------------------------------------------------------------- large blocks

# Large blocks: data of more than 2 KiB, recycled by size class in a cache that all threads share.

ctypedef struct large_stats_t:
    int64_t in_use        # bytes in use, rounded up to size classes
    int64_t peak          # peak of `in_use`
    int64_t cached        # bytes of free blocks
    int64_t limit         # limit of `waiting`
    int64_t reused        # requests served from the cache
    int64_t fresh         # requests that went to the system

# Return a block of at least `nbytes`, 64-byte aligned, and its class; NULL if memory is exhausted.
cdef char *take_large(int64_t nbytes, int *size_class) noexcept nogil
cdef void give_large(char *block, int size_class) noexcept nogil
# The same for memory that is freed with its size instead of its class.
cdef void *take_exact(int64_t nbytes) noexcept nogil
cdef void give_exact(void *block, int64_t nbytes) noexcept nogil
# Return all free blocks to the system; return bytes returned.
cdef int64_t trim_large() noexcept nogil
cdef void set_large_limit(int64_t nbytes) noexcept nogil
cdef large_stats_t large_stats() noexcept nogil

# ---------------------------------------------------------------------------------------------------------------- slabs

# Slabs: the shared supply of small blocks, handed out in batches. Empty slabs return to the system.

cdef enum:
    UNIT = 64                  # blocks are multiples of this, and aligned to it
    CLASSES = 33               # class c holds blocks of c * UNIT bytes; class 0 is not used
    LARGEST_SMALL = 2048

# A free block: a link in a chain.
ctypedef struct block_t:
    block_t *next

# Return a chain of at most `wanted` blocks and their number in `taken` (0 if memory is exhausted).
cdef block_t *take_blocks(int size_class, int32_t wanted, int32_t *taken) noexcept nogil
# Free a chain of blocks, from any thread.
cdef void give_blocks(block_t *chain) noexcept nogil
# Return unused slabs to the system; return bytes returned.
cdef int64_t trim_slabs() noexcept nogil
# Return the bytes mapped for slabs, and the free bytes among them.
cdef void slab_bytes(int64_t *mapped, int64_t *idle) noexcept nogil

# -------------------------------------------------------------------------------------------------------------- storage

ctypedef struct version_t:
    # Shared by all views of a storage and by detach(); `.data` gets a new one.
    int64_t count         # refcount: arrays that own it; unused while embedded in a storage
    int64_t value         # number of in-place operations
    void *code            # code object of the last in-place operation (a strong reference or NULL)
    int32_t offset        # bytecode offset of that operation
    int32_t embedded      # part of a storage_t: not freed by itself

# Record that no particular line modified the memory: a gradient was accumulated, for example.
cdef inline void forget_place(version_t *version) noexcept nogil:
    version.offset = -1

# size_class of a storage without elements (fake tensors): kernels may leave results unset.
cdef enum:
    NO_ELEMENTS = -2

ctypedef struct storage_t:
    int64_t count         # atomic: refcount
    int64_t nbytes
    char *data            # 64-byte aligned if we allocated it
    void *owner           # PyObject that owns foreign memory (strong reference), else NULL
    int32_t size_class    # for the allocator: the cache that takes the block back
    int32_t writable      # False for foreign read-only memory
    version_t version

# Small blocks of plain memory from this thread's caches (16-byte aligned; multiples of 64 bytes).
cdef void *allocate(int64_t nbytes) noexcept nogil
cdef void deallocate(void *block, int64_t nbytes) noexcept nogil

# Return a new, uninitialized storage with refcount 1 (NULL and a message if memory is exhausted).
cdef storage_t *storage_new(int64_t nbytes) noexcept nogil
# Foreign memory; takes a new reference to `owner`. Needs the GIL.
cdef storage_t *storage_foreign(void *data, int64_t nbytes, object owner, bint writable)
cdef void storage_release(storage_t *storage) noexcept nogil

cdef version_t *version_new() noexcept nogil
cdef void version_release(version_t *version) noexcept nogil

# Release owners of foreign memory and code objects that were dropped without the GIL.
cdef void release_pending()
cdef bint has_pending() noexcept nogil
