/* Evenly spaced values; see factories.pyx. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

typedef struct {
    int dtype;                         /* an integer or floating one */
    void *out;
    int64_t start, step;               /* of integers */
    double first, by;                  /* of floating numbers */
} range_t;

/* Body of a parallel loop: values begin..end-1 of arange; `context` is a range_t. */
EXPORTED void count_range(void *context, int64_t begin, int64_t end);

/* From `start` to `end`, counted from the nearer one, so that the last value is exactly `end` and the values are
 * symmetric; of integers, reals (the first parts) or complex numbers. If `logarithmic`,
 * powers of `base`. */
typedef struct {
    int dtype;
    void *out;
    int64_t n;
    int64_t first, last;               /* of integers */
    double start[2], end[2];
    int logarithmic;
    double base;
} space_t;

EXPORTED void fill_space(const space_t *space);
