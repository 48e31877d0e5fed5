// The tables of resampling, and its loops for the SIMD target of this processor.

#include "kernels/nn/resample.h"

#define LOOPS "kernels/nn/resample_loops.h"
#include "simd/dispatch.h"

const resample_t resample_planes[2][2] = {FOR_FLOAT_AND_DOUBLE(resample_t, resample),
                                          FOR_FLOAT_AND_DOUBLE(resample_t, resample_back)};

/* Keys' cubic convolution kernel. */
static inline double cubic_kernel(double x, double a) {
    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static inline double hat_kernel(double x) {
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static inline int64_t clamped(int64_t at, int64_t size) {
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

double axis_scale(int mode, int antialias, int64_t size, int64_t out, int align_corners, double given) {
    if (out == size && (mode == LINEAR || antialias))
        return 1;                    /* no resizing, whatever the scale factor */
    if (align_corners)
        return out > 1 ? (double)(size - 1) / (double)(out - 1) : 0;
    return given > 0 ? 1 / given : (double)size / (double)out;
}

int64_t axis_taps(int mode, int antialias, double scale) {
    if (mode < LINEAR)
        return 1;
    if (!antialias)
        return mode == LINEAR ? 2 : 4;
    return 2 * (int64_t)ceil((mode == LINEAR ? 1 : 2) * (scale > 1 ? scale : 1)) + 1;
}

void fill_axis(axis_t *axis, int mode, int antialias, int align_corners, int64_t size, int64_t out, double scale) {
    for (int64_t o = 0; o < out; o++) {
        int64_t *index = axis->index + o * axis->taps;
        double *weight = axis->weight + o * axis->taps;
        if (mode < LINEAR) {
            const float step = (float)scale;
            index[0] = clamped((int64_t)floorf(((float)o + (mode == NEAREST ? 0.0f : 0.5f)) * step), size);
            weight[0] = 1;
        } else if (antialias) {
            const double wide = scale > 1 ? scale : 1, support = (mode == LINEAR ? 1 : 2) * wide;
            const double center = scale * ((double)o + 0.5);
            int64_t first = (int64_t)(center - support + 0.5), last = (int64_t)(center + support + 0.5);
            double total = 0;
            if (first < 0) first = 0;
            if (last > size) last = size;
            for (int64_t t = 0; t < axis->taps; t++) {
                const double x = ((double)(first + t) - center + 0.5) / wide;
                index[t] = clamped(first + t, size);
                weight[t] = first + t >= last ? 0 : mode == LINEAR ? hat_kernel(x) : cubic_kernel(x, -0.5);
                total += weight[t];
            }
            for (int64_t t = 0; t < axis->taps && total != 0; t++)
                weight[t] /= total;
        } else {
            double at = align_corners ? scale * (double)o : scale * ((double)o + 0.5) - 0.5;
            if (mode == LINEAR) {
                if (at < 0) at = 0;
                const int64_t low = clamped((int64_t)at, size);
                double part = at - (double)low;
                if (part > 1) part = 1;
                index[0] = low;
                index[1] = low < size - 1 ? low + 1 : low;
                weight[0] = 1 - part;
                weight[1] = part;
            } else {
                const double low = floor(at), part = at - low;
                for (int t = 0; t < 4; t++) {
                    index[t] = clamped((int64_t)low - 1 + t, size);
                    weight[t] = cubic_kernel(part + 1 - t, -0.75);
                }
            }
        }
    }
}
