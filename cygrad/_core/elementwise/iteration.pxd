"""Loop nests over several arrays: broadcast, with dimensions sorted and merged."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t
from cygrad._core.arrays.value cimport value_t

cdef enum:
    MAX_OPERANDS = 13

ctypedef struct nest_t:
    int32_t ndim
    int32_t n                 # operands; 0 is the one that is written
    int64_t size              # elements
    int64_t shape[MAX_DIMS]   # innermost dimension first
    char *data[MAX_OPERANDS]
    int64_t strides[MAX_OPERANDS][MAX_DIMS]    # bytes, innermost first

# Begin a nest over `shape` (outermost first), without operands.
cdef void nest_begin(nest_t *nest, int ndim, const int64_t *shape) noexcept nogil
# Add an operand that broadcasts to the shape; or one value for all elements.
cdef void nest_add(nest_t *nest, const array_t *array) noexcept nogil
cdef void nest_add_value(nest_t *nest, char *value) noexcept nogil
# Sort dimensions by the strides of operand 0, flip its negative strides, merge, drop those of size 1. `ndim` becomes at
# least 1 unless `size` is 0.
cdef void nest_finish(nest_t *nest) noexcept nogil
# Address of element `index` of operand `k` (in the order of the nest).
cdef char *nest_pointer(const nest_t *nest, int k, int64_t index) noexcept nogil

# Broadcast the shapes of n arrays into shape[MAX_DIMS]; -> ndim or -1 with a message naming the shapes.
cdef int broadcast_shape(const value_t *operands, int n, int64_t *shape) noexcept nogil
# Does `array` broadcast to this shape?
cdef bint broadcasts_to(const array_t *array, int ndim, const int64_t *shape) noexcept nogil
# Same elements at the same addresses.
cdef bint same_place(const array_t *a, const array_t *b) noexcept nogil
