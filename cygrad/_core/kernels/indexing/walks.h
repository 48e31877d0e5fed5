/* Rows of gather, take, scatter and scatter_reduce, and masked fills; see gather.pyx. */
#pragma once

#include <stdint.h>
#include "elementwise/offset_loops.h"
#include "simd/exported.h"

enum { PROD = TAKE + 1, AMAX, AMIN };  /* moves of scatter_reduce: products and extrema */

typedef struct {
    int move;                          /* a move_t, PROD, AMAX or AMIN */
    int dtype;
    int64_t itemsize;
    int64_t dense_step;                /* bytes; 0: one value for all */
    int64_t length;                    /* of a row */
    int64_t along, across;             /* strides in bytes */
    int64_t size;                      /* of the indexed dimension */
    int negative;                      /* do indices count from the end? */
} walk_row_t;

/* Process one row; the indices have been checked. */
EXPORTED void walk_row(const walk_row_t *walk, char *base, char *dense, const int64_t *indices);

/* data[i] = value, of `size` bytes, where the mask is true, for begin <= i < end. */
EXPORTED void fill_where(const uint8_t *mask, char *data, const void *value, int64_t size, int64_t begin, int64_t end);
