/* Direct convolution: a padded image is one contiguous line, and a tap of the kernel is an offset in it. With a stride,
 * the image is first split into phases (padded positions of equal remainder by the stride). Output i reads element
 * i + shift of the tap's phase, in vectors over i; outputs past the end of a line are computed and discarded. */
#ifndef CYGRAD_CONVOLUTION_DIRECT_H
#define CYGRAD_CONVOLUTION_DIRECT_H

#include "kernels/convolution/columns.h"

enum {
    DIRECT_BLOCK = 16,      /* lines are padded to a multiple of this */
    DIRECT_SLACK = 64       /* elements after a buffer that may be read and written */
};

/* Lines of a plane in a buffer: images split into phases, or outputs (with one phase). */
typedef struct {
    int64_t extent[3];      /* lines of one phase, and the length of a line */
    int64_t phase;          /* elements of one phase */
    int64_t flat;           /* elements from the first to the last output position, rounded up */
    int64_t guard;          /* largest shift: zeros before the outputs, which are shifted the other way */
    int64_t image;          /* elements of the buffer of one channel of the input */
    int64_t output;         /* ... and of the output, with its guard */
} lines_t;

static inline int64_t direct_phases(const geometry_t *g) {
    return g->stride[0] * g->stride[1] * g->stride[2];
}

/* Compute buffer sizes; phases cover the whole image, so that they hold all of its gradient. */
static inline void plan_lines(const geometry_t *g, lines_t *lines) {
    int64_t shift[3];
    for (int d = 0; d < 3; d++) {
        const int64_t most = (g->size[d] + g->padding[d] + g->stride[d] - 1) / g->stride[d];
        shift[d] = (g->kernel[d] - 1) * g->dilation[d] / g->stride[d];
        lines->extent[d] = g->out[d] + shift[d] > most ? g->out[d] + shift[d] : most;
    }
    const int64_t line = lines->extent[2], plane = lines->extent[1] * line;
    lines->phase = lines->extent[0] * plane;
    lines->flat = (g->out[0] - 1) * plane + (g->out[1] - 1) * line + g->out[2];
    lines->flat = (lines->flat + DIRECT_BLOCK - 1) / DIRECT_BLOCK * DIRECT_BLOCK;
    lines->guard = shift[0] * plane + shift[1] * line + shift[2];
    lines->image = direct_phases(g) * lines->phase + lines->guard + DIRECT_SLACK;
    lines->output = lines->guard + (lines->phase > lines->flat ? lines->phase : lines->flat) + DIRECT_SLACK;
}

/* Return the phase that a tap reads, and its shift within the phase. */
static inline int64_t tap_phase(const geometry_t *g, int64_t i, int64_t j, int64_t k) {
    const int64_t a = i * g->dilation[0] % g->stride[0], b = j * g->dilation[1] % g->stride[1];
    return (a * g->stride[1] + b) * g->stride[2] + k * g->dilation[2] % g->stride[2];
}

static inline int64_t tap_shift(const geometry_t *g, const lines_t *lines, int64_t i, int64_t j, int64_t k) {
    const int64_t a = i * g->dilation[0] / g->stride[0], b = j * g->dilation[1] / g->stride[1];
    return (a * lines->extent[1] + b) * lines->extent[2] + k * g->dilation[2] / g->stride[2];
}

/* Copy a strided plane of the image to its phases, or `back`. */
EXPORTED void (*const deal_plane[2])(const geometry_t *g, const lines_t *lines, void *image, void *buffer, int back);
/* Copy a contiguous plane of outputs to lines as long as those of the input's phases, or `back`. */
EXPORTED void (*const spread_plane[2])(const geometry_t *g, const lines_t *lines, const void *plane, void *buffer);
/* Add the sums of `dots` for one pair of planes without padding: an inf or nan must not meet a padding zero. */
EXPORTED void (*const plain_dots[2])(const geometry_t *g, const void *grad, const void *image, double *sums);
/* Copy the numbers at these places. */
EXPORTED void (*const take_at[2])(const void *source, const int64_t *places, int64_t n, void *out);
EXPORTED int (*const all_finite[2])(const void *numbers, int64_t n);
/* Add `parts` rows of `size` sums, in order. */
EXPORTED void (*const add_parts[2])(const double *sums, int64_t parts, int64_t size, void *weight);

#endif
