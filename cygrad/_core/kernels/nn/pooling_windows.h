/* Pooling windows along each of three dimensions, and loops over them. */
#ifndef CYGRAD_POOLING_WINDOWS_H
#define CYGRAD_POOLING_WINDOWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"

enum { LANES = 32, WHOLE_LANES = 16, SEGMENT = 256 };

typedef struct {
    int64_t begin;      /* first element inside of the image */
    int64_t count;      /* number of elements, `step` apart */
    int64_t full;       /* number including padding */
} window_t;

typedef struct {
    int64_t size[3], out[3], step[3];
    window_t *windows[3];
    int64_t inner_first, inner_last, inner_stride;    /* windows of the last dimension without padding */
    double divisor;     /* of averages; 0: number of elements */
    int with_padding;   /* ... counted with those in the padding */
} pooling_t;

/* Return the number of windows from `c` on, without padding, in a segment of a line. */
static inline int64_t windows_of_segment(const pooling_t *p, int64_t c) {
    if (c < p->inner_first || c >= p->inner_last)
        return 0;
    const int64_t most = (SEGMENT - p->windows[2][c].count) / p->inner_stride + 1, left = p->inner_last - c;
    return left < most ? left : most;
}

#define REAL float
#define NAME(function) function##_float
#define IS_NAN(x) ((x) != (x))
#define LOWEST -INFINITY
#include "kernels/nn/pooling_loops.h"
#include "kernels/nn/pooling_averages.h"
#undef IS_NAN
#undef LOWEST
#undef REAL
#undef NAME
#define REAL double
#define NAME(function) function##_double
#define IS_NAN(x) ((x) != (x))
#define LOWEST -INFINITY
#include "kernels/nn/pooling_loops.h"
#include "kernels/nn/pooling_averages.h"
#undef IS_NAN
#undef LOWEST
#undef REAL
#undef NAME
#define IS_NAN(x) 0
#define REAL int64_t
#define LOWEST INT64_MIN
#define NAME(function) function##_int64
#include "kernels/nn/pooling_loops.h"
#include "kernels/nn/pooling_averages.h"
#undef REAL
#undef LOWEST
#undef NAME
#define REAL int32_t
#define LOWEST INT32_MIN
#define NAME(function) function##_int32
#include "kernels/nn/pooling_loops.h"
#undef REAL
#undef LOWEST
#undef NAME
#define REAL int16_t
#define LOWEST INT16_MIN
#define NAME(function) function##_int16
#include "kernels/nn/pooling_loops.h"
#undef REAL
#undef LOWEST
#undef NAME
#define REAL int8_t
#define LOWEST INT8_MIN
#define NAME(function) function##_int8
#include "kernels/nn/pooling_loops.h"
#undef REAL
#undef LOWEST
#undef NAME
#define REAL uint8_t
#define LOWEST 0
#define NAME(function) function##_uint8
#include "kernels/nn/pooling_loops.h"
#undef REAL
#undef LOWEST
#undef NAME
#undef IS_NAN

#endif
