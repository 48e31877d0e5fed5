// The loops of arange, linspace and logspace.

#include "creation/ranges.h"

#include <math.h>
#include "arrays/element_types.h"

namespace {

template <class T> void count(const range_t *values, int64_t begin, int64_t end) {
    T *out = (T *)values->out;
    for (int64_t i = begin; i < end; i++)
        if constexpr (std::is_integral_v<T>)
            out[i] = (T)((uint64_t)values->start + (uint64_t)values->step * (uint64_t)i);
        else
            out[i] = (T)(values->first + values->by * i);
}

bool is_first_half(int64_t i, int64_t n) { return n == 1 || i < n / 2; }

// Computed in the dtype itself and rounded once, as in PyTorch.
float spaced(float from, float width, int64_t i) { return (float)(from + (double)width * i); }
double spaced(double from, double width, int64_t i) { return fma(width, i, from); }

template <class T> void fill_reals(const space_t *s) {
    T *out = (T *)s->out;
    const int64_t n = s->n;
    const double start = s->start[0], end = s->end[0], step = n > 1 ? (end - start) / (n - 1) : 0;
    const T first = (T)start, last = (T)end, width = n > 1 ? (last - first) / (n - 1) : 0;
    for (int64_t i = 0; i < n; i++)
        if (s->logarithmic)
            out[i] = (T)pow(s->base, is_first_half(i, n) ? start + step * i : end - step * (n - i - 1));
        else
            out[i] = is_first_half(i, n) ? spaced(first, width, i) : spaced(last, -width, n - i - 1);
}

// Integer steps from both ends, which are exact; the rest is truncated.
template <class T> void fill_integers(const space_t *s) {
    T *out = (T *)s->out;
    const int64_t n = s->n, start = s->first, end = s->last;
    const double step = n > 1 ? ((double)end - (double)start) / (n - 1) : 0;
    const float narrow_step = (float)step;
    for (int64_t i = 0; i < n; i++)
        if (s->logarithmic) {
            const float narrow = is_first_half(i, n) ? start + narrow_step * i : end - narrow_step * (n - i - 1);
            out[i] = (T)(int64_t)pow(s->base, narrow);
        } else if (i == 0) {
            out[i] = (T)start;
        } else if (i == n - 1) {
            out[i] = (T)end;
        } else {
            out[i] = (T)(int64_t)(is_first_half(i, n) ? start + step * i : end - step * (n - i - 1));
        }
}

template <class T> void fill_complex(const space_t *s) {
    T *out = (T *)s->out;
    const int64_t n = s->n;
    const T first = (T)complex_number(s->start[0], s->start[1]), last = (T)complex_number(s->end[0], s->end[1]);
    const T step = n > 1 ? (last - first) / (T)(n - 1) : (T)0;
    for (int64_t i = 0; i < n; i++) {
        const T value = is_first_half(i, n) ? first + step * (T)i : last - step * (T)(n - i - 1);
        out[i] = s->logarithmic ? (T)__builtin_cpow((complex128_t)s->base, (complex128_t)value) : value;
    }
}

}  // namespace

void count_range(void *context, int64_t begin, int64_t end) {
    const range_t *values = (const range_t *)context;
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
        values->dtype, [=](auto x) { count<decltype(x)>(values, begin, end); });
}

void fill_space(const space_t *space) {
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t>(space->dtype,
                                                          [=](auto x) { fill_integers<decltype(x)>(space); });
    for_dtype<float, double>(space->dtype, [=](auto x) { fill_reals<decltype(x)>(space); });
    for_dtype<complex64_t, complex128_t>(space->dtype, [=](auto x) { fill_complex<decltype(x)>(space); });
}
