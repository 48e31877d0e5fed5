/* Winograd transforms of tiles for one real type. The includer defines REAL and NAME(function). Vectors run along
 * channels: planes are transposed so that one element of LANES channels is contiguous, whatever the size of planes. */

typedef REAL NAME(lanes) __attribute__((vector_size(64), aligned(8), may_alias));
typedef REAL NAME(four) __attribute__((vector_size(4 * sizeof(REAL)), aligned(4), may_alias));

/* B' d: evaluate six coefficients, `step` vectors apart, at the points. */
#define SOURCE_VALUES(d, step, v, out) do { \
    const NAME(lanes) x0 = d[0], x1 = d[step], x2 = d[2 * (step)], x3 = d[3 * (step)], x4 = d[4 * (step)]; \
    const NAME(lanes) x5 = d[5 * (step)]; \
    const NAME(lanes) even_a = x4 - b2 * x2, odd_a = a * (x3 - b2 * x1); \
    const NAME(lanes) even_b = x4 - a2 * x2, odd_b = b * (x3 - a2 * x1); \
    v[0] = a2 * b2 * x0 - (a2 + b2) * x2 + x4; \
    v[out] = even_a + odd_a; \
    v[2 * (out)] = even_a - odd_a; \
    v[3 * (out)] = even_b + odd_b; \
    v[4 * (out)] = even_b - odd_b; \
    v[5 * (out)] = a2 * b2 * x1 - (a2 + b2) * x3 + x5; \
} while (0)

/* A' m: interpolate four results from the values of a product. */
#define RESULTS_OF(m, step, y, out) do { \
    const NAME(lanes) sum_a = m[step] + m[2 * (step)], sum_b = m[3 * (step)] + m[4 * (step)]; \
    const NAME(lanes) odd_a = a * (m[step] - m[2 * (step)]), odd_b = b * (m[3 * (step)] - m[4 * (step)]); \
    y[0] = m[0] + sum_a + sum_b; \
    y[out] = odd_a + odd_b; \
    y[2 * (out)] = a2 * sum_a + b2 * sum_b; \
    y[3 * (out)] = a2 * odd_a + b2 * odd_b + m[5 * (step)]; \
} while (0)

/* A y: transpose of RESULTS_OF, for gradients of results. */
#define RESULT_VALUES(y, step, m, out) do { \
    const NAME(lanes) y0 = y[0], y1 = y[step], y2 = y[2 * (step)], y3 = y[3 * (step)]; \
    const NAME(lanes) even_a = y0 + a2 * y2, odd_a = a * (y1 + a2 * y3); \
    const NAME(lanes) even_b = y0 + b2 * y2, odd_b = b * (y1 + b2 * y3); \
    m[0] = y0; \
    m[out] = even_a + odd_a; \
    m[2 * (out)] = even_a - odd_a; \
    m[3 * (out)] = even_b + odd_b; \
    m[4 * (out)] = even_b - odd_b; \
    m[5 * (out)] = y3; \
} while (0)

/* G g: evaluate the three coefficients of a kernel. */
#define KERNEL_VALUES(g, step, u, out) do { \
    const NAME(lanes) g0 = g[0], g1 = g[step], g2 = g[2 * (step)]; \
    const NAME(lanes) even_a = share_a * (g0 + a2 * g2), odd_a = share_a * a * g1; \
    const NAME(lanes) even_b = share_b * (g0 + b2 * g2), odd_b = share_b * b * g1; \
    u[0] = share_0 * g0; \
    u[out] = even_a + odd_a; \
    u[2 * (out)] = even_a - odd_a; \
    u[3 * (out)] = even_b + odd_b; \
    u[4 * (out)] = even_b - odd_b; \
    u[5 * (out)] = g2; \
} while (0)

/* G' u: transpose of KERNEL_VALUES, for gradients of kernels. */
#define KERNEL_OF(u, step, g, out) do { \
    const NAME(lanes) sum_a = share_a * (u[step] + u[2 * (step)]), sum_b = share_b * (u[3 * (step)] + u[4 * (step)]); \
    g[0] = share_0 * u[0] + sum_a + sum_b; \
    g[out] = share_a * a * (u[step] - u[2 * (step)]) + share_b * b * (u[3 * (step)] - u[4 * (step)]); \
    g[2 * (out)] = a2 * sum_a + b2 * sum_b + u[5 * (step)]; \
} while (0)

