/* Statistics and normalisation of one channel, for one type. The includer defines REAL and NAME(function).

   A channel is `outer` lines of `inner` neighbours, a `stride` apart. Sums run in lanes, so that the compiler can use
   vector instructions without changing their order, and lanes are added in double precision every BLOCK elements. */

static inline __attribute__((always_inline)) double NAME(lanes_total)(const REAL *lanes) {
    double total = 0;
    for (int lane = 0; lane < LANES; lane++)
        total += lanes[lane];
    return total;
}

/* sum(x), or sum((x - shift)**2). */
static inline __attribute__((always_inline)) double NAME(line_sum)(
        const REAL *x, int64_t n, const int squares, REAL shift) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t size = n - begin < BLOCK ? n - begin : BLOCK;
        REAL lanes[LANES] = {0};
        int64_t i = 0;
        for (; i + LANES <= size; i += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const REAL value = x[begin + i + lane] - (squares ? shift : 0);
                lanes[lane] += squares ? value * value : value;
            }
        for (int lane = 0; i < size; i++, lane++) {
            const REAL value = x[begin + i] - (squares ? shift : 0);
            lanes[lane] += squares ? value * value : value;
        }
        total += NAME(lanes_total)(lanes);
    }
    return total;
}

/* sum(a) and sum(a * (x - shift)) for a = grad * weight; weight may be NULL. */
static inline __attribute__((always_inline)) void NAME(line_products)(
        const REAL *grad, const REAL *x, const REAL *weight, int64_t n, REAL shift, double *sum, double *product) {
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t size = n - begin < BLOCK ? n - begin : BLOCK;
        REAL sums[LANES] = {0}, products[LANES] = {0};
        int64_t i = 0;
        for (; i + LANES <= size; i += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const int64_t at = begin + i + lane;
                const REAL value = weight ? grad[at] * weight[at] : grad[at];
                sums[lane] += value;
                products[lane] += value * (x[at] - shift);
            }
        for (int lane = 0; i < size; i++, lane++) {
            const int64_t at = begin + i;
            const REAL value = weight ? grad[at] * weight[at] : grad[at];
            sums[lane] += value;
            products[lane] += value * (x[at] - shift);
        }
        *sum += NAME(lanes_total)(sums);
        *product += NAME(lanes_total)(products);
    }
}

FOR_EACH_CPU
static void NAME(normalize)(const channels_t *c, int64_t channel, const REAL *x, const REAL *weight, const REAL *bias,
                            REAL *result, REAL *mean, REAL *rstd, REAL *variance) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double total = 0;
    x += start;
    result += start;
    for (int64_t line = 0; line < c->outer; line++)
        total += NAME(line_sum)(x + line * stride, c->inner, 0, 0);
    const REAL center = (REAL)(total / count);
    total = 0;
    for (int64_t line = 0; line < c->outer; line++)
        total += NAME(line_sum)(x + line * stride, c->inner, 1, center);
    const double spread = total / count;
    const REAL scale = (REAL)(1 / sqrt(spread + c->eps));
    mean[channel] = center;
    rstd[channel] = scale;
    variance[channel] = (REAL)spread;
    for (int64_t line = 0; line < c->outer; line++) {
        const REAL *from = x + line * stride;
        REAL *to = result + line * stride;
        if (c->by_channel) {
            const REAL factor = weight ? scale * weight[channel] : scale, shift = bias ? bias[channel] : 0;
            for (int64_t i = 0; i < c->inner; i++)
                to[i] = (from[i] - center) * factor + shift;
        } else if (weight && bias) {
            for (int64_t i = 0; i < c->inner; i++)
                to[i] = (from[i] - center) * scale * weight[i] + bias[i];
        } else {
            for (int64_t i = 0; i < c->inner; i++)
                to[i] = (from[i] - center) * scale * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
        }
    }
}

/* sum(a * (x - mean)) * rstd and sum(a) of a channel, for a = grad * weight. */
static inline __attribute__((always_inline)) void NAME(channel_sums)(
        const channels_t *c, int64_t channel, const REAL *grad, const REAL *x, const REAL *weight, REAL mean, REAL rstd,
        double *along, double *total) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    double product = 0, sum = 0;
    for (int64_t line = 0; line < c->outer; line++)
        NAME(line_products)(grad + start + line * stride, x + start + line * stride, weight, c->inner, mean, &sum,
                            &product);
    *along = product * rstd;
    *total = sum;
}

/* Those sums by themselves. `weight` is NULL where there is none, as always so far: with a constant in its place, the
   compiler makes slower loops. */
FOR_EACH_CPU
static void NAME(normalize_sums)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x,
                                 const REAL *weight, const REAL *mean, const REAL *rstd, REAL *along, REAL *total) {
    double first, second;
    NAME(channel_sums)(c, channel, grad, x, weight, mean[channel], rstd[channel], &first, &second);
    along[channel] = (REAL)first;
    total[channel] = (REAL)second;
}

/* Sums over all rows of grad * (x - mean) * rstd, for columns [begin, end) of rows of `inner` elements. */
FOR_EACH_CPU
static void NAME(normalize_columns)(const channels_t *c, int64_t begin, int64_t end, const REAL *grad, const REAL *x,
                                    const REAL *mean, const REAL *rstd, REAL *result) {
    for (int64_t i = begin; i < end; i++)
        result[i] = 0;
    for (int64_t row = 0; row < c->channels; row++) {
        const REAL *g = grad + row * c->inner, *from = x + row * c->inner;
        const REAL center = mean[row], scale = rstd[row];
        for (int64_t i = begin; i < end; i++)
            result[i] += g[i] * ((from[i] - center) * scale);
    }
}

/* rstd * (a - average(a) - normal * average(a * normal)), where normal = (x - mean) * rstd. */
FOR_EACH_CPU
static void NAME(normalize_backward)(const channels_t *c, int64_t channel, const REAL *grad, const REAL *x,
                                     const REAL *weight, const REAL *mean, const REAL *rstd, REAL *result) {
    const int64_t stride = c->channels * c->inner, start = channel * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    const REAL center = mean[channel], scale = rstd[channel];
    const REAL *each = c->by_channel ? NULL : weight;
    double along, total;
    NAME(channel_sums)(c, channel, grad, x, each, center, scale, &along, &total);
    const REAL average = (REAL)(total / count), slope = (REAL)(along / count * scale);
    const REAL factor = c->by_channel && weight ? scale * weight[channel] : scale;
    for (int64_t line = 0; line < c->outer; line++) {
        const REAL *g = grad + start + line * stride, *from = x + start + line * stride;
        REAL *to = result + start + line * stride;
        if (each)
            for (int64_t i = 0; i < c->inner; i++)
                to[i] = factor * (g[i] * each[i] - average - (from[i] - center) * slope);
        else
            for (int64_t i = 0; i < c->inner; i++)
                to[i] = factor * (g[i] - average - (from[i] - center) * slope);
    }
}
