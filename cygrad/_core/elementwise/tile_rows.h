/* Rows of tiles: copies of broadcast operands, and scans for nan. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Return whether n numbers, `step` bytes apart, contain nan; float16 and bfloat16 with the exponent bits of infinity. */
EXPORTED int (*const nan_in_floats)(const float *x, int64_t n, int64_t step);
EXPORTED int (*const nan_in_doubles)(const double *x, int64_t n, int64_t step);
EXPORTED int (*const nan_in_shorts)(const uint16_t *x, int64_t n, int64_t step, int infinity);

/* Copy `rows` rows of `length` elements of `size` bytes, `stride` bytes apart, each contiguous (`step` is `size`) or
 * of one number (0), into a contiguous buffer; return 0 if it cannot. */
EXPORTED int (*const repeat_rows)(char *to, const char *data, int64_t size, int64_t step, int64_t stride,
                                  int64_t length, int64_t rows);
