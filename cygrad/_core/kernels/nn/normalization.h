/* Normalization of channels by mean and standard deviation, for float32 and float64.
 *
 * A channel is `outer` lines of `inner` contiguous elements, channels * inner apart. Weight and bias have one element
 * per channel, per element of a line, or per segment of a line in each of `groups` consecutive channels.
 */
#ifndef CYGRAD_NORMALIZATION_H
#define CYGRAD_NORMALIZATION_H

#include <stdint.h>

typedef struct {
    int64_t outer, channels, inner;
    int64_t segments, groups;        /* of weight and bias; 0: none */
    int by_channel;                  /* one weight per channel */
    int centered;                    /* subtract the mean (else only for rows) */
    double eps;
} channels_t;

enum {
    COLUMNS = 256,                   /* maximum of a tile of channels with short lines */
    SHORT_LINE = 32,                 /* elements below which a line is short */
    LINES = 64                       /* lines summed in the precision of the type */
};

#define LOOPS "kernels/nn/normalization_loops.h"
#include "simd/targets.h"
#undef LOOPS

/* Return the channels of a tile, 0 if lines are not short. */
static int64_t tile_of(const channels_t *c) {
    return c->by_channel && c->inner > 0 && c->inner < SHORT_LINE && c->outer > 1 ? COLUMNS / c->inner : 0;
}

#define CALL(function, signature, ...) do { \
        static void (*const variants[SIMD_TARGETS][2])signature = SIMD_VARIANTS(function); \
        variants[simd_target()][double_precision](__VA_ARGS__); \
    } while (0)
#define P const void *
#define W void *

/* x[0..2] are input, weight and bias; out[0..3] result, mean, 1 / deviation and variance. */
static void normalize(int double_precision, const channels_t *c, int64_t first, int64_t n, void *const *x,
                      void *const *out) {
    if (tile_of(c))
        CALL(normalize_tile, (const channels_t *, int64_t, int64_t, P, P, P, W, W, W, W), c, first, n, x[0], x[1], x[2],
             out[0], out[1], out[2], out[3]);
    else
        CALL(normalize, (const channels_t *, int64_t, P, P, P, W, W, W, W), c, first, x[0], x[1], x[2], out[0], out[1],
             out[2], out[3]);
}

/* x: gradient, input, unused, mean, 1 / deviation; out: sums along normal elements, sums. */
static void normalize_sums(int double_precision, const channels_t *c, int64_t first, int64_t n, void *const *x,
                           void *const *out) {
    if (tile_of(c))
        CALL(normalize_sums_tile, (const channels_t *, int64_t, int64_t, P, P, P, P, W, W), c, first, n, x[0], x[1], x[3],
             x[4], out[0], out[1]);
    else
        CALL(normalize_sums, (const channels_t *, int64_t, P, P, P, P, W, W), c, first, x[0], x[1], x[3], x[4], out[0],
             out[1]);
}

/* x: gradient, input, weight, mean, 1 / deviation; out: gradient of the input, sums along normal elements, and sums, of
 * channels [first, first + n) of a tile or of the rows of a chunk; NULL if not requested. */
static void normalize_backward(int double_precision, const channels_t *c, int64_t first, int64_t n, void *const *x,
                               void *const *out) {
    if (tile_of(c))
        CALL(normalize_backward_tile, (const channels_t *, int64_t, int64_t, P, P, P, P, P, W, W, W), c, first, n, x[0],
             x[1], x[2], x[3], x[4], out[0], out[1], out[2]);
    else if (c->by_channel || c->segments)
        for (int64_t k = first; k < first + n; k++)
            CALL(normalize_backward, (const channels_t *, int64_t, P, P, P, P, P, W, W, W), c, k, x[0], x[1], x[2], x[3],
                 x[4], out[0], out[1], out[2]);
    else
        CALL(normalize_backward_rows, (const channels_t *, int64_t, int64_t, P, P, P, P, P, W, W, W), c, first, first + n,
             x[0], x[1], x[2], x[3], x[4], out[0], out[1], out[2]);
}

#undef CALL
#undef P
#undef W

#endif
