/* Channels with short lines: adjacent channels are processed together, a line of memory at a time. Continues
 * normalization_loops.h.
 */

/* Terms summed over each column of a tile. */
enum { NAME(plain), NAME(squares), NAME(products) };

/* Sum a, (a - shift)**2, or a and a * (b - shift) over all lines of columns [first, first + width). */
INLINE void NAME(column_sums)(const channels_t *c, int64_t first, int64_t width, const int kind, const REAL *a,
                              const REAL *b, const REAL *shift, double *sums, double *products) {
    const int64_t stride = c->channels * c->inner;
    for (int64_t k = 0; k < width; k++)
        sums[k] = products[k] = 0;
    for (int64_t begin = 0; begin < c->outer; begin += LINES) {
        const int64_t end = c->outer - begin < LINES ? c->outer : begin + LINES;
        REAL sum[COLUMNS] = {0}, product[COLUMNS] = {0};
        for (int64_t line = begin; line < end; line++) {
            const REAL *from = a + line * stride + first, *other = b + line * stride + first;
            for (int64_t k = 0; k < width; k++) {
                const REAL x = kind == NAME(squares) ? from[k] - shift[k] : from[k];
                sum[k] += kind == NAME(squares) ? x * x : x;
                if (kind == NAME(products))
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
INLINE double NAME(of_channel)(const channels_t *c, int64_t channel, const double *columns) {
    double total = 0;
    for (int64_t k = channel * c->inner; k < (channel + 1) * c->inner; k++)
        total += columns[k];
    return total;
}

/* Repeat the values of n channels for each column. */
INLINE void NAME(spread)(const channels_t *c, int64_t n, const REAL *values, REAL *columns) {
    for (int64_t channel = 0; channel < n; channel++)
        for (int64_t k = 0; k < c->inner; k++)
            columns[channel * c->inner + k] = values[channel];
}

static void NAME(normalize_tile)(const channels_t *c, int64_t first, int64_t n, const REAL *x, const REAL *weight,
                                 const REAL *bias, REAL *result, REAL *mean, REAL *rstd, REAL *variance) {
    const int64_t column = first * c->inner, width = n * c->inner, stride = c->channels * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double sums[COLUMNS], unused[COLUMNS];
    REAL center[COLUMNS], factor[COLUMNS], shift[COLUMNS], values[COLUMNS];
    mean += first;
    rstd += first;
    variance += first;
    NAME(column_sums)(c, column, width, NAME(plain), x, x, NULL, sums, unused);
    for (int64_t k = 0; k < n; k++)
        mean[k] = (REAL)(NAME(of_channel)(c, k, sums) / count);
    NAME(spread)(c, n, mean, center);
    NAME(column_sums)(c, column, width, NAME(squares), x, x, center, sums, unused);
    for (int64_t k = 0; k < n; k++) {
        const double spread = NAME(of_channel)(c, k, sums) / count;
        variance[k] = (REAL)spread;
        rstd[k] = (REAL)(1 / sqrt(spread + c->eps));
        values[k] = weight ? rstd[k] * weight[first + k] : rstd[k];
    }
    NAME(spread)(c, n, values, factor);
    for (int64_t k = 0; k < n; k++)
        values[k] = bias ? bias[first + k] : 0;
    NAME(spread)(c, n, values, shift);
    for (int64_t line = 0; line < c->outer; line++) {
        const REAL *from = x + line * stride + column;
        REAL *to = result + line * stride + column;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            to[k] = (from[k] - center[k]) * factor[k] + shift[k];
    }
}

static void NAME(normalize_sums_tile)(const channels_t *c, int64_t first, int64_t n, const REAL *grad, const REAL *x,
                                      const REAL *mean, const REAL *rstd, REAL *along, REAL *total) {
    double sums[COLUMNS], products[COLUMNS];
    REAL center[COLUMNS];
    NAME(spread)(c, n, mean + first, center);
    NAME(column_sums)(c, first * c->inner, n * c->inner, NAME(products), grad, x, center, sums, products);
    for (int64_t k = 0; k < n; k++) {
        along[first + k] = (REAL)(NAME(of_channel)(c, k, products) * rstd[first + k]);
        total[first + k] = (REAL)NAME(of_channel)(c, k, sums);
    }
}

static void NAME(normalize_backward_tile)(const channels_t *c, int64_t first, int64_t n, const REAL *grad, const REAL *x,
                                          const REAL *weight, const REAL *mean, const REAL *rstd, REAL *result,
                                          REAL *along, REAL *total) {
    const int64_t column = first * c->inner, width = n * c->inner, stride = c->channels * c->inner;
    const double count = (double)c->outer * (double)c->inner;
    double sums[COLUMNS], products[COLUMNS];
    REAL center[COLUMNS], average[COLUMNS], slope[COLUMNS], factor[COLUMNS], values[COLUMNS];
    NAME(spread)(c, n, mean + first, center);
    NAME(column_sums)(c, column, width, NAME(products), grad, x, center, sums, products);
    for (int64_t k = 0; k < n; k++) {
        if (along)
            along[first + k] = (REAL)(NAME(of_channel)(c, k, products) * rstd[first + k]);
        if (total)
            total[first + k] = (REAL)NAME(of_channel)(c, k, sums);
    }
    if (!result)
        return;
    for (int64_t k = 0; k < n; k++)
        values[k] = (REAL)(NAME(of_channel)(c, k, sums) / count);
    NAME(spread)(c, n, values, average);
    for (int64_t k = 0; k < n; k++)
        values[k] = (REAL)(NAME(of_channel)(c, k, products) / count * rstd[first + k] * rstd[first + k]);
    NAME(spread)(c, n, values, slope);
    for (int64_t k = 0; k < n; k++)
        values[k] = weight ? rstd[first + k] * weight[first + k] : rstd[first + k];
    NAME(spread)(c, n, values, factor);
    for (int64_t line = 0; line < c->outer; line++) {
        const REAL *g = grad + line * stride + column, *from = x + line * stride + column;
        REAL *to = result + line * stride + column;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            to[k] = factor[k] * (g[k] - average[k] - (from[k] - center[k]) * slope[k]);
    }
}
