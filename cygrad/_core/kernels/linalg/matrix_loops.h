/* Loops over elements of matrices and vectors; see matmul.pyx and factorization.pyx. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* c += alpha * a @ b of integers, m x k and k x n; the rows of b and c are contiguous, steps in elements. */
EXPORTED void multiply_add_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, const void *a,
                                    int64_t a_row_step, int64_t a_column_step, const void *b, int64_t b_step, void *c,
                                    int64_t c_step);
/* The sum of x[i] * y[i] of integers. */
EXPORTED void dot_of_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                              void *result);
/* c *= beta for n contiguous elements; integers by `integer_beta`. */
EXPORTED void scale_row(int dtype, void *c, int64_t n, double real, double imag, int64_t integer_beta);
/* sum += factor * matrix, n float32 or float64 */
EXPORTED void add_scaled(int double_precision, void *sum, const void *matrix, double factor, int64_t n);

/* n cross products of int64, floating or complex numbers: pointers to the three elements of the result and of the
 * operands, and steps from vector to vector in elements. */
EXPORTED void cross_products(int dtype, char *const *out, char *const *a, char *const *b, const int64_t *steps,
                             int64_t n);
/* Unpack geev's results for a real matrix: a conjugate pair is stored as the two parts of one vector. */
EXPORTED void unpack_eigenvectors(int double_precision, void *values, void *vectors, const void *parts,
                                  const void *packed, int64_t n);
