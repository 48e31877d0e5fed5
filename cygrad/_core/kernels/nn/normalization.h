/* Normalization of channels by mean and standard deviation, for float32 and float64.
 *
 * A channel is `outer` lines of `inner` contiguous elements, channels * inner apart. Weight and bias have one element
 * per channel, per element of a line, or per segment of a line in each of `groups` consecutive channels.
 */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

typedef struct {
    int64_t outer, channels, inner;
    int64_t segments, groups;        /* of weight and bias; 0: none */
    int by_channel;                  /* one weight per channel */
    int centered;                    /* subtract the mean (else only for rows) */
    double eps;
} channels_t;

/* Channels [first, first + n) of a tile, or one channel, or the rows of a chunk. */
typedef void (*normalize_t)(const channels_t *c, int64_t first, int64_t n, void *const *x, void *const *out);

/* x: input, weight, bias; out: result, mean, 1 / deviation, variance. */
EXPORTED const normalize_t normalize[2];
/* x: gradient, input, unused, mean, 1 / deviation; out: sums along normal elements, sums. */
EXPORTED const normalize_t normalize_sums[2];
/* x: gradient, input, weight, mean, 1 / deviation; out: gradient of the input, sums along normal elements, and sums;
 * NULL if not requested. */
EXPORTED const normalize_t normalize_backward[2];

/* Return the channels of a tile, 0 if lines are not short. */
EXPORTED int64_t tile_of(const channels_t *c);
