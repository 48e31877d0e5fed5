/* Sums and maxima of rows of a table, and the gradients of sums; see gather.pyx. Rows are given by byte offsets,
 * negative for skipped rows. Sums are split into parts of a few rows. */
constexpr int MEMBERS = 64, COLUMNS = 256;

#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* out = the sum of n rows (and `out`), several lanes at a time, so that sums stay in registers. */
template <class T> INLINE void add_rows(const char *table, const int64_t *offsets, const T *factors, int64_t n,
                                        int64_t m, T *out, int more) {
    int64_t c = 0;
    for (; c + 4 * LANES<T> <= m; c += 4 * LANES<T>) {
        vector_t<T> sums[4 * PARTS] = {{0}};
        for (int64_t r = 0; r < n; r++) {
            if (offsets[r] < 0)
                continue;
            const T *row = (const T *)(table + offsets[r]) + c;
            for (int k = 0; k < 4 * PARTS; k++) {
                const vector_t<T> x = load<T>(row + k * VECTOR_LANES<T>);
                sums[k] += factors ? x * factors[r] : x;
            }
        }
        for (int k = 0; k < 4 * PARTS; k++) {
            T *const whole = out + c + k * VECTOR_LANES<T>;
            const vector_t<T> sum = more ? (vector_t<T>)(load<T>(whole) + sums[k]) : sums[k];
            memcpy(whole, &sum, sizeof sum);
        }
    }
    if (c < m) {
        const int64_t rest = m - c;
        T sums[4 * LANES<T>] = {0};
        for (int64_t r = 0; r < n; r++) {
            if (offsets[r] < 0)
                continue;
            const T *row = (const T *)(table + offsets[r]) + c;
            for (int64_t j = 0; j < rest; j++)
                sums[j] += factors ? row[j] * factors[r] : row[j];
        }
        for (int64_t j = 0; j < rest; j++)
            out[c + j] = more ? out[c + j] + sums[j] : sums[j];
    }
}

/* out = the sum or mean of `count` rows, times their factors unless NULL. */
template <class T> static void bag_sum(const char *table, const int64_t *offsets, const T *factors, int64_t count,
                                       int64_t m, int mean, T *out) {
    int64_t members = 0;
    for (int64_t i = 0; i == 0 || i < count; i += MEMBERS) {
        const int64_t n = count - i < MEMBERS ? count - i : MEMBERS;
        if (factors)
            add_rows<T>(table, offsets + i, factors + i, n, m, out, i > 0);
        else
            add_rows<T>(table, offsets + i, NULL, n, m, out, i > 0);
    }
    for (int64_t i = 0; mean && i < count; i++)
        members += offsets[i] >= 0;
    if (members > 1)
        for (int64_t c = 0; c < m; c++)
            out[c] /= members;
}

/* Add the gradient of bag_sum with respect to the table to its rows, in order. */
template <class T> static void bag_spread(char *table, const int64_t *offsets, const T *factors, int64_t count,
                                          int64_t m, int mean, const T *grad) {
    T share[COLUMNS];
    int64_t members = 0;
    for (int64_t i = 0; i < count; i++)
        members += offsets[i] >= 0;
    for (int64_t c = 0; c < m; c += COLUMNS) {
        const int64_t n = m - c < COLUMNS ? m - c : COLUMNS;
        for (int64_t j = 0; j < n; j++)
            share[j] = mean ? grad[c + j] / members : grad[c + j];
        for (int64_t i = 0; i < count; i++) {
            if (i + 4 < count && offsets[i + 4] >= 0)
                fetch(table + offsets[i + 4] + c * sizeof(T), n * sizeof(T), 1);
            if (offsets[i] < 0)
                continue;
            T *row = (T *)(table + offsets[i]) + c;
            if (factors)
                for (int64_t j = 0; j < n; j++)
                    row[j] += share[j] * factors[i];
            else
                for (int64_t j = 0; j < n; j++)
                    row[j] += share[j];
        }
    }
}

/* Compute the gradient of bag_sum with respect to the factors: products of the rows and the gradient. */
template <class T> static void bag_products(const char *table, const int64_t *offsets, int64_t count, int64_t m,
                                            int mean, const T *grad, T *out) {
    int64_t members = 0;
    for (int64_t i = 0; i < count; i++) {
        members += offsets[i] >= 0;
        out[i] = offsets[i] < 0 ? 0 : (T)sum_of<T>(grad, (const T *)(table + offsets[i]), m);
    }
    if (mean && members > 1)
        for (int64_t i = 0; i < count; i++)
            out[i] /= members;
}

/* out = the maximum of each column, or its first nan; chosen = the first row that has it. Empty bags: 0 and -1. */
template <class T> static void bag_maximum(const char *table, const int64_t *offsets, int64_t count, int64_t m,
                                           int64_t row_size, T *out, int64_t *chosen) {
    int64_t first = 0;
    while (first < count && offsets[first] < 0)
        first++;
    if (first == count) {
        for (int64_t c = 0; c < m; c++)
            out[c] = 0, chosen[c] = -1;
        return;
    }
    for (int64_t c = 0; c < m; c += COLUMNS) {
        const int64_t n = m - c < COLUMNS ? m - c : COLUMNS;
        bits_t<T> places[COLUMNS];
        T best[COLUMNS];
        memcpy(best, (const T *)(table + offsets[first]) + c, n * sizeof(T));
        for (int64_t j = 0; j < n; j++)
            places[j] = (bits_t<T>)first;
        for (int64_t i = first + 1; i < count; i++) {
            if (offsets[i] < 0)
                continue;
            const T *row = (const T *)(table + offsets[i]) + c;
            for (int64_t j = 0; j < n; j++) {
                const T x = row[j], old = best[j];
                const int take = (!(x <= old)) & (old == old);             /* larger, or the first nan */
                best[j] = take ? x : old;
                places[j] = take ? (bits_t<T>)i : places[j];
            }
        }
        for (int64_t j = 0; j < n; j++) {
            out[c + j] = best[j];
            chosen[c + j] = row_size ? offsets[places[j]] / row_size : 0;
        }
    }
}
