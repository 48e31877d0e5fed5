"""Argument checks shared by array kernels: kinds, dimensions, sizes."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t, value_t
from cygrad._core.memory.errors cimport status_t

# Every function returns a status; on failure the message names `operation` and the argument.

# The array of an ARRAY argument, borrowed.
cdef int array_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil
# The entries of an ARRAYS argument, borrowed; a single ARRAY is a list of one.
cdef int arrays_argument(const char *operation, const char *name, const value_t *value,
                         int *count, array_t ***arrays) noexcept nogil
cdef int integer_argument(const char *operation, const char *name, const value_t *value,
                          int64_t *integer) noexcept nogil
# An integer argument, or a default if it is not given.
cdef int optional_integer(const char *operation, const char *name, const value_t *value,
                          int64_t default_value, int64_t *integer) noexcept nogil
# A list of integers, borrowed; a single integer is a list of one, NOTHING an empty one.
cdef int integers_argument(const char *operation, const char *name, const value_t *value,
                           int *count, const int64_t **integers) noexcept nogil
# A text, borrowed.
cdef int text_argument(const char *operation, const char *name, const value_t *value, const char **text) noexcept nogil

# Wrap a dimension that may be negative: 0 <= wrapped < ndim; a 0-dim array counts as 1-dim.
cdef int wrap_dim(const char *operation, int64_t dim, int ndim, int *wrapped) noexcept nogil
# Wrap a list of dimensions and refuse repetitions; value_t has space for MAX_DIMS.
cdef int wrap_dims(const char *operation, int count, const int64_t *dims, int ndim, int *wrapped) noexcept nogil
# Refuse negative sizes, more than MAX_DIMS dimensions and overflowing products; store the number of elements.
cdef int check_sizes(const char *operation, int64_t ndim, const int64_t *shape, int64_t *size) noexcept nogil
# Refuse two shapes that differ, naming both.
cdef int check_same_shape(const char *operation, const char *name, const array_t *array,
                          int ndim, const int64_t *shape) noexcept nogil
# Refuse in-place operations on read-only memory and on memory whose elements overlap.
cdef int check_writable(const char *operation, const array_t *array) noexcept nogil

# Check the sizes and allocate an array, uninitialized or filled with zeros.
cdef int new_array(const char *operation, int dtype, int ndim, const int64_t *shape, array_t **array) noexcept nogil
cdef int new_zeros(const char *operation, int dtype, int ndim, const int64_t *shape, array_t **array) noexcept nogil
# A contiguous copy that shares no memory with `array`.
cdef int fresh_copy(array_t *array, array_t **copy) noexcept nogil
# Store a view of `base` as a result.
cdef int view_result(array_t *base, int ndim, const int64_t *shape, const int64_t *strides,
                     int64_t offset, value_t *result) noexcept nogil
# Store an array as a result and take over the reference; NULL is reported as exhausted memory.
cdef int array_result(array_t *array, value_t *result) noexcept nogil

# Text of a list of sizes for messages: "(2, 3)".
cdef const char *list_text(int64_t count, const int64_t *values) noexcept nogil
