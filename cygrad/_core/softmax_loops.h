/* Rows of softmax, its logarithm and their derivatives; see softmax_rows.h. */
#include "vector_functions.h"
#include "lane_sums.h"

/* out = exp(x - shift); -> the sum. No x is larger than the shift. */
INLINE double NAME(shifted_powers)(const REAL *x, REAL shift, REAL *out, int64_t n) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        INDEPENDENT
        for (int64_t i = begin; i < end; i++)
            out[i] = NAME(decay)(x[i] - shift);
        total += NAME(sum_of)(out + begin, NULL, end - begin);
    }
    return total;
}

static void NAME(softmax_row)(const REAL *x, const REAL *unused, REAL *out, int64_t n) {
    const REAL factor = (REAL)(1 / NAME(shifted_powers)(x, NAME(largest)(x, n), out, n));
    for (int64_t i = 0; i < n; i++)
        out[i] *= factor;
}

static void NAME(log_softmax_row)(const REAL *x, const REAL *unused, REAL *out, int64_t n) {
    const REAL shift = NAME(largest)(x, n);
    REAL powers[SUMMED];
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED)
        total += NAME(shifted_powers)(x + begin, shift, powers, n - begin < SUMMED ? n - begin : SUMMED);
    const REAL logarithm = (REAL)log(total);
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - shift) - logarithm;
}

static void NAME(softmax_backward_row)(const REAL *grad, const REAL *result, REAL *out, int64_t n) {
    const REAL total = (REAL)NAME(sum_of)(grad, result, n);
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (grad[i] - total) * result[i];
}

static void NAME(log_softmax_backward_row)(const REAL *grad, const REAL *result, REAL *out, int64_t n) {
    const REAL total = (REAL)NAME(sum_of)(grad, NULL, n);
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = grad[i] - NAME(exponential)(result[i]) * total;
}

/* The same for `width` <= COLUMNS neighbouring rows, of which element i lies i * stride further: each line of the loops is
 * one step for all of them. */
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
        logarithm[k] = (REAL)log(totals[k]);
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
