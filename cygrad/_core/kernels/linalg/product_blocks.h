/* Matrix products in register blocks, for float32 and float64.

   BLAS packs both operands in each call, which takes a tenth to a half of the time if they are in the caches. Here they
   are read in place; only columns of b that are not contiguous are packed. */
#ifndef CYGRAD_PRODUCT_BLOCKS_H
#define CYGRAD_PRODUCT_BLOCKS_H

#include <stdint.h>
#include "simd/exported.h"
#include "simd/instruction_set.h"

enum {
    INNER = 512,               /* inner dimension of a block, so that b stays in a cache */
    MAX_ROWS = 64,             /* of results in the workspace at a time */
    WORKSPACE_BYTES = (INNER + 2 * MAX_ROWS) * 3 * 64,  /* three of the widest vectors for each */
    WORTH_COPYING = 16,        /* rows from which copying a line pays off */
    CONFLICT_STRIDE = 2048,    /* lines this many bytes apart evict each other from the L1 cache */
    CACHED_BYTES = 2 << 20     /* operands that are read repeatedly without packing */
};

/* result[row] = start[row] + the sum over taps of weights[row][tap] * sources[tap], for lines of `flat` elements; lines
   of the result are `result_step` apart. May read and write up to a vector beyond the end. */
EXPORTED void (*const correlate[2])(int64_t rows, int64_t flat, int64_t taps, void *sources, const void *weights,
                                    int64_t weight_step, const void *start, void *result, int64_t result_step);

/* sums[row][tap] += the sum of grad[row] * sources[tap] over lines of `flat` elements; partial sums of `run` elements
   are added in double precision. Both are multiples of 16. */
EXPORTED void (*const dots[2])(int64_t rows, int64_t flat, int64_t taps, int64_t run, const void *grad,
                               int64_t grad_step, void *sources, double *sums);

/* c = a @ b (+ addend, which may be c): a is m x k with any strides, b is k x n with one stride of 1. Columns of b that
   are not whole vectors are packed into `workspace`, of WORKSPACE_BYTES. */
EXPORTED void (*const multiply[2])(int64_t m, int64_t n, int64_t k, const void *a, int64_t a_row, int64_t a_step,
                                   const void *b, int64_t b_row, int64_t b_column, const void *addend,
                                   int64_t addend_row, void *c, int64_t c_row, void *workspace);

/* Return whether `workspace` is needed, because lines are packed or padded. */
static inline int needs_workspace(int double_precision, int64_t n, int64_t b_row, int64_t b_column) {
    return b_column != 1 || n % 16 || b_row * (double_precision ? 8 : 4) % CONFLICT_STRIDE == 0;
}

/* Return whether this is faster than BLAS, which packs both. `in_place`: BLAS reads small ones unpacked and masks
   remainders. `transposed_b`: b_row is 1; if a_row is 1, `transposed_a` is the other stride in bytes. */
static inline int fits_blocks(int double_precision, int in_place, int64_t m, int64_t n, int64_t k, int64_t transposed_a,
                              int transposed_b) {
    const int set = simd_target(), size = double_precision ? 8 : 4, lanes = (set == 2 ? 64 : 32) / size;
    if (set == 0 || m < (transposed_b ? 16 : in_place ? 8 : 4) || k < (in_place ? 24 : 8) || n < 2 * lanes
            || (n % lanes && n < (in_place ? 6 : 4) * lanes))
        return 0;
    if (transposed_a
            && (transposed_a % (set == 2 ? 4096 : 2048) == 0 || (in_place && transposed_b && m * n * k <= 1000000)))
        return 0;
    /* Blocks of the inner dimension are read in turn, but the lines of a transposed one would evict each other. */
    return (m + n) * (transposed_a || k < INNER ? k : INNER) * size <= CACHED_BYTES;
}

#endif
