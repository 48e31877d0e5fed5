/* Sums and maxima of rows of a table, and the gradients of sums; see gather.pyx. Rows are given by byte offsets,
 * negative for skipped rows. Sums are split into parts of a few rows. */
#ifndef CYGRAD_BAG_PARTS
#define CYGRAD_BAG_PARTS
#include "simd/fetch.h"
enum { MEMBERS = 64, COLUMNS = 256 };
#endif

#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* out = the sum of n rows (and `out`), several lanes at a time, so that sums stay in registers. */
INLINE void NAME(add_rows)(const char *table, const int64_t *offsets, const REAL *factors, int64_t n, int64_t m,
                          REAL *out, int more) {
    int64_t c = 0;
    for (; c + 4 * LANES <= m; c += 4 * LANES) {
        NAME(part_t) sums[4 * PARTS] = {{0}};
        for (int64_t r = 0; r < n; r++) {
            if (offsets[r] < 0)
                continue;
            const REAL *row = (const REAL *)(table + offsets[r]) + c;
            for (int k = 0; k < 4 * PARTS; k++) {
                const NAME(part_t) x = *(const NAME(unaligned_t) *)(row + k * PART_LANES);
                sums[k] += factors ? x * factors[r] : x;
            }
        }
        for (int k = 0; k < 4 * PARTS; k++) {
            NAME(unaligned_t) *whole = (NAME(unaligned_t) *)(out + c + k * PART_LANES);
            *whole = more ? (NAME(part_t))(*whole + sums[k]) : sums[k];
        }
    }
    if (c < m) {
        const int64_t rest = m - c;
        REAL sums[4 * LANES] = {0};
        for (int64_t r = 0; r < n; r++) {
            if (offsets[r] < 0)
                continue;
            const REAL *row = (const REAL *)(table + offsets[r]) + c;
            for (int64_t j = 0; j < rest; j++)
                sums[j] += factors ? row[j] * factors[r] : row[j];
        }
        for (int64_t j = 0; j < rest; j++)
            out[c + j] = more ? out[c + j] + sums[j] : sums[j];
    }
}

/* out = the sum or mean of `count` rows, times their factors unless NULL. */
static void NAME(bag_sum)(const char *table, const int64_t *offsets, const REAL *factors, int64_t count, int64_t m,
                          int mean, REAL *out) {
    int64_t members = 0;
    for (int64_t i = 0; i == 0 || i < count; i += MEMBERS) {
        const int64_t n = count - i < MEMBERS ? count - i : MEMBERS;
        if (factors)
            NAME(add_rows)(table, offsets + i, factors + i, n, m, out, i > 0);
        else
            NAME(add_rows)(table, offsets + i, NULL, n, m, out, i > 0);
    }
    for (int64_t i = 0; mean && i < count; i++)
        members += offsets[i] >= 0;
    if (members > 1)
        for (int64_t c = 0; c < m; c++)
            out[c] /= members;
}

/* Add the gradient of bag_sum with respect to the table to its rows, in order. */
static void NAME(bag_spread)(char *table, const int64_t *offsets, const REAL *factors, int64_t count, int64_t m,
                             int mean, const REAL *grad) {
    REAL share[COLUMNS];
    int64_t members = 0;
    for (int64_t i = 0; i < count; i++)
        members += offsets[i] >= 0;
    for (int64_t c = 0; c < m; c += COLUMNS) {
        const int64_t n = m - c < COLUMNS ? m - c : COLUMNS;
        for (int64_t j = 0; j < n; j++)
            share[j] = mean ? grad[c + j] / members : grad[c + j];
        for (int64_t i = 0; i < count; i++) {
            if (i + 4 < count && offsets[i + 4] >= 0)
                fetch(table + offsets[i + 4] + c * sizeof(REAL), n * sizeof(REAL), 1);
            if (offsets[i] < 0)
                continue;
            REAL *row = (REAL *)(table + offsets[i]) + c;
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
static void NAME(bag_products)(const char *table, const int64_t *offsets, int64_t count, int64_t m, int mean,
                               const REAL *grad, REAL *out) {
    int64_t members = 0;
    for (int64_t i = 0; i < count; i++) {
        members += offsets[i] >= 0;
        out[i] = offsets[i] < 0 ? 0 : (REAL)NAME(sum_of)(grad, (const REAL *)(table + offsets[i]), m);
    }
    if (mean && members > 1)
        for (int64_t i = 0; i < count; i++)
            out[i] /= members;
}

/* out = the maximum of each column, or its first nan; chosen = the first row that has it. Empty bags: 0 and -1. */
static void NAME(bag_maximum)(const char *table, const int64_t *offsets, int64_t count, int64_t m, int64_t row_size,
                              REAL *out, int64_t *chosen) {
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
        UNSIGNED places[COLUMNS];
        REAL best[COLUMNS];
        memcpy(best, (const REAL *)(table + offsets[first]) + c, n * sizeof(REAL));
        for (int64_t j = 0; j < n; j++)
            places[j] = (UNSIGNED)first;
        for (int64_t i = first + 1; i < count; i++) {
            if (offsets[i] < 0)
                continue;
            const REAL *row = (const REAL *)(table + offsets[i]) + c;
            for (int64_t j = 0; j < n; j++) {
                const REAL x = row[j], old = best[j];
                const int take = (!(x <= old)) & (old == old);             /* larger, or the first nan */
                best[j] = take ? x : old;
                places[j] = take ? (UNSIGNED)i : places[j];
            }
        }
        for (int64_t j = 0; j < n; j++) {
            out[c + j] = best[j];
            chosen[c + j] = row_size ? offsets[places[j]] / row_size : 0;
        }
    }
}
