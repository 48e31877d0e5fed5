// The loops of attention_rows.h.

#include "kernels/reduction/attention_rows.h"

#include <math.h>
#include <string.h>
#include "arrays/element_types.h"
#include "kernels/reduction/softmax_rows.h"

template <class T>
static void weigh(const attention_row_t *work, const T *scores, const char *mask, T *out, int64_t size) {
    const int64_t n = work->n, step = work->mask_step;
    const T scale = (T)work->scale;
    for (int64_t k = 0; k < size; k++)
        out[k] = scores[k] * scale;
    if (mask != NULL && work->mask_is_bool) {
        for (int64_t k = 0; k < size; k++)
            if (!mask[k * step])
                out[k] = -(T)INFINITY;
    } else if (mask != NULL) {
        for (int64_t k = 0; k < size; k++)
            out[k] = out[k] + ((const T *)mask)[k * step];
    }
    const T shift = size > 0 ? (T)work->row_maximum(work->dtype, (const char *)out, size) : -(T)INFINITY;
    if (shift == -(T)INFINITY) {
        memset(out, 0, n * sizeof(T));
        return;
    }
    for (int64_t k = 0; k < size; k++)
        out[k] = out[k] - shift;
    scaled_exponentials_of[sizeof(T) == 8](out, 1, 0, out, size);
    const T factor = (T)(1 / work->row_sum(work->dtype, (const char *)out, size));
    for (int64_t k = 0; k < size; k++)
        out[k] = out[k] * factor;
    memset(out + size, 0, (n - size) * sizeof(T));
}

void attention_row(const attention_row_t *work, const char *scores, const char *mask, char *out, int64_t size) {
    for_dtype<float, double>(work->dtype, [=](auto x) {
        typedef decltype(x) T;
        weigh(work, (const T *)scores, mask, (T *)out, size);
    });
}
