// The loops of scans.

#include "kernels/reduction/scan_loops.h"

#include <math.h>
#include <algorithm>
#include "arrays/element_types.h"
#include "simd/fetch.h"

namespace {

enum {
    LINES = 4,             // adjacent rows processed together
    SHORT_ROW = 1024,      // elements up to which the rows that follow are prefetched
    FETCHED = 8            // elements of a row after which it is prefetched again
};

// Totals of float32 are kept in double.
template <class T> struct total_of { typedef double type; };
template <> struct total_of<int64_t> { typedef int64_t type; };
template <> struct total_of<complex64_t> { typedef complex128_t type; };
template <> struct total_of<complex128_t> { typedef complex128_t type; };

// Prefetch the element at the same position of the rows that follow, in the direction of `ahead`.
template <class T>
inline void fetch_ahead(const T *memory, int64_t at, int64_t n, int64_t ahead, int64_t lines, int written) {
    for (int64_t k = 0; k < lines; k++)
        fetch((const char *)(memory + at + (k + ahead) * n), 1, written);
}

// Scan COUNT adjacent rows together, because each step of a row waits for the one before.
template <bool EXCLUSIVE, bool MULTIPLIES, int COUNT, class T>
void scan_lines(const T *x, T *out, int64_t n, bool reverse) {
    typedef typename total_of<T>::type total;
    total totals[COUNT];
    const int64_t step = reverse ? -1 : 1;
    int64_t at = reverse ? n - 1 : 0;
    for (int k = 0; k < COUNT; k++)
        totals[k] = MULTIPLIES ? 1 : 0;
    for (int64_t i = 0; i < n; i++, at += step) {
        if (i % FETCHED == 0 && n <= SHORT_ROW) {
            fetch_ahead(x, at, n, LINES * step, COUNT, 0);
            fetch_ahead(out, at, n, LINES * step, COUNT, 1);
        }
        for (int k = 0; k < COUNT; k++) {
            if (EXCLUSIVE)
                out[at + k * n] = (T)totals[k];
            totals[k] = MULTIPLIES ? (total)(wrapping(totals[k]) * wrapping((total)x[at + k * n]))
                                   : (total)(wrapping(totals[k]) + wrapping((total)x[at + k * n]));
            if (!EXCLUSIVE)
                out[at + k * n] = (T)totals[k];
        }
    }
}

template <bool EXCLUSIVE, bool MULTIPLIES, class T>
void scan_rows(const T *x, T *out, int64_t n, bool reverse, int64_t rows) {
    if (rows == LINES)
        scan_lines<EXCLUSIVE, MULTIPLIES, LINES>(x, out, n, reverse);
    else
        for (int64_t row = 0; row < rows; row++)
            scan_lines<EXCLUSIVE, MULTIPLIES, 1>(x + row * n, out + row * n, n, reverse);
}

// Exclusive products of a row of float32, four elements at a time, whose products do not overflow in double.
void product_by_fours(const float *x, float *out, int64_t n, int64_t step) {
    double running = 1;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, x += 4 * step, out += 4 * step) {
        const double pair = (double)x[0] * x[step];
        out[0] = (float)running;
        out[step] = (float)(running * x[0]);
        out[2 * step] = (float)(running * pair);
        out[3 * step] = (float)(running * (pair * x[2 * step]));
        running = running * (pair * ((double)x[2 * step] * x[3 * step]));
    }
    for (; i < n; i++, x += step, out += step) {
        out[0] = (float)running;
        running = running * x[0];
    }
}

