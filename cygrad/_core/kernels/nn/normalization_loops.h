/* Statistics and normalization of channels; see normalization.h. Sums run in lanes (lane_sums.h), in double precision
 * beyond SUMMED elements.
 */
#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* sum((x - shift)**2) */
INLINE double NAME(line_squares)(const REAL *x, int64_t n, REAL shift) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(part_t) sums[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES)
            for (int k = 0; k < 2 * PARTS; k++) {
                const NAME(part_t) a = *(const NAME(unaligned_t) *)(x + i + k * PART_LANES) - shift;
                sums[k] += a * a;
            }
        double rest = 0;
        for (; i < end; i++)
            rest += (x[i] - shift) * (x[i] - shift);
        for (int k = 0; k < PARTS; k++)
            sums[k] += sums[PARTS + k];
        total += NAME(joined)(sums) + rest;
    }
    return total;
}

/* sum(a) and sum(a * (x - shift)) for a = grad * weight; weight may be NULL. */
INLINE void NAME(line_products)(const REAL *grad, const REAL *x, const REAL *weight, int64_t n, REAL shift, double *sum,
                                double *product) {
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(part_t) sums[2 * PARTS] = {{0}}, products[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES)
            for (int k = 0; k < 2 * PARTS; k++) {
                NAME(part_t) a = *(const NAME(unaligned_t) *)(grad + i + k * PART_LANES);
                if (weight)
                    a *= *(const NAME(unaligned_t) *)(weight + i + k * PART_LANES);
                sums[k] += a;
                products[k] += a * (*(const NAME(unaligned_t) *)(x + i + k * PART_LANES) - shift);
            }
        double rest = 0, slope = 0;
        for (; i < end; i++) {
            const REAL value = weight ? grad[i] * weight[i] : grad[i];
            rest += value;
            slope += value * (x[i] - shift);
        }
        for (int k = 0; k < PARTS; k++) {
            sums[k] += sums[PARTS + k];
            products[k] += products[PARTS + k];
        }
        *sum += NAME(joined)(sums) + rest;
        *product += NAME(joined)(products) + slope;
    }
}

INLINE void NAME(affine_line)(const REAL *x, REAL center, REAL factor, REAL shift, REAL *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - center) * factor + shift;
}

/* Return the index in weight and bias of the first segment of a row. */
INLINE int64_t NAME(first_segment)(const channels_t *c, int64_t channel) {
    return channel % c->groups * c->segments;
}

static void NAME(normalize)(const channels_t *c, int64_t channel, const REAL *x, const REAL *weight, const REAL *bias,
                            REAL *result, REAL *mean, REAL *rstd, REAL *variance) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double elements = (double)c->outer * (double)c->inner, count = elements > 0 ? elements : 1;
    double total = 0;
    x += start;
    result += start;
    if (c->centered)
        for (int64_t line = 0; line < c->outer; line++)
            total += NAME(sum_of)(x + line * stride, NULL, c->inner);
    const REAL center = (REAL)(total / count);
    total = 0;
    for (int64_t line = 0; line < c->outer; line++)
        total += NAME(line_squares)(x + line * stride, c->inner, center);
    const double spread = total / count;
    const REAL scale = (REAL)(1 / sqrt(spread + c->eps));
    rstd[channel] = scale;
    if (c->centered) {
        mean[channel] = center;
        variance[channel] = (REAL)spread;
    }
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

/* sum(a * (x - mean)) * rstd and sum(a) of a channel, for a = grad * weight of rows with a weight; for segments also
 * the sums without weight. */
