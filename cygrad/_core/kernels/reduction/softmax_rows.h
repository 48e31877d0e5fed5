/* Softmax, log_softmax and their derivatives of rows, dispatched on the SIMD target. */
#ifndef CYGRAD_SOFTMAX_ROWS_H
#define CYGRAD_SOFTMAX_ROWS_H

enum {
    COLUMNS = 256,                          /* maximum of adjacent rows processed together */
    ROWS = 64                               /* maximum of consecutive rows whose logarithms are vectorized */
};

#define LOOPS "kernels/reduction/softmax_loops.h"
#include "simd/targets.h"
#undef LOOPS

typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD } softmax_operation_t;

/* x or the gradient; the result of the forward pass; the output, which may be the first; elements of a row; number of
 * consecutive rows. */
typedef void (*softmax_rows_t)(const void *x, const void *result, void *out, int64_t n, int64_t rows);
/* ... stride of the elements of a row; rows */
typedef void (*softmax_columns_t)(const void *x, const void *result, void *out, int64_t n, int64_t stride, int64_t width);

static softmax_rows_t rows_of_softmax(int operation, int double_precision) {
    static const softmax_rows_t rows[4][SIMD_TARGETS][2] = {
        SIMD_VARIANTS(softmax_rows), SIMD_VARIANTS(log_softmax_rows), SIMD_VARIANTS(softmax_backward_rows),
        SIMD_VARIANTS(log_softmax_backward_rows)};
    return rows[operation][simd_target()][double_precision];
}

static softmax_columns_t columns_of_softmax(int operation, int double_precision) {
    static const softmax_columns_t columns[4][SIMD_TARGETS][2] = {
        SIMD_VARIANTS(softmax_columns), SIMD_VARIANTS(log_softmax_columns), SIMD_VARIANTS(softmax_backward_columns),
        SIMD_VARIANTS(log_softmax_backward_columns)};
    return columns[operation][simd_target()][double_precision];
}

/* exp(x) * factor - less, of n neighbors; `out` may be x */
typedef void (*scaled_exponentials_t)(const void *x, double factor, double less, void *out, int64_t n);

static scaled_exponentials_t scaled_exponentials_for(int double_precision) {
    static const scaled_exponentials_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(scaled_exponentials);
    return functions[simd_target()][double_precision];
}

#endif
