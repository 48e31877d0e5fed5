/* Statistics and normalisation of channels; see normalization.h. Sums run in lanes (lane_sums.h) in the precision of the
 * type, and in double precision beyond SUMMED elements.
 */
#include "vector_functions.h"
#include "lane_sums.h"

/* sum((x - shift)**2) */
INLINE double NAME(line_squares)(const REAL *x, int64_t n, REAL shift) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(lanes_t) first = {0}, second = {0};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            const NAME(lanes_t) a = *(const NAME(unaligned_t) *)(x + i) - shift;
            const NAME(lanes_t) b = *(const NAME(unaligned_t) *)(x + i + LANES) - shift;
            first += a * a;
            second += b * b;
        }
        double rest = 0;
        for (; i < end; i++)
            rest += (x[i] - shift) * (x[i] - shift);
        first += second;
        total += NAME(joined)(&first) + rest;
    }
    return total;
}

/* sum(a) and sum(a * (x - shift)) for a = grad * weight; weight may be NULL. */
INLINE void NAME(line_products)(const REAL *grad, const REAL *x, const REAL *weight, int64_t n, REAL shift, double *sum,
                                double *product) {
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(lanes_t) sums = {0}, products = {0}, more = {0}, others = {0};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            NAME(lanes_t) a = *(const NAME(unaligned_t) *)(grad + i), b = *(const NAME(unaligned_t) *)(grad + i + LANES);
            if (weight) {
                a *= *(const NAME(unaligned_t) *)(weight + i);
                b *= *(const NAME(unaligned_t) *)(weight + i + LANES);
            }
            sums += a;
            more += b;
            products += a * (*(const NAME(unaligned_t) *)(x + i) - shift);
            others += b * (*(const NAME(unaligned_t) *)(x + i + LANES) - shift);
        }
        double rest = 0, slope = 0;
        for (; i < end; i++) {
            const REAL value = weight ? grad[i] * weight[i] : grad[i];
            rest += value;
            slope += value * (x[i] - shift);
        }
        sums += more;
        products += others;
        *sum += NAME(joined)(&sums) + rest;
        *product += NAME(joined)(&products) + slope;
    }
}

INLINE void NAME(affine_line)(const REAL *x, REAL center, REAL factor, REAL shift, REAL *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - center) * factor + shift;
}

/* The place in weight and bias of the first segment of a row. */
INLINE int64_t NAME(first_segment)(const channels_t *c, int64_t channel) {
    return channel % c->groups * c->segments;
}

static void NAME(normalize)(const channels_t *c, int64_t channel, const REAL *x, const REAL *weight, const REAL *bias,
                            REAL *result, REAL *mean, REAL *rstd, REAL *variance) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double total = 0;
    x += start;
    result += start;
    for (int64_t line = 0; line < c->outer; line++)
        total += NAME(sum_of)(x + line * stride, NULL, c->inner);
    const REAL center = (REAL)(total / count);
    total = 0;
    for (int64_t line = 0; line < c->outer; line++)
        total += NAME(line_squares)(x + line * stride, c->inner, center);
    const double spread = total / count;
    const REAL scale = (REAL)(1 / sqrt(spread + c->eps));
    mean[channel] = center;
    rstd[channel] = scale;
    variance[channel] = (REAL)spread;
    if (c->by_channel) {
        const REAL factor = weight ? scale * weight[channel] : scale, shift = bias ? bias[channel] : 0;
        for (int64_t line = 0; line < c->outer; line++)
            NAME(affine_line)(x + line * stride, center, factor, shift, result + line * stride, c->inner);
    } else if (c->segments) {
        const int64_t first = NAME(first_segment)(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++)
            NAME(affine_line)(x + k * length, center, weight ? scale * weight[first + k] : scale,
                              bias ? bias[first + k] : 0, result + k * length, length);
    } else if (weight && bias) {
        INDEPENDENT
        for (int64_t i = 0; i < c->inner; i++)
            result[i] = (x[i] - center) * scale * weight[i] + bias[i];
    } else if (weight) {
        INDEPENDENT
        for (int64_t i = 0; i < c->inner; i++)
            result[i] = (x[i] - center) * scale * weight[i];
    } else {
        INDEPENDENT
        for (int64_t i = 0; i < c->inner; i++)
            result[i] = (x[i] - center) * scale + (bias ? bias[i] : 0);
    }
}

