/* Winograd transforms of tiles; see winograd.h. Vectors run along channels: planes are transposed so that one element
 * of LANES channels is contiguous, whatever the size of planes. */

template <class T> struct lanes_of {
    typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};
template <class T> using lanes_t = typename lanes_of<T>::type;
template <class T> constexpr int LANES = 64 / sizeof(T);

template <class T> constexpr T A = 0.75;
template <class T> constexpr T B = 1.5;
template <class T> constexpr T A2 = A<T> * A<T>;
template <class T> constexpr T B2 = B<T> * B<T>;
template <class T> constexpr T SHARE_0 = 1 / (A2<T> * B2<T>);
template <class T> constexpr T SHARE_A = 1 / (2 * A2<T> * (A2<T> - B2<T>));
template <class T> constexpr T SHARE_B = 1 / (2 * B2<T> * (B2<T> - A2<T>));

/* B' d: evaluate six coefficients, `step` vectors apart, at the points. */
template <class T> INLINE void values_of_source(const lanes_t<T> *d, int64_t step, lanes_t<T> *v, int64_t out) {
    const lanes_t<T> x0 = d[0], x1 = d[step], x2 = d[2 * step], x3 = d[3 * step], x4 = d[4 * step];
    const lanes_t<T> x5 = d[5 * step];
    const lanes_t<T> even_a = x4 - B2<T> * x2, odd_a = A<T> * (x3 - B2<T> * x1);
    const lanes_t<T> even_b = x4 - A2<T> * x2, odd_b = B<T> * (x3 - A2<T> * x1);
    v[0] = A2<T> * B2<T> * x0 - (A2<T> + B2<T>) * x2 + x4;
    v[out] = even_a + odd_a;
    v[2 * out] = even_a - odd_a;
    v[3 * out] = even_b + odd_b;
    v[4 * out] = even_b - odd_b;
    v[5 * out] = A2<T> * B2<T> * x1 - (A2<T> + B2<T>) * x3 + x5;
}

/* A' m: interpolate four results from the values of a product. */
template <class T> INLINE void results_of_values(const lanes_t<T> *m, int64_t step, lanes_t<T> *y, int64_t out) {
    const lanes_t<T> sum_a = m[step] + m[2 * step], sum_b = m[3 * step] + m[4 * step];
    const lanes_t<T> odd_a = A<T> * (m[step] - m[2 * step]), odd_b = B<T> * (m[3 * step] - m[4 * step]);
    y[0] = m[0] + sum_a + sum_b;
    y[out] = odd_a + odd_b;
    y[2 * out] = A2<T> * sum_a + B2<T> * sum_b;
    y[3 * out] = A2<T> * odd_a + B2<T> * odd_b + m[5 * step];
}

/* A y: transpose of results_of_values, for gradients of results. */
template <class T> INLINE void values_of_result(const lanes_t<T> *y, int64_t step, lanes_t<T> *m, int64_t out) {
    const lanes_t<T> y0 = y[0], y1 = y[step], y2 = y[2 * step], y3 = y[3 * step];
    const lanes_t<T> even_a = y0 + A2<T> * y2, odd_a = A<T> * (y1 + A2<T> * y3);
    const lanes_t<T> even_b = y0 + B2<T> * y2, odd_b = B<T> * (y1 + B2<T> * y3);
    m[0] = y0;
    m[out] = even_a + odd_a;
    m[2 * out] = even_a - odd_a;
    m[3 * out] = even_b + odd_b;
    m[4 * out] = even_b - odd_b;
    m[5 * out] = y3;
}

/* G g: evaluate the three coefficients of a kernel. */
template <class T> INLINE void values_of_kernel(const lanes_t<T> *g, int64_t step, lanes_t<T> *u, int64_t out) {
    const lanes_t<T> g0 = g[0], g1 = g[step], g2 = g[2 * step];
    const lanes_t<T> even_a = SHARE_A<T> * (g0 + A2<T> * g2), odd_a = SHARE_A<T> * A<T> * g1;
    const lanes_t<T> even_b = SHARE_B<T> * (g0 + B2<T> * g2), odd_b = SHARE_B<T> * B<T> * g1;
    u[0] = SHARE_0<T> * g0;
    u[out] = even_a + odd_a;
    u[2 * out] = even_a - odd_a;
    u[3 * out] = even_b + odd_b;
    u[4 * out] = even_b - odd_b;
    u[5 * out] = g2;
}