#define CONSTANTS \
    const REAL a = (REAL)0.75, b = (REAL)1.5, a2 = a * a, b2 = b * b; \
    const REAL share_0 = 1 / (a2 * b2), share_a = 1 / (2 * a2 * (a2 - b2)), share_b = 1 / (2 * b2 * (b2 - a2)); \
    (void)a; (void)b; (void)a2; (void)b2; (void)share_0; (void)share_a; (void)share_b

/* Transpose 4 x 4 numbers. */
static inline __attribute__((always_inline)) void NAME(transpose_four)(
        const REAL *source, int64_t source_step, REAL *target, int64_t target_step) {
    const NAME(four) r0 = *(const NAME(four) *)source, r1 = *(const NAME(four) *)(source + source_step);
    const NAME(four) r2 = *(const NAME(four) *)(source + 2 * source_step);
    const NAME(four) r3 = *(const NAME(four) *)(source + 3 * source_step);
    const NAME(four) low0 = SHUFFLE(r0, r1, 0, 4, 1, 5);
    const NAME(four) high0 = SHUFFLE(r0, r1, 2, 6, 3, 7);
    const NAME(four) low1 = SHUFFLE(r2, r3, 0, 4, 1, 5);
    const NAME(four) high1 = SHUFFLE(r2, r3, 2, 6, 3, 7);
    *(NAME(four) *)target = SHUFFLE(low0, low1, 0, 1, 4, 5);
    *(NAME(four) *)(target + target_step) = SHUFFLE(low0, low1, 2, 3, 6, 7);
    *(NAME(four) *)(target + 2 * target_step) = SHUFFLE(high0, high1, 0, 1, 4, 5);
    *(NAME(four) *)(target + 3 * target_step) = SHUFFLE(high0, high1, 2, 3, 6, 7);
}

/* Transpose `count` numbers of `rows` rows: a column becomes a vector whose other lanes are zero. */
static inline __attribute__((always_inline)) void NAME(transpose)(
        const REAL *source, int64_t row_step, int64_t step, int64_t rows, int64_t count, REAL *target) {
    enum { LANES = 64 / sizeof(REAL) };
    const int64_t fours = step == 1 && count >= 4 ? rows / 4 * 4 : 0, whole = fours ? count : 0;
    for (int64_t block = 0; block < whole; block += 16)
        for (int64_t row = 0; row < fours; row += 4)
            for (int64_t k = block; k < block + 16 && k < whole; k += 4) {
                const int64_t place = k + 4 <= count ? k : count - 4;      /* the last four may overlap */
                NAME(transpose_four)(source + row * row_step + place, row_step, target + place * LANES + row, LANES);
            }
    if (fours == LANES)
        return;
    for (int64_t k = 0; k < count; k++) {
        for (int64_t row = k < whole ? fours : 0; row < rows; row++)
            target[k * LANES + row] = source[row * row_step + k * step];
        for (int64_t row = rows; row < LANES; row++)
            target[k * LANES + row] = 0;
    }
}

/* Transpose back into contiguous rows. */
static inline __attribute__((always_inline)) void NAME(transpose_back)(
        const REAL *source, int64_t rows, int64_t count, REAL *target, int64_t row_step) {
    enum { LANES = 64 / sizeof(REAL) };
    const int64_t fours = count >= 4 ? rows / 4 * 4 : 0, whole = fours ? count : 0;
    for (int64_t block = 0; block < whole; block += 16)
        for (int64_t row = 0; row < fours; row += 4)
            for (int64_t k = block; k < block + 16 && k < whole; k += 4) {
                const int64_t place = k + 4 <= count ? k : count - 4;
                NAME(transpose_four)(source + place * LANES + row, LANES, target + row * row_step + place, row_step);
            }
    for (int64_t k = 0; k < count && fours < rows; k++)
        for (int64_t row = k < whole ? fours : 0; row < rows; row++)
            target[row * row_step + k] = source[k * LANES + row];
}

/* Transpose `count` lines of `width` vectors, from line `top` and column `left` of some channels; zeros outside of the
   plane. */
