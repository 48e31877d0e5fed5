/* Softmax, its logarithm and their derivatives of single rows, for the processor at hand. */
#ifndef CYGRAD_SOFTMAX_ROWS_H
#define CYGRAD_SOFTMAX_ROWS_H

enum { COLUMNS = 256 };                     /* neighbouring rows that are taken at once, at most */

#define LOOPS "softmax_loops.h"
#include "each_set.h"
#undef LOOPS

typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD } softmax_operation_t;

/* x, or the gradient; the result of forward; what is computed, which may lie where the first does; elements of a row. */
typedef void (*softmax_row_t)(const void *x, const void *result, void *out, int64_t n);
/* ... from one element of a row to the next; rows */
typedef void (*softmax_columns_t)(const void *x, const void *result, void *out, int64_t n, int64_t stride, int64_t width);

static softmax_row_t row_of_softmax(int operation, int double_precision) {
    static const softmax_row_t rows[4][SETS][2] = {
        VARIANTS(softmax_row), VARIANTS(log_softmax_row), VARIANTS(softmax_backward_row),
        VARIANTS(log_softmax_backward_row)};
    return rows[operation][instruction_set()][double_precision];
}

static softmax_columns_t columns_of_softmax(int operation, int double_precision) {
    static const softmax_columns_t columns[4][SETS][2] = {
        VARIANTS(softmax_columns), VARIANTS(log_softmax_columns), VARIANTS(softmax_backward_columns),
        VARIANTS(log_softmax_backward_columns)};
    return columns[operation][instruction_set()][double_precision];
}

#endif