/* G' u: transpose of values_of_kernel, for gradients of kernels. */
template <class T> INLINE void kernel_of_values(const lanes_t<T> *u, int64_t step, lanes_t<T> *g, int64_t out) {
    const lanes_t<T> sum_a = SHARE_A<T> * (u[step] + u[2 * step]), sum_b = SHARE_B<T> * (u[3 * step] + u[4 * step]);
    g[0] = SHARE_0<T> * u[0] + sum_a + sum_b;
    g[out] = SHARE_A<T> * A<T> * (u[step] - u[2 * step]) + SHARE_B<T> * B<T> * (u[3 * step] - u[4 * step]);
    g[2 * out] = A2<T> * sum_a + B2<T> * sum_b + u[5 * step];
}

/* Transpose 4 x 4 numbers. */
template <class T> INLINE void transpose_four(const T *source, int64_t source_step, T *target, int64_t target_step) {
    constexpr int FOUR = 4 * sizeof(T);
    const auto r0 = load<T, FOUR>(source), r1 = load<T, FOUR>(source + source_step);
    const auto r2 = load<T, FOUR>(source + 2 * source_step), r3 = load<T, FOUR>(source + 3 * source_step);
    const auto low0 = SHUFFLE(r0, r1, 0, 4, 1, 5), high0 = SHUFFLE(r0, r1, 2, 6, 3, 7);
    const auto low1 = SHUFFLE(r2, r3, 0, 4, 1, 5), high1 = SHUFFLE(r2, r3, 2, 6, 3, 7);
    store(target, SHUFFLE(low0, low1, 0, 1, 4, 5));
    store(target + target_step, SHUFFLE(low0, low1, 2, 3, 6, 7));
    store(target + 2 * target_step, SHUFFLE(high0, high1, 0, 1, 4, 5));
    store(target + 3 * target_step, SHUFFLE(high0, high1, 2, 3, 6, 7));
}

/* Transpose `count` numbers of `rows` rows: a column becomes a vector whose other lanes are zero. */
template <class T> INLINE void transpose(
        const T *source, int64_t row_step, int64_t step, int64_t rows, int64_t count, T *target) {
    const int64_t fours = step == 1 && count >= 4 ? rows / 4 * 4 : 0, whole = fours ? count : 0;
    for (int64_t block = 0; block < whole; block += 16)
        for (int64_t row = 0; row < fours; row += 4)
            for (int64_t k = block; k < block + 16 && k < whole; k += 4) {
                const int64_t place = k + 4 <= count ? k : count - 4;      /* the last four may overlap */
                transpose_four<T>(source + row * row_step + place, row_step, target + place * LANES<T> + row, LANES<T>);
            }
    if (fours == LANES<T>)
        return;
    for (int64_t k = 0; k < count; k++) {
        for (int64_t row = k < whole ? fours : 0; row < rows; row++)
            target[k * LANES<T> + row] = source[row * row_step + k * step];
        for (int64_t row = rows; row < LANES<T>; row++)
            target[k * LANES<T> + row] = 0;
    }
}

/* Transpose back into contiguous rows. */
template <class T> INLINE void transpose_back(
        const T *source, int64_t rows, int64_t count, T *target, int64_t row_step) {
    const int64_t fours = count >= 4 ? rows / 4 * 4 : 0, whole = fours ? count : 0;
    for (int64_t block = 0; block < whole; block += 16)
        for (int64_t row = 0; row < fours; row += 4)
            for (int64_t k = block; k < block + 16 && k < whole; k += 4) {
                const int64_t place = k + 4 <= count ? k : count - 4;
                transpose_four<T>(source + place * LANES<T> + row, LANES<T>, target + row * row_step + place, row_step);
            }
    for (int64_t k = 0; k < count && fours < rows; k++)
        for (int64_t row = k < whole ? fours : 0; row < rows; row++)
            target[row * row_step + k] = source[k * LANES<T> + row];
}

/* Transpose `count` lines of `width` vectors, from line `top` and column `left` of some channels; zeros outside of the
   plane. */
