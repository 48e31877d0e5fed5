/* Comparison of contiguous floating numbers. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Return whether one of n float32 or float64 numbers differs: -0 equals 0, and nan never compares equal. */
EXPORTED int (*const numbers_differ[2])(const void *a, const void *b, int64_t n);
