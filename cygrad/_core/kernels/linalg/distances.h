/* Distances of one vector from several, and their gradient, for float32 and float64. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum { AT_ONCE = 256, SUMMED_AT_ONCE = 1024, PART = 64, MIRRORED = 32 };
enum { FIRST = 1, SECOND, HIGHEST };              /* order: p = 1, p = 2 and p = inf */

EXPORTED void (*const distances_of[2])(const void *x, const void *transposed, void *out, int64_t from, int64_t k,
                                       int64_t m, int order);
EXPORTED void (*const distance_gradient[2])(const void *x, const void *transposed, const void *weights,
                                            const void *distances, void *out, int64_t k, int64_t m, int order);
EXPORTED void (*const mirror_triangle[2])(void *square, int64_t n, int64_t begin, int64_t end);