template <class T> INLINE void transpose_lines(
        const planes_t *p, int64_t image, int64_t channel, int64_t channels, int64_t top, int64_t left, int64_t count,
        int64_t width, T *target) {
    const T *plane = (const T *)p->data + image * p->batch_step + channel * p->channel_step;
    for (int64_t line = top; line < top + count; line++, target += width * LANES<T>) {
        if (line < 0 || line >= p->lines) {
            memset(target, 0, width * 64);
            continue;
        }
        for (int64_t k = 0; k < -left; k++)
            ((lanes_t<T> *)target)[k] = lanes_t<T>{};
        transpose<T>(plane + line * p->line_step, p->channel_step, p->step, channels, p->columns,
                     target - left * LANES<T>);
        for (int64_t k = p->columns - left; k < width; k++)
            ((lanes_t<T> *)target)[k] = lanes_t<T>{};
    }
}

/* Evaluate `count` tiles from `first` on, of at most LANES channels; SIZE is SOURCES for sources, RESULTS for
   gradients of results. `workspace` holds transposed lines. */
template <class T, int SIZE> static void cut_values(
        const planes_t *p, int64_t channel, int64_t channels, int64_t first, int64_t count, T *target,
        const values_t *values, T *workspace) {
    while (count > 0) {
        const int64_t image = first / p->tiles, start = first % p->tiles;
        const int64_t left = p->tiles - start, n = count < left ? count : left;
        const int64_t line0 = start / p->tile_columns, lines = (start + n - 1) / p->tile_columns - line0 + 1;
        const int64_t width = p->tile_columns * RESULTS + SIZE - RESULTS;
        transpose_lines<T>(p, image, channel, channels, line0 * RESULTS - p->top, -p->left,
                           lines * RESULTS + SIZE - RESULTS, width, workspace);
        for (int64_t tile = start; tile < start + n; tile++) {
            lanes_t<T> half[POINTS], found[POINTS];
            const lanes_t<T> *cut = (const lanes_t<T> *)workspace + (tile / p->tile_columns - line0) * RESULTS * width
                + tile % p->tile_columns * RESULTS;
            if (SIZE == SOURCES) {
                for (int column = 0; column < SOURCES; column++)
                    values_of_source<T>(cut + column, width, half + column, SOURCES);
                for (int row = 0; row < SOURCES; row++)
                    values_of_source<T>(half + row * SOURCES, 1, found + row * SOURCES, 1);
            } else {
                for (int column = 0; column < RESULTS; column++)
                    values_of_result<T>(cut + column, width, half + column, RESULTS);
                for (int row = 0; row < SOURCES; row++)
                    values_of_result<T>(half + row * RESULTS, 1, found + row * SOURCES, 1);
            }
            for (int point = 0; point < POINTS; point++)
                *(lanes_t<T> *)(target + point * values->point_step) = found[point];
            target += values->tile_step;
        }
        first += n;
        count -= n;
    }
}

/* Return whether the first `channels` sums of x * 0 are 0: nan if an x was inf or nan. Other lanes are undefined. */
template <class T> INLINE int all_zero(const lanes_t<T> *sums, int64_t channels) {
    int zero = 1;
    for (int lane = 0; lane < channels; lane++)
        zero &= (*sums)[lane] == 0;
    return zero;
}

/* Interpolate the results of up to LANES channels, add `bias` (one number per lane), and write planes; return whether
   all are finite. Tiles are those of whole lines, or of one line. */
