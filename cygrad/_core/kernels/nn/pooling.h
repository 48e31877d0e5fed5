/* Pooling windows along each of three dimensions, and loops over planes by dtype. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

typedef struct {
    int64_t begin;      /* first element inside of the image */
    int64_t count;      /* number of elements, `step` apart */
    int64_t full;       /* number including padding */
} window_t;

typedef struct {
    int64_t size[3], out[3], step[3];
    window_t *windows[3];
    int64_t inner_first, inner_last, inner_stride;    /* windows of the last dimension without padding */
    /* Maxima in lanes: of whole windows, in place, or of all windows in planes that are copied to a buffer of `copied`
     * elements, whose lines have `before` elements of padding. Then `starts` are the places of their first elements
     * in the windows, followed by zeros for 2 * LANES more. */
    const int32_t *starts;
    int64_t kernel, before, line, copied;
    double divisor;     /* of averages; 0: number of elements */
    int with_padding;   /* ... counted with those in the padding */
} pooling_t;

enum {
    LANES = 16,
    LARGEST_COPY = 4096    /* elements of a plane that stay in the L1 cache with their copy */
};

enum {
    PICK,               /* small[i] = large[position[i]] */
    SPREAD,             /* large[position[i]] += small[i] */
    PLACE               /* large[position[i]] = small[i] */
};

/* Maxima of the windows of planes and their positions in them. */
typedef void (*maxima_t)(const pooling_t *pooling, int64_t planes, const void *plane, void *values, int64_t *positions);
/* Averages of the windows of a plane; or their transpose, which adds gradients to a plane. */
typedef void (*averages_t)(const pooling_t *pooling, const void *source, void *target);
/* Move `n` elements of a small plane; return whether a position is out of bounds. -1 is skipped, except by PLACE. */
typedef int64_t (*move_plane_t)(void *small, void *large, const int64_t *positions, int64_t n, int64_t limit);

/* By dtype. */
EXPORTED const maxima_t window_maxima[];
EXPORTED const averages_t window_averages[];
EXPORTED const averages_t window_shares[];
EXPORTED const move_plane_t plane_moves[][3];
