"""Who of several threads that replay has the interpreter's lock."""

# Give the lock up; NULL if it was kept, because nobody waits for it. `long_work`: it is given up in any case.
cdef void *leave_interpreter(bint long_work) noexcept
# Take it again; what `leave_interpreter` gave.
cdef void enter_interpreter(void *left) noexcept nogil
