/* Statistics and normalization of channels; see normalization.h. Sums run in lanes (lane_sums.h), in double precision
 * beyond SUMMED elements.
 */
#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* sum((x - shift)**2) */
template <class T> INLINE double line_squares(const T *x, int64_t n, T shift) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        vector_t<T> sums[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES<T> <= end; i += 2 * LANES<T>)
            for (int k = 0; k < 2 * PARTS; k++) {
                const vector_t<T> a = load<T>(x + i + k * VECTOR_LANES<T>) - shift;
                sums[k] += a * a;
            }
        double rest = 0;
        for (; i < end; i++)
            rest += (x[i] - shift) * (x[i] - shift);
        for (int k = 0; k < PARTS; k++)
            sums[k] += sums[PARTS + k];
        total += joined<T>(sums) + rest;
    }
    return total;
}

/* sum(a) and sum(a * (x - shift)) for a = grad * weight; weight may be NULL. */
template <class T> INLINE void line_products(const T *grad, const T *x, const T *weight, int64_t n, T shift,
                                             double *sum, double *product) {
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        vector_t<T> sums[2 * PARTS] = {{0}}, products[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES<T> <= end; i += 2 * LANES<T>)
            for (int k = 0; k < 2 * PARTS; k++) {
                vector_t<T> a = load<T>(grad + i + k * VECTOR_LANES<T>);
                if (weight)
                    a *= load<T>(weight + i + k * VECTOR_LANES<T>);
                sums[k] += a;
                products[k] += a * (load<T>(x + i + k * VECTOR_LANES<T>) - shift);
            }
        double rest = 0, slope = 0;
        for (; i < end; i++) {
            const T value = weight ? grad[i] * weight[i] : grad[i];
            rest += value;
            slope += value * (x[i] - shift);
        }
        for (int k = 0; k < PARTS; k++) {
            sums[k] += sums[PARTS + k];
            products[k] += products[PARTS + k];
        }
        *sum += joined<T>(sums) + rest;
        *product += joined<T>(products) + slope;
    }
}

template <class T> INLINE void affine_line(const T *x, T center, T factor, T shift, T *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] - center) * factor + shift;
}

/* Return the index in weight and bias of the first segment of a row. */
template <class T> INLINE int64_t first_segment(const channels_t *c, int64_t channel) {
    return channel % c->groups * c->segments;
}

/* Reciprocal deviation of a channel in a wider type. */
template <class T> static T wide_rstd(const channels_t *c, int64_t channel, const T *x, T center) {
    long double total = 0;
    for (int64_t line = 0; line < c->outer; line++)
        for (int64_t i = 0; i < c->inner; i++) {
            const long double away = (long double)x[(line * c->channels + channel) * c->inner + i] - center;
            total += away * away;
        }
    const long double count = (long double)c->outer * c->inner;
    return (T)(1 / sqrtl(total / (count > 0 ? count : 1) + c->eps));
}

/* Reciprocal deviation from the mean square of a channel, again where squares in T over- or underflow. */
template <class T> INLINE T rstd_of(const channels_t *c, int64_t channel, const T *x, T center, double spread) {
    typedef std::numeric_limits<T> limits;
    const double exact = (double)(limits::min() / limits::epsilon() / limits::epsilon());
    if (spread > limits::max() || (spread < exact && c->eps < exact && spread >= 0))
        return wide_rstd<T>(c, channel, x, center);
    return (T)(1 / sqrt(spread + c->eps));
}

