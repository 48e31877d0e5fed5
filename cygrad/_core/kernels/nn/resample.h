/* Resampling: along each dimension, an output is a weighted sum of a few elements of the input. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

typedef struct {
    int64_t taps;                    /* of each output, padded with weight 0 */
    int64_t *index;
    double *weight;
} axis_t;

typedef struct {
    int64_t size[3], out[3];
    axis_t axis[3];
} resampling_t;

enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC };

/* Resample a plane, or the transpose: `input` is the gradient then, and `result` starts at zero. `buffer` holds a line
   of the wider plane. */
typedef void (*resample_t)(const resampling_t *r, const void *input, void *result, void *buffer);

/* Return the input elements per output element. `given` is the user's scale factor, or 0. */
EXPORTED double axis_scale(int mode, int antialias, int64_t size, int64_t out, int align_corners, double given);
EXPORTED int64_t axis_taps(int mode, int antialias, double scale);
EXPORTED void fill_axis(axis_t *axis, int mode, int antialias, int align_corners, int64_t size, int64_t out,
                        double scale);

/* Forward and transposed; of float32 and of float64. */
EXPORTED const resample_t resample_planes[2][2];
