"""Hand the GIL over between threads that execute compiled functions."""

# Release the GIL and return the thread state; return NULL if the GIL was kept because no other thread executes.
# `long_work`: release it in any case.
cdef void *release_gil(bint long_work) noexcept
# Acquire the GIL again; takes the return value of `release_gil`.
cdef void acquire_gil(void *state) noexcept nogil
