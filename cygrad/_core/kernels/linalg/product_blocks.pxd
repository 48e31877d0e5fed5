"""Matrix products in register blocks; see product_blocks.h."""

from libc.stdint cimport int64_t

cdef extern from "kernels/linalg/product_blocks.h" nogil:
    enum:
        WORKSPACE_BYTES
    void (*correlate[2])(int64_t rows, int64_t flat, int64_t taps, void *sources, const void *weights,
                         int64_t weight_step, const void *start, void *result, int64_t result_step)
    void (*dots[2])(int64_t rows, int64_t flat, int64_t taps, int64_t run, const void *grad, int64_t grad_step,
                    void *sources, double *sums)
    void (*multiply[2])(int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row, int64_t a_step, const void *b,
                        int64_t b_row, int64_t b_column, const void *addend, int64_t addend_row, void *c,
                        int64_t c_row, void *workspace)
    bint needs_workspace(bint double_precision, int64_t n, int64_t b_row, int64_t b_column)
    bint fits_blocks(bint double_precision, bint in_place, int64_t m, int64_t n, int64_t k, int64_t transposed_a,
                     bint transposed_b)
