/* Softmax, log_softmax and their derivatives of rows, by operation, and attention weights, of float32 and float64. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum {
    COLUMNS = 256,                          /* maximum of adjacent rows processed together */
    ROWS = 64                               /* maximum of consecutive rows whose logarithms are vectorized */
};

typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD } softmax_operation_t;

/* x or the gradient; the result of the forward pass; the output, which may be the first; elements of a row; number of
 * consecutive rows. */
typedef void (*softmax_rows_t)(const void *x, const void *result, void *out, int64_t n, int64_t rows);
/* ... stride of the elements of a row; rows */
typedef void (*softmax_columns_t)(const void *x, const void *result, void *out, int64_t n, int64_t stride,
                                  int64_t width);

EXPORTED const softmax_rows_t softmax_rows[4][2];
EXPORTED const softmax_columns_t softmax_columns[4][2];

typedef struct {
    int mask_is_bool;
    int64_t mask_step;                      /* in elements */
    int64_t n;                              /* elements of a row */
    double scale;
} attention_row_t;

/* Softmax of the first `size` scores of a row, scaled and masked, then zeros. A mask of bools tells which remain, one
 * of numbers of the type of the scores is added; it may be NULL. A row without a score has the weights 0. */
EXPORTED void (*const attention_row[2])(const attention_row_t *row, const void *scores, const void *mask, void *out,
                                        int64_t size);

/* exp(x) * factor - less, of n neighbors; `out` may be x. */
EXPORTED void (*const scaled_exponentials_of[2])(const void *x, double factor, double less, void *out, int64_t n);
