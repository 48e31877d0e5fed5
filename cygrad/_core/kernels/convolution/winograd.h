/* Winograd convolution with 3 x 3 kernels: tiles of 4 x 4 results from 6 x 6 elements with 36 products, not 144.

   S. Winograd, Arithmetic Complexity of Computations (1980), and A. Lavin, S. Gray, Fast Algorithms for Convolutional
   Neural Networks (2016). A tile d and a kernel g become values of polynomials at the points 0, a, -a, b, -b and
   infinity; products of these are values of the product, from which the tile of results is interpolated:

       Y = A' [ (G g G') * (B' d B) ] A

   The points decide how errors grow. With a = 3/4 and b = 3/2 they are half of those with the usual 1 and 2: relative
   to the results' size, 7.5e-7 for 64 channels and 1.3e-6 for 512 in single precision, where sums of products have
   2.8e-7. a and b are exact, and so are their squares and products. */
#ifndef CYGRAD_CONVOLUTION_WINOGRAD_H
#define CYGRAD_CONVOLUTION_WINOGRAD_H

#include <stdint.h>
#include "simd/exported.h"

enum {
    RESULTS = 4,            /* of a tile, in each direction */
    SOURCES = 6,
    POINTS = 36
};

/* Planes of a batch from which tiles are read, or to which they are written; in elements. */
typedef struct {
    char *data;
    int64_t batch_step, channel_step, line_step, step;
    int64_t lines, columns;
    int64_t top, left;      /* padding: offset of tile (0, 0) before the plane */
    int64_t tile_columns;   /* of a plane */
    int64_t tiles;
} planes_t;

/* Layout of the values of tiles: channels contiguous, then tiles, then points; in elements. */
typedef struct {
    char *data;
    int64_t tile_step, point_step;
} values_t;

/* Evaluate `count` tiles from `first` on, of at most 64 bytes of channels; of sources, or of gradients of results.
   `workspace` holds transposed lines. */
EXPORTED void (*const cut_values[2][2])(const planes_t *planes, int64_t channel, int64_t channels, int64_t first,
                                        int64_t count, void *target, const values_t *values, void *workspace);
/* Interpolate the results of some channels, add `bias` unless NULL, and write planes; return whether all are finite. */
EXPORTED int (*const put_results[2])(const planes_t *planes, int64_t channel, int64_t channels, int64_t first,
                                     int64_t count, const void *source, const values_t *values, const void *bias,
                                     void *workspace);
/* Evaluate `count` 3 x 3 kernels of each of some channels; `back` rotates them by 180 degrees. */
EXPORTED void (*const kernel_values[2])(const void *kernels, int64_t channel_step, int64_t channels, int64_t step,
                                        int64_t count, int back, void *target, const values_t *values);
/* Compute gradients of kernels from those of their values; return whether all are finite. */
EXPORTED int (*const put_kernels[2])(const void *source, const values_t *values, int64_t channels, int64_t count,
                                     void *kernels, int64_t channel_step);

#endif
