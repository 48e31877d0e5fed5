"""Memory: counted storages, version counters and the recycling allocator. Nothing needs the GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t

ctypedef struct version_t:
    # Shared by all views of a storage and by detach(); `.data` gets one of its own.
    int64_t count         # how many arrays own it; unused while embedded in a storage
    int64_t value         # how many in-place changes so far
    void *code            # code object of the last one that changed it (a strong reference or NULL)
    int32_t offset        # ... and its bytecode offset there
    int32_t embedded      # lives inside a storage_t: never freed by itself

# size_class of memory that stands for elements which are not there: kernels may leave results unset.
cdef enum:
    NO_ELEMENTS = -2

ctypedef struct storage_t:
    int64_t count         # atomic: arrays that use it
    int64_t nbytes
    char *data            # 64-byte aligned if we allocated it
    void *owner           # PyObject that owns foreign memory (strong reference), else NULL
    int32_t size_class    # the allocator's: which cache takes the block back
    int32_t writable      # False for foreign read-only memory
    version_t version

# Small blocks of plain memory from this thread's caches (16-byte aligned; multiples of 64 bytes).
cdef void *allocate(int64_t nbytes) noexcept nogil
cdef void deallocate(void *block, int64_t nbytes) noexcept nogil

# A new storage with count 1 (NULL and a message if memory is exhausted), uninitialized.
cdef storage_t *storage_new(int64_t nbytes) noexcept nogil
# Foreign memory; takes a new reference to `owner`. Needs the GIL.
cdef storage_t *storage_foreign(void *data, int64_t nbytes, object owner, bint writable)
cdef void storage_release(storage_t *storage) noexcept nogil

cdef version_t *version_new() noexcept nogil
cdef void version_release(version_t *version) noexcept nogil

# Owners of foreign memory and code objects released without the GIL wait in a list until the next call of this.
cdef void release_pending()
cdef bint has_pending() noexcept nogil
