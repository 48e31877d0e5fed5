"""Batches of matrices for LAPACK: checked arguments, copies in column order, and loops over matrices on the team."""

from libc.stdint cimport int32_t, int64_t
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.value cimport value_t

# Process matrix `i` of a batch; returns LAPACK's info. `scratch` is memory of task.scratch bytes.
ctypedef int (*each_t)(matrix_batch_t *task, int64_t i, char *scratch) noexcept nogil

# The matrices of a call: their type and sizes, where the first one of each operand begins, and whatever else the
# function for one matrix needs to know.
ctypedef struct matrix_batch_t:
    each_t each
    int dtype
    int m
    int n
    int k
    char *a
    char *b
    char *c
    char *d
    int32_t *pivots
    int32_t *info         # one for each matrix, or NULL
    int64_t scratch
    char job
    char trans
    char uplo
    bint flag
    double *limits
    int64_t failed        # atomic: memory was exhausted

# A tensor of matrices of a floating or complex dtype, whose sizes fit an int of LAPACK; square ones.
cdef int matrix_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil
cdef int square_argument(const char *operation, const char *name, const value_t *value, array_t **array) noexcept nogil
# Refuse two operands of different dtype, or with other leading dimensions.
cdef int check_pair(const char *operation, const array_t *a, const array_t *b) noexcept nogil
# How many matrices there are.
cdef int64_t batch_count(const array_t *array) noexcept nogil
# New memory of the leading dimensions of `like` (without its last `drop` ones), then up to two sizes (-1: none).
cdef int new_batch(const array_t *like, int drop, int dtype, int64_t rows, int64_t columns,
                   array_t **array) noexcept nogil
# New memory with each matrix in column order: the shape is (..., columns, rows), row after row.
cdef int in_columns(array_t *array, array_t **copy) noexcept nogil
# A view with the last two dimensions exchanged; NULL if memory is exhausted.
cdef array_t *turned(array_t *array) noexcept nogil
# The same in the place of what it is a view of; nothing is there if memory is exhausted.
cdef int turn(array_t **columns) noexcept nogil
# Seen the other way round: the last two dimensions exchanged. Takes over the reference.
cdef int turned_result(array_t *columns, value_t *result) noexcept nogil
# task.each for all matrices; `work` is the number of operations for one.
cdef int run_batch(matrix_batch_t *task, int64_t count, double work) noexcept nogil
# Release all that are not NULL.
cdef void release_all(int count, array_t **arrays) noexcept nogil
# Are all elements of the matrix finite?
cdef bint all_finite(int dtype, const char *data, int64_t count) noexcept nogil
