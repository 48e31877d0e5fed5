/* Products of small matrices of float32 or float64. A call of BLAS on them takes longer than the arithmetic: it
 * dispatches, packs both operands and takes a mutex, for which threads that train small models concurrently wait. */
#ifndef CYGRAD_SMALL_PRODUCTS_H
#define CYGRAD_SMALL_PRODUCTS_H

#include <stdint.h>
#include "simd/exported.h"
#include "simd/instruction_set.h"

enum {
    SMALL_INNER = 32,           /* rows of b */
    SMALL_ACROSS = 2,           /* vectors next to each other */
    SMALL_STEPS = 128,          /* products of a number and a vector */
    TINY = 27                   /* products of numbers, where there are no vectors */
};

/* Return whether a product of m x k and k x n elements, k > 0, is small. */
static inline int is_small(int double_precision, int64_t m, int64_t n, int64_t k) {
    if (m * n * k <= TINY)
        return 1;
    const int set = simd_target();
    if (set == 0 || k > SMALL_INNER)
        return 0;
    const int64_t lanes = (set == 2 ? 64 : 32) / (double_precision ? 8 : 4), across = (n + lanes - 1) / lanes;
    return across <= SMALL_ACROSS && m * k * across <= SMALL_STEPS;
}

/* c = alpha * a @ b + beta * addend; a NULL addend adds nothing. Rows and columns of a and b have any stride; `row`
 * elements separate the rows of c and of the addend, which may be c. */
EXPORTED void (*const small_product[2])(const void *a, int64_t a_row, int64_t a_column, const void *b, int64_t b_row,
                                        int64_t b_column, const void *addend, int64_t addend_row, void *c,
                                        int64_t c_row, int64_t m, int64_t n, int64_t k, double alpha, double beta);

/* c = a times b for a column and a row of any length, elements of b next to each other. */
EXPORTED void (*const outer_product[2])(const void *a, int64_t a_row, const void *b, void *c, int64_t c_row, int64_t m,
                                        int64_t n);

#endif
