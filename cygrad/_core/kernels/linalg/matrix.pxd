"""Operands of products: arrays seen as batches of matrices, laid out as BLAS can read them."""

from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_t

ctypedef struct matrix_t:
    array_t *array            # held
    char *data
    int64_t rows
    int64_t columns
    int64_t row_step          # in elements
    int64_t column_step
    int batch_ndim            # dimensions in front of the matrix
    const int64_t *batch_shape
    const int64_t *batch_steps
    bint transposed           # set by lay_out: what lies in memory is the transpose ...
    int64_t leading           # ... and so far apart are its rows

# The last two dimensions of an array; a vector is seen as one row or as one column.
cdef matrix_t matrix_of(array_t *array) noexcept nogil
cdef matrix_t row_of(array_t *vector) noexcept nogil
cdef matrix_t column_of(array_t *vector) noexcept nogil
cdef void transpose_matrix(matrix_t *matrix) noexcept nogil
# All leading dimensions and the rows together as the rows of one matrix, if the strides allow; else False.
cdef bint fold_rows(matrix_t *matrix) noexcept nogil
# Find out how BLAS can read the matrix; copies it only if neither of its steps is 1 (or they are negative or 0).
# `row_major` forbids the transpose.
cdef int lay_out(matrix_t *matrix, bint row_major) noexcept nogil
cdef void release_matrix(matrix_t *matrix) noexcept nogil