template <class T> void cumulate_tiles(const scan_t *work, int64_t begin, int64_t end) {
    typedef typename total_of<T>::type total;
    const T *x = (const T *)work->self;
    T *out = (T *)work->out;
    total totals[SCAN_COLUMNS];
    const int64_t n = work->n, inner = work->inner;
    const bool exclusive = work->operation >= PRODUCT_BEFORE, multiplies = exclusive || work->operation == CUMPROD;
    const bool reverse = work->operation == CUMSUM_REVERSE || work->operation == PRODUCT_AFTER;
    const bool few = work->outer < LINES;
    for (int64_t item = begin, lines; item < end; item += lines) {
        lines = inner == 1 && !few ? std::min<int64_t>(end - item, LINES) : 1;
        // From the last one if reverse: processors prefetch along addresses that change in one direction.
        const int64_t first = reverse ? begin + end - item - lines : item;
        const int64_t column = first % work->tiles * work->width, width = std::min(work->width, inner - column);
        const int64_t at = first / work->tiles * n * inner + column;
        if constexpr (std::is_same_v<T, float>)
            if (inner == 1 && exclusive && few) {
                product_by_fours(x + at + (reverse ? n - 1 : 0), out + at + (reverse ? n - 1 : 0), n, reverse ? -1 : 1);
                continue;
            }
        if (inner == 1) {
            (exclusive ? scan_rows<true, true, T> : multiplies ? scan_rows<false, true, T> : scan_rows<false, false, T>)(
                x + at, out + at, n, reverse, lines);
            continue;
        }
        for (int64_t k = 0; k < width; k++)
            totals[k] = multiplies ? 1 : 0;
        for (int64_t i = 0; i < n; i++) {
            const T *source = x + at + (reverse ? n - 1 - i : i) * inner;
            T *line = out + (source - x);
            if (exclusive)
                for (int64_t k = 0; k < width; k++) {
                    line[k] = (T)totals[k];
                    totals[k] = (total)(wrapping(totals[k]) * wrapping((total)source[k]));
                }
            else if (multiplies)
                for (int64_t k = 0; k < width; k++) {
                    totals[k] = (total)(wrapping(totals[k]) * wrapping((total)source[k]));
                    line[k] = (T)totals[k];
                }
            else
                for (int64_t k = 0; k < width; k++) {
                    totals[k] = (total)(wrapping(totals[k]) + wrapping((total)source[k]));
                    line[k] = (T)totals[k];
                }
        }
    }
}

template <class T> void join(T *before, const T *after, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        const T x = before[i], y = after[i];
        T result = (T)(wrapping(x) * wrapping(y));
        if constexpr (std::is_floating_point_v<T>)
            // Only 0 * inf makes a new nan; no branch, so that the loop is vectorized.
            result = ((result != result) & (x == x) & (y == y)) ? 0 : result;
        else if constexpr (is_complex<T>)
            if (result != result && ((x == (T)0 && (isinf(__real__ y) || isinf(__imag__ y))) ||
                                     (y == (T)0 && (isinf(__real__ x) || isinf(__imag__ x)))))
                result = 0;
        before[i] = result;
    }
}

template <bool LARGEST, class T> void extrema(const scan_t *work, int64_t begin, int64_t end) {
    const T *x = (const T *)work->self;
    T *out = (T *)work->out;
    int64_t *indices = work->indices;
    const int64_t n = work->n, inner = work->inner;
    // The only comparison that is true for nan.
    const auto is_better = [](T value, T best) __attribute__((always_inline)) {
        return (LARGEST ? value >= best : value <= best) || value != value;
    };
    for (int64_t row = begin, width; row < end; row += width) {
        int64_t at = row / inner * n * inner + row % inner;
        width = std::min(inner - row % inner, end - row);
        if (inner == 1) {
            // A new extremum is rare: a branch takes less time than to wait for each comparison.
            for (int64_t i = 0; i < n;) {
                const T best = x[at + i];
                const int64_t place = i;
                do {
                    out[at + i] = best;
                    indices[at + i] = place;
                    i++;
                } while (i < n && !is_better(x[at + i], best));
            }
            continue;
        }
        for (int64_t k = at; k < at + width; k++) {
            out[k] = x[k];
            indices[k] = 0;
        }
        for (int64_t i = 1; i < n; i++) {
            at += inner;
            for (int64_t k = at; k < at + width; k++) {
                const T best = out[k - inner], value = x[k];
                const bool better = is_better(value, best);
                out[k] = better ? value : best;
                indices[k] = better ? i : indices[k - inner];
            }
        }
    }
}

