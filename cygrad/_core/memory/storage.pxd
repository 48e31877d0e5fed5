"""Memory: refcounted storages, version counters and the caching allocator. Nothing needs the GIL."""

from libc.stdint cimport int32_t, int64_t, uint32_t

ctypedef struct version_t:
    # Shared by all views of a storage and by detach(); `.data` gets a new one.
    int64_t count         # refcount: arrays that own it; unused while embedded in a storage
    int64_t value         # number of in-place operations
    void *code            # code object of the last in-place operation (a strong reference or NULL)
    int32_t offset        # bytecode offset of that operation
    int32_t embedded      # part of a storage_t: not freed by itself

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