/* sum(a * (x - mean)) * rstd and sum(a) of a channel, for a = grad * weight where rows have a weight. */
INLINE void NAME(channel_sums)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x, const REAL *weight,
                               REAL mean, REAL rstd, double *along, double *total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    double product = 0, sum = 0;
    if (weight && c->segments) {
        const int64_t first = NAME(first_segment)(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++) {
            double one = 0, other = 0;
            NAME(line_products)(grad + start + k * length, x + start + k * length, NULL, length, mean, &one, &other);
            sum += one * weight[first + k];
            product += other * weight[first + k];
        }
    } else if (weight) {
        NAME(line_products)(grad + start, x + start, weight, c->inner, mean, &sum, &product);
    } else {
        for (int64_t line = 0; line < c->outer; line++)
            NAME(line_products)(grad + start + line * stride, x + start + line * stride, NULL, c->inner, mean, &sum,
                                &product);
    }
    *along = product * rstd;
    *total = sum;
}

static void NAME(normalize_sums)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x,
                                 const REAL *mean, const REAL *rstd, REAL *along, REAL *total) {
    double first, second;
    NAME(channel_sums)(c, channel, grad, x, NULL, mean[channel], rstd[channel], &first, &second);
    along[channel] = (REAL)first;
    total[channel] = (REAL)second;
}

/* to = factor * (grad * weight - average - (x - center) * slope) */
INLINE void NAME(backward_line)(const REAL *grad, const REAL *x, REAL weight, REAL factor, REAL average, REAL center,
                                REAL slope, REAL *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = factor * (grad[i] * weight - average - (x[i] - center) * slope);
}

/* rstd * (a - average(a) - normal * average(a * normal)), where normal = (x - mean) * rstd. */
static void NAME(normalize_backward)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x,
                                     const REAL *weight, const REAL *mean, const REAL *rstd, REAL *result) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    const REAL center = mean[channel], scale = rstd[channel];
    const REAL *each = c->by_channel ? NULL : weight;
    double along, total;
    NAME(channel_sums)(c, channel, grad, x, each, center, scale, &along, &total);
    const REAL average = (REAL)(total / count), slope = (REAL)(along / count * scale);
    grad += start;
    x += start;
    result += start;
    if (each && c->segments) {
        const int64_t first = NAME(first_segment)(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++)
            NAME(backward_line)(grad + k * length, x + k * length, weight[first + k], scale, average, center, slope,
                                result + k * length, length);
    } else if (each) {
        INDEPENDENT
        for (int64_t i = 0; i < c->inner; i++)
            result[i] = scale * (grad[i] * each[i] - average - (x[i] - center) * slope);
    } else {
        const REAL factor = c->by_channel && weight ? scale * weight[channel] : scale;
        for (int64_t line = 0; line < c->outer; line++)
            NAME(backward_line)(grad + line * stride, x + line * stride, 1, factor, average, center, slope,
                                result + line * stride, c->inner);
    }
}

/* Sums of grad * (x - mean) * rstd over the rows [begin, end), for each of `inner` columns. */
static void NAME(normalize_rows)(const channels_t *c, int64_t begin, int64_t end, const REAL *grad, const REAL *x,
                                 const REAL *mean, const REAL *rstd, REAL *along) {
    const int64_t n = c->inner;
    for (int64_t i = 0; i < n; i++)
        along[i] = 0;
    int64_t row = begin;
    for (; row + 2 <= end; row += 2) {
        const REAL *g = grad + row * n, *from = x + row * n;
        const REAL center = mean[row], scale = rstd[row], other_center = mean[row + 1], other_scale = rstd[row + 1];
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            along[i] += g[i] * ((from[i] - center) * scale) + g[n + i] * ((from[n + i] - other_center) * other_scale);
    }
    for (; row < end; row++) {
        const REAL *g = grad + row * n, *from = x + row * n;
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            along[i] += g[i] * ((from[i] - mean[row]) * rstd[row]);
    }
}

/* sum(grad * (x - mean)) * rstd for each segment of a row */
static void NAME(normalize_segments)(const channels_t *c, int64_t row, const REAL *grad, const REAL *x, const REAL *mean,
                                     const REAL *rstd, REAL *along) {
    const int64_t length = c->inner / c->segments;
    for (int64_t k = 0; k < c->segments; k++) {
        const int64_t at = row * c->inner + k * length;
        double sum = 0, product = 0;
        NAME(line_products)(grad + at, x + at, NULL, length, mean[row], &sum, &product);
        along[k] = length ? (REAL)(product * rstd[row]) : 0;       /* without elements there is no deviation */
    }
}

#include "normalization_columns.h"