static inline __attribute__((always_inline)) void NAME(transpose_lines)(
        const planes_t *p, int64_t image, int64_t channel, int64_t channels, int64_t top, int64_t left,
        int64_t count, int64_t width, REAL *target) {
    enum { LANES = 64 / sizeof(REAL) };
    const REAL *plane = (const REAL *)p->data + image * p->batch_step + channel * p->channel_step;
    for (int64_t line = top; line < top + count; line++, target += width * LANES) {
        if (line < 0 || line >= p->lines) {
            memset(target, 0, width * 64);
            continue;
        }
        for (int64_t k = 0; k < -left; k++)
            ((NAME(lanes) *)target)[k] = (NAME(lanes)){0};
        NAME(transpose)
        (plane + line * p->line_step, p->channel_step, p->step, channels, p->columns, target - left * LANES);
        for (int64_t k = p->columns - left; k < width; k++)
            ((NAME(lanes) *)target)[k] = (NAME(lanes)){0};
    }
}

/* Evaluate `count` tiles from `first` on, of at most LANES channels; `size` is SOURCES for sources, RESULTS for
   gradients of results. `workspace` holds transposed lines. */
static inline __attribute__((always_inline)) void NAME(cut_values)(
        const planes_t *p, int64_t channel, int64_t channels, int64_t first, int64_t count, const int size,
        REAL *target, const values_t *values, REAL *workspace) {
    CONSTANTS;
    while (count > 0) {
        const int64_t image = first / p->tiles, start = first % p->tiles;
        const int64_t left = p->tiles - start, n = count < left ? count : left;
        const int64_t line0 = start / p->tile_columns, lines = (start + n - 1) / p->tile_columns - line0 + 1;
        const int64_t width = p->tile_columns * RESULTS + size - RESULTS;
        NAME(transpose_lines)(p, image, channel, channels, line0 * RESULTS - p->top, -p->left,
                         lines * RESULTS + size - RESULTS, width, workspace);
        for (int64_t tile = start; tile < start + n; tile++) {
            NAME(lanes) half[POINTS], found[POINTS];
            const NAME(lanes) *cut = (const NAME(lanes) *)workspace + (tile / p->tile_columns - line0) * RESULTS * width
                + tile % p->tile_columns * RESULTS;
            if (size == SOURCES) {
                for (int column = 0; column < SOURCES; column++)
                    SOURCE_VALUES((cut + column), width, (half + column), SOURCES);
                for (int row = 0; row < SOURCES; row++)
                    SOURCE_VALUES((half + row * SOURCES), 1, (found + row * SOURCES), 1);
            } else {
                for (int column = 0; column < RESULTS; column++)
                    RESULT_VALUES((cut + column), width, (half + column), RESULTS);
                for (int row = 0; row < SOURCES; row++)
                    RESULT_VALUES((half + row * RESULTS), 1, (found + row * SOURCES), 1);
            }
            for (int point = 0; point < POINTS; point++)
                *(NAME(lanes) *)(target + point * values->point_step) = found[point];
            target += values->tile_step;
        }
        first += n;
        count -= n;
    }
}

TARGET_CLONES
static void NAME(source_values)(const planes_t *planes, int64_t channel, int64_t channels, int64_t first,
                                int64_t count, REAL *target, const values_t *values, REAL *workspace) {
    NAME(cut_values)(planes, channel, channels, first, count, SOURCES, target, values, workspace);
}

TARGET_CLONES
static void NAME(result_values)(const planes_t *planes, int64_t channel, int64_t channels, int64_t first,
                                int64_t count, REAL *target, const values_t *values, REAL *workspace) {
    NAME(cut_values)(planes, channel, channels, first, count, RESULTS, target, values, workspace);
}

/* Return whether the first `channels` sums of x * 0 are 0: nan if an x was inf or nan. Other lanes are undefined. */
static inline __attribute__((always_inline)) int NAME(all_zero)(const NAME(lanes) *sums, int64_t channels) {
    int zero = 1;
    for (int lane = 0; lane < channels; lane++)
        zero &= (*sums)[lane] == 0;
    return zero;
}

/* Interpolate the results of up to LANES channels, add `bias` (one number per lane), and write planes; return whether all
   are finite. Tiles are those of whole lines, or of one line. */
