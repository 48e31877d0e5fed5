/* grid_sample: the elements and weights of each position, and weighted sums of elements. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum { GRID_NEAREST, GRID_LINEAR, GRID_CUBIC };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };
enum { GRID_BLOCK = 128, GRID_TAPS = 4 };

typedef struct {
    int n;                       /* coordinates of a position: x first, which belongs to the last dimension */
    int mode, padding, align;
    int taps;                    /* of each coordinate; a position has taps**n, contiguous along x */
    int64_t sizes[3];            /* of the image, for x, y and z */
    int order[3];                /* order of the derivative of the weights by each coordinate */
    int64_t points;              /* positions of one image */
} grid_t;

/* Compute taps of positions begin <= i < begin + count of one image, at most GRID_BLOCK. */
EXPORTED void (*const grid_taps[2])(const grid_t *g, const void *grid, int64_t begin, int64_t count, int32_t *places,
                                    void *weights);
/* Multiply the derivative of the weights by the coordinates with `in`: a gradient of the weights, or a tangent of the
   coordinates if `along`. */
EXPORTED void (*const grid_slopes[2])(const grid_t *g, const void *grid, int64_t begin, int64_t count, int along,
                                      const void *in, void *out);
/* Compute weighted sums of elements of some channels. */
EXPORTED void (*const gather_weighted[2])(const void *images, const int32_t *places, const void *weights,
                                          int64_t channels, int64_t size, int64_t taps, int64_t points, void *out);
/* Add the transpose of gather_weighted for one channel to `image`. */
EXPORTED void (*const scatter_weighted[2])(const void *grad, const int32_t *places, const void *weights, int64_t taps,
                                           int64_t points, void *image);
/* Compute gradients of the weights of positions begin <= i < begin + count. */
EXPORTED void (*const gather_products[2])(const void *grad, const void *images, const int32_t *places,
                                          int64_t channels, int64_t size, int64_t taps, int64_t points, int64_t begin,
                                          int64_t count, void *out);
