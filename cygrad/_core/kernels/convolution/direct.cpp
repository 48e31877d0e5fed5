// The loops of direct convolution for the SIMD target of this processor.

#include "kernels/convolution/direct.h"

#define LOOPS "kernels/convolution/direct_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(deal_plane, deal);
LOOP_TABLE(spread_plane, spread);
LOOP_TABLE(take_at, take);
LOOP_TABLE(all_finite, are_finite);
LOOP_TABLE(add_parts, add_rows);

// Rarely needed: without variants for the targets.
template <class T> static void add_plain_dots(const geometry_t *g, const T *grad, const T *image, double *sums) {
    for (int64_t a = 0; a < g->kernel[0]; a++)
        for (int64_t b = 0; b < g->kernel[1]; b++)
            for (int64_t c = 0; c < g->kernel[2]; c++) {
                int64_t first[3] = {0, 0, 0}, last[3] = {g->out[0], g->out[1], g->out[2]};
                const int64_t i0 = a * g->dilation[0] - g->padding[0], j0 = b * g->dilation[1] - g->padding[1];
                const int64_t k0 = c * g->dilation[2] - g->padding[2];
                inside(i0, g->stride[0], g->size[0], &first[0], &last[0]);
                inside(j0, g->stride[1], g->size[1], &first[1], &last[1]);
                inside(k0, g->stride[2], g->size[2], &first[2], &last[2]);
                double total = 0;
                for (int64_t i = first[0]; i < last[0]; i++)
                    for (int64_t j = first[1]; j < last[1]; j++)
                        for (int64_t k = first[2]; k < last[2]; k++)
                            total += (double)grad[(i * g->out[1] + j) * g->out[2] + k]
                                * image[(i * g->stride[0] + i0) * g->step[0] + (j * g->stride[1] + j0) * g->step[1]
                                        + (k * g->stride[2] + k0) * g->step[2]];
                *sums++ += total;
            }
}

typedef std::remove_reference<decltype(*plain_dots)>::type dots_t;
const dots_t plain_dots[2] = {(dots_t)add_plain_dots<float>, (dots_t)add_plain_dots<double>};