TARGET_CLONES
static int NAME(put_results)(const planes_t *p, int64_t channel, int64_t channels, int64_t first, int64_t count,
                             const REAL *source, const values_t *values, const REAL *bias, REAL *workspace) {
    enum { LANES = 64 / sizeof(REAL) };
    CONSTANTS;
    NAME(lanes) finite = {0}, start = {0};
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
            NAME(lanes) half[RESULTS * SOURCES], results[RESULTS * RESULTS], found[POINTS];
            for (int point = 0; point < POINTS; point++)
                found[point] = *(const NAME(lanes) *)(source + point * values->point_step);
            for (int column = 0; column < SOURCES; column++)
                RESULTS_OF((found + column), SOURCES, (half + column), SOURCES);
            for (int row = 0; row < RESULTS; row++)
                RESULTS_OF((half + row * SOURCES), 1, (results + row * RESULTS), 1);
            const int64_t line = (tile / p->tile_columns - line0) * RESULTS;
            const int64_t column = tile % p->tile_columns * RESULTS;
            REAL *corner = workspace + (line * p->columns + column) * LANES;
            for (int i = 0; i < RESULTS; i++)
                for (int j = 0; j < RESULTS; j++) {
                    const NAME(lanes) result = results[i * RESULTS + j] + start;
                    finite += 0 * result;
                    if (line + i < lines && column + j < p->columns)
                        *(NAME(lanes) *)(corner + (i * p->columns + j) * LANES) = result;
                }
            source += values->tile_step;
        }
        REAL *plane = (REAL *)p->data + image * p->batch_step + channel * p->channel_step
            + line0 * RESULTS * p->columns;
        const int64_t stop = column0 + n * RESULTS < p->columns ? column0 + n * RESULTS : p->columns;
        if (column0 == 0 && stop == p->columns)
            NAME(transpose_back)(workspace, channels, lines * p->columns, plane, p->channel_step);
        else
            for (int64_t line = 0; line < lines; line++)
                NAME(transpose_back)(workspace + (line * p->columns + column0) * LANES, channels, stop - column0,
                                plane + line * p->columns + column0, p->channel_step);
        first += n;
        count -= n;
    }
    return NAME(all_zero)(&finite, channels);
}

/* Evaluate 3 x 3 kernels: `count` for each of at most LANES channels, `channel_step` apart; those of one channel are
   `step` apart; `back` rotates them by 180 degrees. */
TARGET_CLONES
static void NAME(kernel_values)(const REAL *kernels, int64_t channel_step, int64_t channels, int64_t step,
                                int64_t count, int back, REAL *target, const values_t *values) {
    enum { LANES = 64 / sizeof(REAL), GROUP = 16 };
    CONSTANTS;
    NAME(lanes) transposed[9 * GROUP], half[18], found[POINTS];
    for (int64_t k = 0; k < count; k++) {
        /* Adjacent kernels are transposed together. */
        if (step != 9)
            NAME(transpose)(kernels + k * step, channel_step, 1, channels, 9, (REAL *)transposed);
        else if (k % GROUP == 0)
            NAME(transpose)(kernels + k * step, channel_step, 1, channels,
                       9 * (count - k < GROUP ? count - k : GROUP), (REAL *)transposed);
        const NAME(lanes) *taps = transposed + (step == 9 ? 9 * (k % GROUP) : 0);
        if (back) {
            for (int column = 0; column < 3; column++)
                KERNEL_VALUES((taps + 8 - column), -3, (half + column), 3);
        } else {
            for (int column = 0; column < 3; column++)
                KERNEL_VALUES((taps + column), 3, (half + column), 3);
        }
        for (int row = 0; row < SOURCES; row++)
            KERNEL_VALUES((half + row * 3), 1, (found + row * SOURCES), 1);
        for (int point = 0; point < POINTS; point++)
            *(NAME(lanes) *)(target + k * values->tile_step + point * values->point_step) = found[point];
    }
}

/* Compute gradients of kernels from those of their values (see kernel_values); return whether all are finite. */
TARGET_CLONES
static int NAME(put_kernels)(const REAL *source, const values_t *values, int64_t channels, int64_t count,
                             REAL *kernels, int64_t channel_step) {
    CONSTANTS;
    NAME(lanes) finite = {0};
    for (int64_t k = 0; k < count; k++) {
        NAME(lanes) found[POINTS], half[18], taps[9];
        for (int point = 0; point < POINTS; point++)
            found[point] = *(const NAME(lanes) *)(source + k * values->tile_step + point * values->point_step);
        for (int column = 0; column < SOURCES; column++)
            KERNEL_OF((found + column), SOURCES, (half + column), SOURCES);
        for (int row = 0; row < 3; row++)
            KERNEL_OF((half + row * SOURCES), 1, (taps + row * 3), 1);
        for (int tap = 0; tap < 9; tap++)
            finite += 0 * taps[tap];
        NAME(transpose_back)((const REAL *)taps, channels, 9, kernels + k * 9, channel_step);
    }
    return NAME(all_zero)(&finite, channels);
}
