// The loops of shares.h.

#include "kernels/shape/shares.h"

#include "arrays/element_types.h"

template <class T> static void divide(T *values, const int64_t *counts, int64_t n, int parts) {
    for (int64_t i = 0; i < n * parts; i++)
        if (counts[i / parts] > 1)
            values[i] = values[i] / (T)counts[i / parts];
}

void divide_by_counts(int dtype, void *values, const int64_t *counts, int64_t n) {
    for_dtype<float, double>(dtype, [=](auto x) { divide((decltype(x) *)values, counts, n, 1); });
    for_dtype<complex64_t, complex128_t>(dtype, [=](auto x) {
        divide((std::decay_t<decltype(__real__ x)> *)values, counts, n, 2);
    });
}