template <class T> static void normalize_channel(const channels_t *c, int64_t channel, const T *x, const T *weight,
                                                 const T *bias, T *result, T *mean, T *rstd, T *variance) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double elements = (double)c->outer * (double)c->inner, count = elements > 0 ? elements : 1;
    const T *all = x;
    double total = 0;
    x += start;
    result += start;
    if (c->centered)
        for (int64_t line = 0; line < c->outer; line++)
            total += sum_of<T>(x + line * stride, NULL, c->inner);
    const T center = (T)(total / count);
    total = 0;
    for (int64_t line = 0; line < c->outer; line++)
        total += line_squares<T>(x + line * stride, c->inner, center);
    const double spread = total / count;
    const T scale = rstd_of<T>(c, channel, all, center, spread);
    rstd[channel] = scale;
    if (c->centered) {
        mean[channel] = center;
        variance[channel] = (T)spread;
    }
    if (c->by_channel) {
        const T factor = weight ? scale * weight[channel] : scale, shift = bias ? bias[channel] : 0;
        for (int64_t line = 0; line < c->outer; line++)
            affine_line<T>(x + line * stride, center, factor, shift, result + line * stride, c->inner);
    } else if (c->segments) {
        const int64_t first = first_segment<T>(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++)
            affine_line<T>(x + k * length, center, weight ? scale * weight[first + k] : scale,
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
template <class T> INLINE void channel_sums(const channels_t *c, int64_t channel, const T *grad, const T *x,
                                            const T *weight, T mean, T rstd, double *along, double *total,
                                            T *each_along, T *each_total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    double product = 0, sum = 0;
    if (c->segments) {
        const int64_t first = first_segment<T>(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++) {
            double one = 0, other = 0;
            line_products<T>(grad + start + k * length, x + start + k * length, NULL, length, mean, &one, &other);
            sum += weight ? one * weight[first + k] : one;
            product += weight ? other * weight[first + k] : other;
            if (each_along)
                each_along[k] = length ? (T)(other * rstd) : 0;    /* empty rows have no deviation */
            if (each_total)
                each_total[k] = (T)one;
        }
    } else if (weight) {
        line_products<T>(grad + start, x + start, weight, c->inner, mean, &sum, &product);
    } else {
        for (int64_t line = 0; line < c->outer; line++)
            line_products<T>(grad + start + line * stride, x + start + line * stride, NULL, c->inner, mean, &sum,
                                &product);
    }
    *along = product * rstd;
    *total = sum;
}

template <class T> static void normalize_sums_channel(const channels_t *c, int64_t channel, const T *grad, const T *x,
                                                      const T *mean, const T *rstd, T *along, T *total) {
    double first, second;
    channel_sums<T>(c, channel, grad, x, NULL, mean ? mean[channel] : 0, rstd[channel], &first, &second, NULL, NULL);
    along[channel] = (T)first;
    total[channel] = (T)second;
}

/* to = factor * (grad * weight - average - (x - center) * slope) */
template <class T> INLINE void backward_line(const T *grad, const T *x, T weight, T factor, T average, T center,
                                             T slope, T *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = factor * (grad[i] * weight - average - (x[i] - center) * slope);
}

/* Backward of a channel, or of a row with segments: rstd * (a - mean(a) - normal * mean(a * normal)), where normal =
 * (x - mean) * rstd; and the sums of grad * normal and of grad, per channel or segment. */
template <class T> static void normalize_backward_channel(const channels_t *c, int64_t channel, const T *grad,
                                                          const T *x, const T *weight, const T *mean, const T *rstd,
                                                          T *result, T *along, T *total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    const T center = mean ? mean[channel] : 0, scale = rstd[channel];
    double product, sum;
    channel_sums<T>(c, channel, grad, x, c->by_channel ? NULL : weight, center, scale, &product, &sum,
                       along ? along + channel * c->segments : NULL, total ? total + channel * c->segments : NULL);
    if (along && c->by_channel)
        along[channel] = (T)product;
    if (total && c->by_channel)
        total[channel] = (T)sum;
    if (!result)
        return;
    const T average = c->centered ? (T)(sum / count) : 0, slope = (T)(product / count * scale);
    grad += start;
    x += start;
    result += start;
    if (c->segments) {
        const int64_t first = first_segment<T>(c, channel), length = c->inner / c->segments;
        for (int64_t k = 0; k < c->segments; k++)
            backward_line<T>(grad + k * length, x + k * length, weight ? weight[first + k] : 1, scale, average, center,
                                slope, result + k * length, length);
    } else {
        const T factor = weight ? scale * weight[channel] : scale;
        for (int64_t line = 0; line < c->outer; line++)
            backward_line<T>(grad + line * stride, x + line * stride, 1, factor, average, center, slope,
                                result + line * stride, c->inner);
    }
}

/* A row with its statistics. */
template <class T> struct row_t {
    const T *grad, *x;
    T *result, center, scale, average, slope;
};

template <class T> INLINE row_t<T> row_of(const channels_t *c, int64_t row, const T *grad, const T *x, const T *weight,
                                       const T *mean, const T *rstd, T *result) {
    const int64_t start = row * c->inner;
    row_t<T> made = {grad + start, x + start, result ? result + start : NULL, mean ? mean[row] : 0, rstd[row], 0, 0};
    if (result) {
        double sum = 0, product = 0;
        line_products<T>(made.grad, made.x, weight, c->inner, made.center, &sum, &product);
        made.average = c->centered ? (T)(sum / (double)c->inner) : 0;
        made.slope = (T)(product * made.scale / (double)c->inner * made.scale);
    }
    return made;
}

/* Process one or two rows. The flags are compile-time constants of the callers. */
template <class T> INLINE void backward_rows(const row_t<T> *a, const row_t<T> *b, const int two, const T *weight,
                                             const int weighted, const int made, const int summed, T *along, T *total,
                                             int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const T grad = a->grad[i], away = a->x[i] - a->center;
        const T grad_b = two ? b->grad[i] : 0, away_b = two ? b->x[i] - b->center : 0;
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
template <class T> static void normalize_backward_rows(const channels_t *c, int64_t begin, int64_t end, const T *grad,
                                                       const T *x, const T *weight, const T *mean, const T *rstd,
                                                       T *result, T *along, T *total) {
    const int64_t n = c->inner;
    for (int64_t i = 0; along && i < n; i++)
        along[i] = total[i] = 0;
    for (int64_t row = begin; row < end; row += 2) {
        const int two = row + 1 < end;
        const row_t<T> a = row_of<T>(c, row, grad, x, weight, mean, rstd, result);
        const row_t<T> b = two ? row_of<T>(c, row + 1, grad, x, weight, mean, rstd, result) : a;
#define ROWS(two, weighted, made, summed) \
        backward_rows<T>(&a, &b, two, weight, weighted, made, summed, along, total, n)
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

/* Channels with short lines: adjacent channels are processed together, a line of memory at a time.
 *
 * Sum a, (a - shift)**2, or a and a * (b - shift) over all lines of columns [first, first + width). */
template <class T> INLINE void column_sums(const channels_t *c, int64_t first, int64_t width, const int kind,
                                           const T *a, const T *b, const T *shift, double *sums, double *products) {
    const int64_t stride = c->channels * c->inner;
    for (int64_t k = 0; k < width; k++)
        sums[k] = products[k] = 0;
    for (int64_t begin = 0; begin < c->outer; begin += LINES) {
        const int64_t end = c->outer - begin < LINES ? c->outer : begin + LINES;
        T sum[COLUMNS] = {0}, product[COLUMNS] = {0};
        for (int64_t line = begin; line < end; line++) {
            const T *from = a + line * stride + first, *other = b + line * stride + first;
            for (int64_t k = 0; k < width; k++) {
                const T x = kind == SQUARES ? from[k] - shift[k] : from[k];
                sum[k] += kind == SQUARES ? x * x : x;
                if (kind == PRODUCTS)
                    product[k] += x * (other[k] - shift[k]);
            }
        }
        for (int64_t k = 0; k < width; k++) {
            sums[k] += sum[k];
            products[k] += product[k];
        }
    }
}

/* Sum the columns of one channel of the tile. */
template <class T> INLINE double of_channel(const channels_t *c, int64_t channel, const double *columns) {
    double total = 0;
    for (int64_t k = channel * c->inner; k < (channel + 1) * c->inner; k++)
        total += columns[k];
    return total;
}

/* Repeat the values of n channels for each column. */
template <class T> INLINE void spread(const channels_t *c, int64_t n, const T *values, T *columns) {
    for (int64_t channel = 0; channel < n; channel++)
        for (int64_t k = 0; k < c->inner; k++)
            columns[channel * c->inner + k] = values[channel];
}

template <class T> static void normalize_tile(const channels_t *c, int64_t first, int64_t n, const T *x,
                                              const T *weight, const T *bias, T *result, T *mean, T *rstd,
                                              T *variance) {
    const int64_t column = first * c->inner, width = n * c->inner, stride = c->channels * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double sums[COLUMNS], unused[COLUMNS];
    T center[COLUMNS], factor[COLUMNS], shift[COLUMNS], values[COLUMNS];
    mean += first;
    rstd += first;
    variance += first;
    column_sums<T>(c, column, width, PLAIN, x, x, NULL, sums, unused);
    for (int64_t k = 0; k < n; k++)
        mean[k] = (T)(of_channel<T>(c, k, sums) / count);
    spread<T>(c, n, mean, center);
    column_sums<T>(c, column, width, SQUARES, x, x, center, sums, unused);
    for (int64_t k = 0; k < n; k++) {
        const double spread = of_channel<T>(c, k, sums) / count;
        variance[k] = (T)spread;
        rstd[k] = rstd_of<T>(c, first + k, x, mean[k], spread);
        values[k] = weight ? rstd[k] * weight[first + k] : rstd[k];
    }
    spread<T>(c, n, values, factor);
    for (int64_t k = 0; k < n; k++)
        values[k] = bias ? bias[first + k] : 0;
    spread<T>(c, n, values, shift);
    for (int64_t line = 0; line < c->outer; line++) {
        const T *from = x + line * stride + column;
        T *to = result + line * stride + column;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            to[k] = (from[k] - center[k]) * factor[k] + shift[k];
    }
}

template <class T> static void normalize_sums_tile(const channels_t *c, int64_t first, int64_t n, const T *grad,
                                                   const T *x, const T *mean, const T *rstd, T *along, T *total) {
    double sums[COLUMNS], products[COLUMNS];
    T center[COLUMNS];
    spread<T>(c, n, mean + first, center);
    column_sums<T>(c, first * c->inner, n * c->inner, PRODUCTS, grad, x, center, sums, products);
    for (int64_t k = 0; k < n; k++) {
        along[first + k] = (T)(of_channel<T>(c, k, products) * rstd[first + k]);
        total[first + k] = (T)of_channel<T>(c, k, sums);
    }
}

template <class T> static void normalize_backward_tile(const channels_t *c, int64_t first, int64_t n, const T *grad,
                                                       const T *x, const T *weight, const T *mean, const T *rstd,
                                                       T *result, T *along, T *total) {
    const int64_t column = first * c->inner, width = n * c->inner, stride = c->channels * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double sums[COLUMNS], products[COLUMNS];
    T center[COLUMNS], average[COLUMNS], slope[COLUMNS], factor[COLUMNS], values[COLUMNS];
    spread<T>(c, n, mean + first, center);
    column_sums<T>(c, column, width, PRODUCTS, grad, x, center, sums, products);
    for (int64_t k = 0; k < n; k++) {
        if (along)
            along[first + k] = (T)(of_channel<T>(c, k, products) * rstd[first + k]);
        if (total)
            total[first + k] = (T)of_channel<T>(c, k, sums);
    }
    if (!result)
        return;
    for (int64_t k = 0; k < n; k++)
        values[k] = (T)(of_channel<T>(c, k, sums) / count);
    spread<T>(c, n, values, average);
    for (int64_t k = 0; k < n; k++)
        values[k] = (T)(of_channel<T>(c, k, products) / count * rstd[first + k] * rstd[first + k]);
    spread<T>(c, n, values, slope);
    for (int64_t k = 0; k < n; k++)
        values[k] = weight ? rstd[first + k] * weight[first + k] : rstd[first + k];
    spread<T>(c, n, values, factor);
    for (int64_t line = 0; line < c->outer; line++) {
        const T *g = grad + line * stride + column, *from = x + line * stride + column;
        T *to = result + line * stride + column;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            to[k] = factor[k] * (g[k] - average[k] - (from[k] - center[k]) * slope[k]);
    }
}

template <class T> static void normalize(const channels_t *c, int64_t first, int64_t n, T *const *x, T *const *out) {
    if (tile_of(c))
        normalize_tile<T>(c, first, n, x[0], x[1], x[2], out[0], out[1], out[2], out[3]);
    else
        normalize_channel<T>(c, first, x[0], x[1], x[2], out[0], out[1], out[2], out[3]);
}

template <class T> static void normalize_sums(const channels_t *c, int64_t first, int64_t n, T *const *x,
                                              T *const *out) {
    if (tile_of(c))
        normalize_sums_tile<T>(c, first, n, x[0], x[1], x[3], x[4], out[0], out[1]);
    else
        normalize_sums_channel<T>(c, first, x[0], x[1], x[3], x[4], out[0], out[1]);
}

template <class T> static void normalize_backward(const channels_t *c, int64_t first, int64_t n, T *const *x,
                                                  T *const *out) {
    if (tile_of(c))
        normalize_backward_tile<T>(c, first, n, x[0], x[1], x[2], x[3], x[4], out[0], out[1], out[2]);
    else if (c->by_channel || c->segments)
        for (int64_t k = first; k < first + n; k++)
            normalize_backward_channel<T>(c, k, x[0], x[1], x[2], x[3], x[4], out[0], out[1], out[2]);
    else
        normalize_backward_rows<T>(c, first, first + n, x[0], x[1], x[2], x[3], x[4], out[0], out[1], out[2]);
}
