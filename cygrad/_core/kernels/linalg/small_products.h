/* Products of very small matrices of float32 (double_precision = 0) or float64. */
#ifndef CYGRAD_SMALL_PRODUCTS_H
#define CYGRAD_SMALL_PRODUCTS_H

#define LOOPS "kernels/linalg/small_loops.h"
#include "simd/each_set.h"
#undef LOOPS

/* c = alpha * a @ b + beta * c, of m x k and k x n elements, k > 0. Rows and columns of a and b have any step; those of
 * c are c_row elements apart. */
static inline void small_product(int double_precision, const void *a, int64_t a_row, int64_t a_column, const void *b,
                                 int64_t b_row, int64_t b_column, void *c, int64_t c_row, int64_t m, int64_t n,
                                 int64_t k, double alpha, double beta) {
    typedef void (*product_t)(const void *a, int64_t a_row, int64_t a_column, const void *b, int64_t b_row,
                              int64_t b_column, void *c, int64_t c_row, int64_t m, int64_t n, int64_t k, double alpha,
                              double beta);
    static const product_t products[SETS][2] = VARIANTS(small_product);
    products[instruction_set()][double_precision](a, a_row, a_column, b, b_row, b_column, c, c_row, m, n, k, alpha,
                                                  beta);
}

#endif
