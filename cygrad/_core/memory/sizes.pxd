"""How many elements a shape has: the one place where products of sizes are checked."""

from libc.stdint cimport int64_t

# The number of elements; -1 and a message if there are more than a sixteenth of what 64 bits count, so that bytes can
# be counted as well. With a size of 0 there are none, however large the others. Every shape that an array is made of,
# or operands broadcast to, goes through it before memory is asked for. That no size is negative is not checked here.
cdef int64_t elements_of(int ndim, const int64_t *shape) noexcept nogil
