"""Strong references to Python objects in C structs that are freed without the GIL."""

# A strong reference as plain memory.
cdef void *take_reference(object owner)
# Drop it from any thread: immediately if this thread holds the GIL, else when a thread does. Call it without locks,
# because a finalizer may run any Python code.
cdef void drop_reference(void *owner) noexcept nogil
# Drop the pending references; needs the GIL.
cdef void release_waiting()
cdef bint has_waiting() noexcept nogil