// log(exp(a) + exp(b))
inline double log_sum(double a, double b) {
    const double low = b < a ? b : a, high = b < a ? a : b;
    if (high == INFINITY || high == -INFINITY)
        return high + 0 * (low == low ? 0 : low);
    return high + log1p(exp(low - high));
}

template <class T> void exponentials(const scan_t *work, int64_t begin, int64_t end) {
    const T *x = (const T *)work->self;
    T *out = (T *)work->out;
    const int64_t n = work->n, inner = work->inner;
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row / inner * n * inner + row % inner;
        double total = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            total = log_sum(total, x[at + i * inner]);
            out[at + i * inner] = (T)total;
        }
    }
}

// SCAN_STEPS lines together, because each step waits for the one before.
template <class T> void recurrence(const scan_t *work, int64_t begin, int64_t end) {
    const T *input = (const T *)work->self, *coefficient = (const T *)work->other;
    T *result = (T *)work->out;
    const bool reverse = work->flag;
    const int64_t n = work->n, inner = work->inner, step = reverse ? -inner : inner;
    // Reversed, the coefficient belongs to the element before.
    const int64_t before = reverse ? 0 : step;
    int64_t at[SCAN_STEPS];
    T last[SCAN_STEPS];
    while (begin < end) {
        const int64_t count = std::min<int64_t>(SCAN_STEPS, end - begin);
        if (reverse)
            end -= count;
        for (int64_t k = 0; k < count; k++) {
            const int64_t row = (reverse ? end : begin) + k;
            at[k] = row / inner * n * inner + row % inner + (reverse ? (n - 1) * inner : 0);
            last[k] = result[at[k]] = input[at[k]];
        }
        for (int64_t i = 1; i < n; i++) {
            if (i % FETCHED == 0 && inner == 1 && n <= SHORT_ROW) {
                fetch_ahead(input, at[0], n, SCAN_STEPS * step, count, 0);
                fetch_ahead(coefficient, at[0], n, SCAN_STEPS * step, count, 0);
                fetch_ahead(result, at[0], n, SCAN_STEPS * step, count, 1);
            }
            for (int64_t k = 0; k < (count == SCAN_STEPS ? SCAN_STEPS : count); k++) {
                const T factor = coefficient[at[k] + before];
                at[k] += step;
                last[k] = factor != (T)0 ? input[at[k]] + factor * last[k] : input[at[k]];
                result[at[k]] = last[k];
            }
        }
        if (!reverse)
            begin += count;
    }
}

}  // namespace

void cumulate(void *context, int64_t begin, int64_t end) {
    const scan_t *work = (const scan_t *)context;
    for_dtype<int64_t, float, double, complex64_t, complex128_t>(
        work->dtype, [=](auto x) { cumulate_tiles<decltype(x)>(work, begin, end); });
}

void join_sides(void *context, int64_t begin, int64_t end) {
    const scan_t *work = (const scan_t *)context;
    for_dtype<int64_t, float, double, complex64_t, complex128_t>(work->dtype, [=](auto x) {
        join((decltype(x) *)work->out, (const decltype(x) *)work->other, begin, end);
    });
}

void scan_extrema(void *context, int64_t begin, int64_t end) {
    const scan_t *work = (const scan_t *)context;
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
        work->dtype, [=](auto x) {
            (work->flag ? extrema<true, decltype(x)> : extrema<false, decltype(x)>)(work, begin, end);
        });
}

void scan_exponentials(void *context, int64_t begin, int64_t end) {
    const scan_t *work = (const scan_t *)context;
    for_dtype<float, double>(work->dtype, [=](auto x) { exponentials<decltype(x)>(work, begin, end); });
}

void recur(void *context, int64_t begin, int64_t end) {
    const scan_t *work = (const scan_t *)context;
    for_dtype<float, double, complex64_t, complex128_t>(
        work->dtype, [=](auto x) { recurrence<decltype(x)>(work, begin, end); });
}
