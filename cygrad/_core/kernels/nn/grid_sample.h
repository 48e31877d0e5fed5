/* grid_sample: the elements and weights of each position, and weighted sums of elements. */
#ifndef CYGRAD_GRID_H
#define CYGRAD_GRID_H

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

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

/* Weights of the taps as polynomials of the distance from the tap at or before the position, constant term first. Cubic
   interpolation: Keys, 1981, with a = -0.75. */
static const double grid_polynomials[3][GRID_TAPS][4] = {
    {{1}},
    {{1, -1}, {0, 1}},
    {{0, -0.75, 1.5, -0.75}, {1, 0, -2.25, 1.25}, {0, 0.75, 1.5, -1.25}, {0, 0, -0.75, 0.75}},
};

#define LOOPS "kernels/nn/grid_sample_loops.h"
#include "simd/targets.h"
#undef LOOPS

/* Compute taps of positions begin <= i < begin + count of one image, at most GRID_BLOCK. */
static inline void grid_taps(int double_precision, const grid_t *g, const void *grid, int64_t begin, int64_t count,
                             int32_t *places, void *weights) {
    typedef void (*taps_t)(const grid_t *, const void *, int64_t, int64_t, int32_t *, void *);
    static const taps_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(grid_taps);
    functions[simd_target()][double_precision](g, grid, begin, count, places, weights);
}

/* Multiply the derivative of the weights by the coordinates with `in`: a gradient of the weights, or a tangent of the
   coordinates if `along`. */
static inline void grid_slopes(int double_precision, const grid_t *g, const void *grid, int64_t begin, int64_t count,
                               int along, const void *in, void *out) {
    typedef void (*slopes_t)(const grid_t *, const void *, int64_t, int64_t, int, const void *, void *);
    static const slopes_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(grid_slopes);
    functions[simd_target()][double_precision](g, grid, begin, count, along, in, out);
}

/* Compute weighted sums of elements of some channels. */
static inline void gather_weighted(int double_precision, const void *images, const int32_t *places, const void *weights,
                                   int64_t channels, int64_t size, int64_t taps, int64_t points, void *out) {
    typedef void (*gather_t)(const void *, const int32_t *, const void *, int64_t, int64_t, int64_t, int64_t, void *);
    static const gather_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(gather_weighted);
    functions[simd_target()][double_precision](images, places, weights, channels, size, taps, points, out);
}

/* Add the transpose of gather_weighted for one channel to `image`. */
static inline void scatter_weighted(int double_precision, const void *grad, const int32_t *places, const void *weights,
                                    int64_t taps, int64_t points, void *image) {
    typedef void (*scatter_t)(const void *, const int32_t *, const void *, int64_t, int64_t, void *);
    static const scatter_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(scatter_weighted);
    functions[simd_target()][double_precision](grad, places, weights, taps, points, image);
}

/* Compute gradients of the weights of positions begin <= i < begin + count. */
static inline void gather_products(int double_precision, const void *grad, const void *images, const int32_t *places,
                                   int64_t channels, int64_t size, int64_t taps, int64_t points, int64_t begin,
                                   int64_t count, void *out) {
    typedef void (*products_t)(const void *, const void *, const int32_t *, int64_t, int64_t, int64_t, int64_t,
                               int64_t, int64_t, void *);
    static const products_t functions[SIMD_TARGETS][2] = SIMD_VARIANTS(gather_products);
    functions[simd_target()][double_precision](grad, images, places, channels, size, taps, points, begin, count,
                                                   out);
}

#endif
