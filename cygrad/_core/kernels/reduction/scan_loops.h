/* Loops of scans along a dimension, on elements of one type; see scan.pyx. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum {
    SCAN_COLUMNS = 256,        /* adjacent columns processed together */
    SCAN_STEPS = 8             /* rows of a recurrence processed together */
};

typedef enum { CUMSUM, CUMPROD, CUMSUM_REVERSE, PRODUCT_BEFORE, PRODUCT_AFTER } scan_operation_t;

/* Element (o, i, k) is at (o * n + i) * inner + k. */
typedef struct {
    int dtype;                 /* cumulate: int64, floating or complex */
    scan_operation_t operation;
    int64_t outer, n, inner;
    int64_t width, tiles;      /* cumulate: columns of a tile, and tiles of a row of columns */
    int flag;                  /* extrema: the largest; recurrence: in reverse */
    const void *self, *other;
    void *out;
    int64_t *indices;
} scan_t;

/* Bodies of parallel loops; `context` is a scan_t. */
/* Scan tiles begin..end-1. */
EXPORTED void cumulate(void *context, int64_t begin, int64_t end);
/* out *= other, elements begin..end-1, products of both sides: 0 if one is 0, even where the other has overflowed. */
EXPORTED void join_sides(void *context, int64_t begin, int64_t end);
/* Scan rows begin..end-1: the last of equals wins, and nan from the first one on. */
EXPORTED void scan_extrema(void *context, int64_t begin, int64_t end);
/* logcumsumexp of rows begin..end-1 */
EXPORTED void scan_exponentials(void *context, int64_t begin, int64_t end);
/* out[i] = self[i] + other * out[i - 1], or in reverse, where `other` belongs to the element before; rows begin..end-1.
 * A coefficient of 0 discards the value before, even inf. */
EXPORTED void recur(void *context, int64_t begin, int64_t end);
