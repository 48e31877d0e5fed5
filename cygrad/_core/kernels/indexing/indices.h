/* Checks and conversions of indices. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Return whether all indices are at least `low` and less than `high`. */
EXPORTED int (*const within)(const int64_t *indices, int64_t n, int64_t low, int64_t high);
/* offsets[i] = the index, wrapped if it is negative, times step; return whether one is out of bounds. */
EXPORTED int (*const scale_indices)(const int64_t *indices, int64_t *offsets, int64_t n, int64_t size,
                                    int64_t wrapping, int64_t step);
