"""Strong references to Python objects in C structs that are freed without the GIL."""

# A strong reference as plain memory.
cdef void *take_reference(object owner)
# Give it back from anywhere: immediately if this thread holds the GIL, else when a thread does.
# To be called with no lock held: an object's end may run any Python code.
cdef void drop_reference(void *owner) noexcept nogil
# Release those that wait; needs the GIL.
cdef void release_waiting()
cdef bint has_waiting() noexcept nogil
