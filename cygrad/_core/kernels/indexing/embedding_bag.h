/* Sums and maxima of rows of a table, and the gradients of sums, for float32 and float64. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

EXPORTED void (*const bag_sum[2])(const char *table, const int64_t *offsets, const void *factors, int64_t count,
                                  int64_t m, int mean, void *out);
EXPORTED void (*const bag_spread[2])(char *table, const int64_t *offsets, const void *factors, int64_t count, int64_t m,
                                     int mean, const void *grad);
EXPORTED void (*const bag_products[2])(const char *table, const int64_t *offsets, int64_t count, int64_t m, int mean,
                                       const void *grad, void *out);
EXPORTED void (*const bag_maximum[2])(const char *table, const int64_t *offsets, int64_t count, int64_t m,
                                      int64_t row_size, void *out, int64_t *chosen);