INLINE void NAME(channel_sums)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x, const REAL *weight,
                               REAL mean, REAL rstd, double *along, double *total, REAL *each_along, REAL *each_total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    double product = 0, sum = 0;
    if (c->segments) {
        const int64_t first = NAME(first_segment)(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++) {
            double one = 0, other = 0;
            NAME(line_products)(grad + start + k * length, x + start + k * length, NULL, length, mean, &one, &other);
            sum += weight ? one * weight[first + k] : one;
            product += weight ? other * weight[first + k] : other;
            if (each_along)
                each_along[k] = length ? (REAL)(other * rstd) : 0;    /* empty rows have no deviation */
            if (each_total)
                each_total[k] = (REAL)one;
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
    NAME(channel_sums)(c, channel, grad, x, NULL, mean ? mean[channel] : 0, rstd[channel], &first, &second, NULL, NULL);
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

/* Backward of a channel, or of a row with segments: rstd * (a - mean(a) - normal * mean(a * normal)), where normal =
 * (x - mean) * rstd; and the sums of grad * normal and of grad, per channel or segment. */
static void NAME(normalize_backward)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x,
                                     const REAL *weight, const REAL *mean, const REAL *rstd, REAL *result, REAL *along,
                                     REAL *total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    const REAL center = mean ? mean[channel] : 0, scale = rstd[channel];
    double product, sum;
    NAME(channel_sums)(c, channel, grad, x, c->by_channel ? NULL : weight, center, scale, &product, &sum,
                       along ? along + channel * c->segments : NULL, total ? total + channel * c->segments : NULL);
    if (along && c->by_channel)
        along[channel] = (REAL)product;
    if (total && c->by_channel)
        total[channel] = (REAL)sum;
    if (!result)
        return;
    const REAL average = c->centered ? (REAL)(sum / count) : 0, slope = (REAL)(product / count * scale);
    grad += start;
    x += start;
    result += start;
    if (c->segments) {
        const int64_t first = NAME(first_segment)(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++)
            NAME(backward_line)(grad + k * length, x + k * length, weight ? weight[first + k] : 1, scale, average, center,
                                slope, result + k * length, length);
    } else {
        const REAL factor = weight ? scale * weight[channel] : scale;
        for (int64_t line = 0; line < c->outer; line++)
            NAME(backward_line)(grad + line * stride, x + line * stride, 1, factor, average, center, slope,
                                result + line * stride, c->inner);
    }
}

/* A row with its statistics. */
typedef struct {
    const REAL *grad, *x;
    REAL *result, center, scale, average, slope;
} NAME(row_t);

INLINE NAME(row_t) NAME(row)(const channels_t *c, int64_t row, const REAL *grad, const REAL *x, const REAL *weight,
                             const REAL *mean, const REAL *rstd, REAL *result) {
    const int64_t start = row * c->inner;
    NAME(row_t) made = {grad + start, x + start, result ? result + start : NULL, mean ? mean[row] : 0, rstd[row], 0, 0};
    if (result) {
        double sum = 0, product = 0;
        NAME(line_products)(made.grad, made.x, weight, c->inner, made.center, &sum, &product);
        made.average = c->centered ? (REAL)(sum / (double)c->inner) : 0;
        made.slope = (REAL)(product * made.scale / (double)c->inner * made.scale);
    }
    return made;
}

/* Process one or two rows. The flags are compile-time constants of the callers. */
INLINE void NAME(backward_rows)(const NAME(row_t) *a, const NAME(row_t) *b, const int two, const REAL *weight,
                                const int weighted, const int made, const int summed, REAL *along, REAL *total,
                                int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const REAL grad = a->grad[i], away = a->x[i] - a->center;
        const REAL grad_b = two ? b->grad[i] : 0, away_b = two ? b->x[i] - b->center : 0;
        if (made)
            a->result[i] = a->scale * ((weighted ? grad * weight[i] : grad) - a->average - away * a->slope);
        if (made && two)
            b->result[i] = b->scale * ((weighted ? grad_b * weight[i] : grad_b) - b->average - away_b * b->slope);
        if (summed) {
            along[i] += two ? grad * (away * a->scale) + grad_b * (away_b * b->scale) : grad * (away * a->scale);
            total[i] += two ? grad + grad_b : grad;
        }
    }
}

/* Backward of rows [begin, end), in one pass: the gradient of the input, and the sums of grad * normal and of grad
 * for each of `inner` columns (both or neither). NULL: not requested. */
static void NAME(normalize_backward_rows)(const channels_t *c, int64_t begin, int64_t end, const REAL *grad,
                                          const REAL *x, const REAL *weight, const REAL *mean, const REAL *rstd,
                                          REAL *result, REAL *along, REAL *total) {
    const int64_t n = c->inner;
    for (int64_t i = 0; along && i < n; i++)
        along[i] = total[i] = 0;
    for (int64_t row = begin; row < end; row += 2) {
        const int two = row + 1 < end;
        const NAME(row_t) a = NAME(row)(c, row, grad, x, weight, mean, rstd, result);
        const NAME(row_t) b = two ? NAME(row)(c, row + 1, grad, x, weight, mean, rstd, result) : a;
#define ROWS(two, weighted, made, summed) \
        NAME(backward_rows)(&a, &b, two, weight, weighted, made, summed, along, total, n)
#define EITHER(weighted, made, summed) do { \
            if (two) ROWS(1, weighted, made, summed); else ROWS(0, weighted, made, summed); \
        } while (0)
        if (!result)
            EITHER(0, 0, 1);
        else if (along && weight)
            EITHER(1, 1, 1);
        else if (along)
            EITHER(0, 1, 1);
        else if (weight)
            EITHER(1, 1, 0);
        else
            EITHER(0, 1, 0);
#undef EITHER
#undef ROWS
    }
}

#include "kernels/nn/normalization_columns.h"
