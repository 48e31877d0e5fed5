/* Rows of attention weights; see softmax.pyx. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

typedef struct {
    int dtype;                         /* float32 or float64: of the scores, and of a mask of numbers */
    int mask_is_bool;
    int64_t n;                         /* elements of a row */
    int64_t mask_step;                 /* in elements */
    double scale;
    double (*row_sum)(int dtype, const char *data, int64_t n);
    double (*row_maximum)(int dtype, const char *data, int64_t n);
} attention_row_t;

/* Softmax of the first `size` scores of a row, scaled and masked, then zeros. A mask of bools tells which remain, one
 * of numbers is added; it may be NULL. A row without a score has the weights 0. */
EXPORTED void attention_row(const attention_row_t *work, const char *scores, const char *mask, char *out, int64_t size);