template <class T> static int put_results(
        const planes_t *p, int64_t channel, int64_t channels, int64_t first, int64_t count, const T *source,
        const values_t *values, const T *bias, T *workspace) {
    lanes_t<T> finite = {0}, start = {0};
    for (int64_t lane = 0; lane < channels && bias != NULL; lane++)
        start[lane] = bias[lane];
    while (count > 0) {
        const int64_t image = first / p->tiles, tile0 = first % p->tiles, line0 = tile0 / p->tile_columns;
        const int64_t left = p->tiles - tile0, column0 = tile0 % p->tile_columns * RESULTS;
        int64_t n = count < left ? count : left;
        if (column0 || n < p->tile_columns)
            n = n < p->tile_columns - tile0 % p->tile_columns ? n : p->tile_columns - tile0 % p->tile_columns;
        else
            n -= n % p->tile_columns;
        const int64_t end = (tile0 + n - 1) / p->tile_columns * RESULTS + RESULTS;
        const int64_t lines = (end < p->lines ? end : p->lines) - line0 * RESULTS;
        for (int64_t tile = tile0; tile < tile0 + n; tile++) {
            lanes_t<T> half[RESULTS * SOURCES], results[RESULTS * RESULTS], found[POINTS];
            for (int point = 0; point < POINTS; point++)
                found[point] = *(const lanes_t<T> *)(source + point * values->point_step);
            for (int column = 0; column < SOURCES; column++)
                results_of_values<T>(found + column, SOURCES, half + column, SOURCES);
            for (int row = 0; row < RESULTS; row++)
                results_of_values<T>(half + row * SOURCES, 1, results + row * RESULTS, 1);
            const int64_t line = (tile / p->tile_columns - line0) * RESULTS;
            const int64_t column = tile % p->tile_columns * RESULTS;
            T *corner = workspace + (line * p->columns + column) * LANES<T>;
            for (int i = 0; i < RESULTS; i++)
                for (int j = 0; j < RESULTS; j++) {
                    const lanes_t<T> result = results[i * RESULTS + j] + start;
                    finite += 0 * result;
                    if (line + i < lines && column + j < p->columns)
                        *(lanes_t<T> *)(corner + (i * p->columns + j) * LANES<T>) = result;
                }
            source += values->tile_step;
        }
        T *plane = (T *)p->data + image * p->batch_step + channel * p->channel_step
            + line0 * RESULTS * p->columns;
        const int64_t stop = column0 + n * RESULTS < p->columns ? column0 + n * RESULTS : p->columns;
        if (column0 == 0 && stop == p->columns)
            transpose_back<T>(workspace, channels, lines * p->columns, plane, p->channel_step);
        else
            for (int64_t line = 0; line < lines; line++)
                transpose_back<T>(workspace + (line * p->columns + column0) * LANES<T>, channels, stop - column0,
                                  plane + line * p->columns + column0, p->channel_step);
        first += n;
        count -= n;
    }
    return all_zero<T>(&finite, channels);
}

/* Evaluate 3 x 3 kernels: `count` for each of at most LANES channels, `channel_step` apart; those of one channel are
   `step` apart; `back` rotates them by 180 degrees. */
template <class T> static void kernel_values(
        const T *kernels, int64_t channel_step, int64_t channels, int64_t step, int64_t count, int back, T *target,
        const values_t *values) {
    constexpr int GROUP = 16;
    lanes_t<T> transposed[9 * GROUP], half[18], found[POINTS];
    for (int64_t k = 0; k < count; k++) {
        /* Adjacent kernels are transposed together. */
        if (step != 9)
            transpose<T>(kernels + k * step, channel_step, 1, channels, 9, (T *)transposed);
        else if (k % GROUP == 0)
            transpose<T>(kernels + k * step, channel_step, 1, channels,
                         9 * (count - k < GROUP ? count - k : GROUP), (T *)transposed);
        const lanes_t<T> *taps = transposed + (step == 9 ? 9 * (k % GROUP) : 0);
        if (back) {
            for (int column = 0; column < 3; column++)
                values_of_kernel<T>(taps + 8 - column, -3, half + column, 3);
        } else {
            for (int column = 0; column < 3; column++)
                values_of_kernel<T>(taps + column, 3, half + column, 3);
        }
        for (int row = 0; row < SOURCES; row++)
            values_of_kernel<T>(half + row * 3, 1, found + row * SOURCES, 1);
        for (int point = 0; point < POINTS; point++)
            *(lanes_t<T> *)(target + k * values->tile_step + point * values->point_step) = found[point];
    }
}

/* Compute gradients of kernels from those of their values (see kernel_values); return whether all are finite. */
template <class T> static int put_kernels(
        const T *source, const values_t *values, int64_t channels, int64_t count, T *kernels, int64_t channel_step) {
    lanes_t<T> finite = {0};
    for (int64_t k = 0; k < count; k++) {
        lanes_t<T> found[POINTS], half[18], taps[9];
        for (int point = 0; point < POINTS; point++)
            found[point] = *(const lanes_t<T> *)(source + k * values->tile_step + point * values->point_step);
        for (int column = 0; column < SOURCES; column++)
            kernel_of_values<T>(found + column, SOURCES, half + column, SOURCES);
        for (int row = 0; row < 3; row++)
            kernel_of_values<T>(half + row * SOURCES, 1, taps + row * 3, 1);
        for (int tap = 0; tap < 9; tap++)
            finite += 0 * taps[tap];
        transpose_back<T>((const T *)taps, channels, 9, kernels + k * 9, channel_step);
    }
    return all_zero<T>(&finite, channels);
}
