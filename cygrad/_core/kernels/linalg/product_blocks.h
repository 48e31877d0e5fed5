/* Sums of products in blocks of registers, for float32 (double_precision = 0) and float64, and for the processor at
   hand.

   A library's product of matrices first copies both operands into an order of its own, for each call. Here they are
   read where they are: what is small, or already lies in lines, is multiplied at once. */
#ifndef CYGRAD_PRODUCT_BLOCKS_H
#define CYGRAD_PRODUCT_BLOCKS_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif
#define LOOPS "kernels/linalg/product_loops.h"
#include "simd/each_set.h"
#undef LOOPS

enum { VECTOR_BYTES = 64 };    /* of the widest vectors */

/* result[row] = start[row] + the sum over taps of weights[row][tap] * sources[tap]: lines of `flat` elements, into
   lines `result_step` elements apart. Less than a vector more may be read and written. */
static inline void correlate(int double_precision, int64_t rows, int64_t flat, int64_t taps, void *sources,
                             const void *weights, int64_t weight_step, const void *start, void *result,
                             int64_t result_step) {
    typedef void (*loop_t)(int64_t rows, int64_t flat, int64_t taps, void *sources, const void *weights,
                           int64_t weight_step, const void *start, void *result, int64_t result_step);
    static const loop_t loops[SETS][2] = VARIANTS(correlate);
    loops[instruction_set()][double_precision](rows, flat, taps, sources, weights, weight_step, start, result,
                                               result_step);
}

/* sums[row][tap] += the sum of grad[row] * sources[tap] over lines of `flat` elements, a multiple of 16; runs of `run`,
   a multiple of 16 too, are added up in double precision. */
static inline void dots(int double_precision, int64_t rows, int64_t flat, int64_t taps, int64_t run, const void *grad,
                        int64_t grad_step, void *sources, double *sums) {
    typedef void (*loop_t)(int64_t rows, int64_t flat, int64_t taps, int64_t run, const void *grad, int64_t grad_step,
                           void *sources, double *sums);
    static const loop_t loops[SETS][2] = VARIANTS(dots);
    loops[instruction_set()][double_precision](rows, flat, taps, run, grad, grad_step, sources, sums);
}

/* c = a @ b, added to `addend`, if there is one, which may be c: m x k elements with any steps, k x n in contiguous
   rows. `room` has space for k + m vectors. */
static inline void multiply(int double_precision, int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row,
                            int64_t a_step, const void *b, int64_t b_row, const void *addend, int64_t addend_row,
                            void *c, int64_t c_row, void *room) {
    typedef void (*loop_t)(int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row, int64_t a_step, const void *b,
                           int64_t b_row, const void *addend, int64_t addend_row, void *c, int64_t c_row, void *room);
    static const loop_t loops[SETS][2] = VARIANTS(multiply);
    loops[instruction_set()][double_precision](m, n, k, a, a_row, a_step, b, b_row, addend, addend_row, c, c_row, room);
}

#endif
