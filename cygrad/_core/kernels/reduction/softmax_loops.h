/* Loops of softmax, log_softmax and their derivatives; see softmax_rows.h. */
#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* out = exp(x - shift) for x <= shift; return the sum. Unless `all`, out is a buffer of SUMMED elements. */
INLINE double NAME(shifted_powers)(const REAL *x, REAL shift, REAL *out, int64_t n, int all) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t count = n - begin < SUMMED ? n - begin : SUMMED;
        const REAL *from = x + begin;
        REAL *to = all ? out + begin : out;
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            to[i] = NAME(decay)(from[i] - shift);
        total += NAME(sum_of)(to, NULL, count);
    }
    return total;
}

static void NAME(softmax_rows)(const REAL *x, const REAL *unused, REAL *out, int64_t n, int64_t rows) {
    for (int64_t k = 0; k < rows; k++, x += n, out += n) {
        const REAL factor = (REAL)(1 / NAME(shifted_powers)(x, NAME(largest)(x, n), out, n, 1));
        for (int64_t i = 0; i < n; i++)
            out[i] *= factor;
    }
}

/* Return the logarithm of a sum of exponentials whose largest is 1; nan stays. */
INLINE REAL NAME(logarithm_of_total)(double total) {
    const REAL rounded = (REAL)total, value = NAME(logarithm)(rounded, (REAL)(total - rounded));
    return rounded < (REAL)INFINITY ? value : rounded;
}

/* Vectorize the logarithms of several rows that stay in the cache. */
static void NAME(log_softmax_rows)(const REAL *x, const REAL *unused, REAL *out, int64_t n, int64_t rows) {
    REAL powers[SUMMED], shift[ROWS], logarithm[ROWS];
    double totals[ROWS];
    const int64_t most = n < SUMMED / ROWS ? ROWS : n < SUMMED ? SUMMED / n : 1;
    for (int64_t first = 0; first < rows; first += most, x += most * n, out += most * n) {
        const int64_t count = rows - first < most ? rows - first : most;
        for (int64_t k = 0; k < count; k++) {
            const REAL *row = x + k * n;
            shift[k] = NAME(largest)(row, n);
            totals[k] = NAME(shifted_powers)(row, shift[k], powers, n, 0);
        }
        for (int64_t k = 0; k < count; k++)
            logarithm[k] = NAME(logarithm_of_total)(totals[k]);
        for (int64_t k = 0; k < count; k++) {
            INDEPENDENT
            for (int64_t i = k * n; i < k * n + n; i++)
                out[i] = (x[i] - shift[k]) - logarithm[k];
        }
    }
}

static void NAME(softmax_backward_rows)(const REAL *grad, const REAL *result, REAL *out, int64_t n, int64_t rows) {
    for (int64_t k = 0; k < rows; k++, grad += n, result += n, out += n) {
        const REAL total = (REAL)NAME(sum_of)(grad, result, n);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            out[i] = (grad[i] - total) * result[i];
    }
}

static void NAME(log_softmax_backward_rows)(const REAL *grad, const REAL *result, REAL *out, int64_t n,
                                            int64_t rows) {
    for (int64_t k = 0; k < rows; k++, grad += n, result += n, out += n) {
        const REAL total = (REAL)NAME(sum_of)(grad, NULL, n);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            out[i] = grad[i] - NAME(exponential)(result[i]) * total;
    }
}

static void NAME(scaled_exponentials)(const REAL *x, double factor, double less, REAL *out, int64_t n) {
    const REAL by = (REAL)factor, minus = (REAL)less;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = NAME(exponential)(x[i]) * by - minus;
}

/* Loops over `width` <= COLUMNS adjacent rows, whose elements are `stride` apart: a step handles one element of each.
   */
INLINE void NAME(largest_of_columns)(const REAL *x, int64_t n, int64_t stride, int64_t width, REAL *largest) {
    for (int64_t k = 0; k < width; k++)
        largest[k] = -(REAL)INFINITY;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            largest[k] = largest[k] > x[i * stride + k] ? largest[k] : x[i * stride + k];
}

static void NAME(softmax_columns)(const REAL *x, const REAL *unused, REAL *out, int64_t n, int64_t stride,
                                  int64_t width) {
    REAL shift[COLUMNS], factor[COLUMNS];
    double totals[COLUMNS] = {0};
    NAME(largest_of_columns)(x, n, stride, width, shift);
    for (int64_t i = 0; i < n; i++) {
        const REAL *from = x + i * stride;
        REAL *to = out + i * stride;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++) {
            const REAL power = NAME(decay)(from[k] - shift[k]);
            to[k] = power;
            totals[k] += power;
        }
    }
    for (int64_t k = 0; k < width; k++)
        factor[k] = (REAL)(1 / totals[k]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] *= factor[k];
}

static void NAME(log_softmax_columns)(const REAL *x, const REAL *unused, REAL *out, int64_t n, int64_t stride,
                                      int64_t width) {
    REAL shift[COLUMNS], logarithm[COLUMNS];
    double totals[COLUMNS] = {0};
    NAME(largest_of_columns)(x, n, stride, width, shift);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += NAME(decay)(x[i * stride + k] - shift[k]);
    for (int64_t k = 0; k < width; k++)
        logarithm[k] = NAME(logarithm_of_total)(totals[k]);
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = (x[i * stride + k] - shift[k]) - logarithm[k];
    }
}

static void NAME(softmax_backward_columns)(const REAL *grad, const REAL *result, REAL *out, int64_t n, int64_t stride,
                                           int64_t width) {
    double totals[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += grad[i * stride + k] * result[i * stride + k];
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = (grad[i * stride + k] - (REAL)totals[k]) * result[i * stride + k];
    }
}

static void NAME(log_softmax_backward_columns)(const REAL *grad, const REAL *result, REAL *out, int64_t n,
                                               int64_t stride, int64_t width) {
    double totals[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += grad[i * stride + k];
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = grad[i * stride + k] - NAME(exponential)(result[i * stride + k]) * (REAL)totals[k];
    }
}
