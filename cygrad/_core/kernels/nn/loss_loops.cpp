// The loops of losses.

#include "kernels/nn/loss_loops.h"

#include <string.h>
#include <algorithm>
#include "arrays/element_types.h"
#include "kernels/reduction/softmax_rows.h"

namespace {

template <class T> void losses(const samples_t *s, int64_t begin, int64_t end) {
    const T *input = (const T *)s->input, *weight = (const T *)s->weight;
    T *losses = (T *)s->losses, *weights = (T *)s->weights;
    const int64_t n = s->n, inner = s->inner;
    const int64_t apart = inner == 1 ? n : 1;              // samples `apart` elements from each other
    double smooth[LOSS_TILE];
    for (int64_t first = begin, width; first < end; first += width) {
        width = std::min<int64_t>(LOSS_TILE, end - first);
        if (inner > 1)
            width = std::min(width, inner - first % inner);
        const T *x = input + first / inner * n * inner + first % inner;
        if (s->smoothing != 0 && weight == NULL && inner == 1) {
            for (int64_t k = 0; k < width; k++)
                smooth[k] = -s->row_sum(s->dtype, (const char *)(x + k * n), n);
        } else if (s->smoothing != 0) {
            for (int64_t k = 0; k < width; k++)
                smooth[k] = 0;
            for (int64_t c = 0; c < n; c++) {
                const double w = weight != NULL ? weight[c] : 1;
                for (int64_t k = 0; k < width; k++)
                    smooth[k] -= x[c * inner + k * apart] * w;
            }
        }
        for (int64_t k = 0; k < width; k++) {
            const int64_t target = s->targets[first + k];
            if (target == s->ignore) {
                losses[first + k] = weights[first + k] = 0;
                continue;
            }
            const double w = weight != NULL ? weight[target] : 1;
            double value = -w * x[target * inner + k * apart];
            if (s->smoothing != 0)
                value = (1 - s->smoothing) * value + s->smoothing / n * smooth[k];
            weights[first + k] = (T)w;
            losses[first + k] = (T)value;
        }
    }
}

template <class T> void gradients(const samples_t *s, int64_t begin, int64_t end) {
    const T *input = (const T *)s->input, *weight = (const T *)s->weight, *grad = (const T *)s->grad;
    T *out = (T *)s->out;
    const int64_t n = s->n, inner = s->inner, tiles = (inner + LOSS_TILE - 1) / LOSS_TILE;
    const auto exponentials = scaled_exponentials_of[sizeof(T) == 8];
    T along[LOSS_TILE], smooth[LOSS_TILE], scale[LOSS_TILE], all_weights = (T)n;
    if (weight != NULL) {
        all_weights = 0;
        for (int64_t c = 0; c < n; c++)
            all_weights += weight[c];
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t tile = item % tiles * LOSS_TILE, width = std::min<int64_t>(LOSS_TILE, inner - tile);
        const int64_t sample = item / tiles * inner + tile, at = item / tiles * n * inner + tile;
        const int64_t *targets = s->targets + sample;
        T *to = out + at;
        for (int64_t k = 0; k < width; k++) {
            along[k] = smooth[k] = 0;
            if (targets[k] != s->ignore) {
                const T g = (T)s->scale * (s->each ? grad[sample + k] : grad[0]);
                const T w = weight != NULL ? weight[targets[k]] : 1;
                along[k] = (T)(1 - s->smoothing) * g * w;
                smooth[k] = (T)(s->smoothing / n) * g;
            }
            scale[k] = along[k] + smooth[k] * all_weights;
        }
        if (s->through_softmax && inner == 1) {
            const T even = smooth[0];
            exponentials(input + at, scale[0], weight != NULL ? 0 : even, to, n);
            if (weight != NULL && even != 0)
                for (int64_t c = 0; c < n; c++)
                    to[c] = to[c] - even * weight[c];
        } else {
            for (int64_t c = 0; c < n; c++) {
                if (s->through_softmax) {
                    const T w = weight != NULL ? weight[c] : 1;
                    T *row = to + c * inner;
                    exponentials(input + at + c * inner, 1, 0, row, width);
                    for (int64_t k = 0; k < width; k++)
                        row[k] = row[k] * scale[k] - smooth[k] * w;
                } else {
                    memset(to + c * inner, 0, (inner == 1 ? n : width) * sizeof(T));
                    if (inner == 1)
                        break;
                }
            }
        }
        for (int64_t k = 0; k < width; k++)
            if (targets[k] != s->ignore)
                to[targets[k] * inner + k] -= along[k];
    }
}

}  // namespace

void sample_losses(void *context, int64_t begin, int64_t end) {
    const samples_t *samples = (const samples_t *)context;
    for_dtype<float, double>(samples->dtype, [=](auto x) { losses<decltype(x)>(samples, begin, end); });
}

void sample_gradients(void *context, int64_t begin, int64_t end) {
    const samples_t *samples = (const samples_t *)context;
    for_dtype<float, double>(samples->dtype, [=](auto x) { gradients<decltype(x)>(samples, begin, end); });
}
