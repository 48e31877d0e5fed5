/* Matrix products for one real type and one SIMD target; see product_blocks.h.

   A block of results stays in registers. Each sum is in order, with fused multiply-adds where the processor has them,
   so its bits do not depend on the block. */

#if SIMD_LEVEL == 2
#define BYTES 64
#define DOWN 8
#define ACROSS 3
#if DOUBLE
#define FUSE(a, b, c) (NAME(lanes))_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#else
#define FUSE(a, b, c) (NAME(lanes))_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#endif
#elif SIMD_LEVEL == 1
#define BYTES 32
#define DOWN 4
#define ACROSS 3
#if DOUBLE
#define FUSE(a, b, c) (NAME(lanes))_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#else
#define FUSE(a, b, c) (NAME(lanes))_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#endif
#else
#define BYTES 16
#define DOWN 4
#define ACROSS 2
#define FUSE(a, b, c) ((a) * (b) + (c))
#endif
#define LANES ((int64_t)(BYTES / sizeof(REAL)))

typedef REAL NAME(lanes) __attribute__((vector_size(BYTES)));                               /* in registers */
typedef REAL NAME(wide) __attribute__((vector_size(BYTES), aligned(sizeof(REAL)), may_alias));          /* in memory */

/* Compute `rows` x `across` vectors of results: the sum of a[row][step] * source[step], where a source is a line or,
   without `sources`, a row of b. Sums begin with `start`, one number per row, or zero; `addend`, which may be c, is
   added to the whole sum. */
INLINE void NAME(block)(const int rows, const int across, int64_t steps, const REAL *a, int64_t a_row, int64_t a_step,
                        REAL *const *sources, const REAL *b, int64_t b_row, int64_t at, const REAL *start,
                        const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row) {
    NAME(lanes) sums[DOWN][4];
    for (int row = 0; row < rows; row++)
        for (int k = 0; k < across; k++)
            sums[row][k] = (NAME(lanes)){0} + (start ? start[row] : 0);
    b += at;
    for (int64_t step = 0; step < steps; step++) {
        const NAME(wide) *source = (const NAME(wide) *)(sources ? sources[step] + at : b);
        NAME(lanes) line[4];
        for (int k = 0; k < across; k++)
            line[k] = source[k];
        for (int row = 0; row < rows; row++) {
            const NAME(lanes) factor = a[row * a_row] - (NAME(lanes)){0};      /* in all lanes */
            for (int k = 0; k < across; k++)
                sums[row][k] = FUSE(factor, line[k], sums[row][k]);
        }
        a += a_step;
        b += b_row;
    }
    for (int row = 0; row < rows; row++)
        for (int k = 0; k < across; k++) {
            if (addend)
                sums[row][k] = *((const NAME(wide) *)(addend + row * addend_row + at) + k) + sums[row][k];
            *((NAME(wide) *)(c + row * c_row + at) + k) = sums[row][k];
        }
}

/* Compute all rows of `across` vectors. */
INLINE void NAME(column)(const int across, int64_t rows, int64_t steps, const REAL *a, int64_t a_row, int64_t a_step,
                         REAL *const *sources, const REAL *b, int64_t b_row, int64_t at, const REAL *start,
                         const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row) {
#define ROWS_OF(n) { \
        NAME(block)(n, across, steps, a, a_row, a_step, sources, b, b_row, at, start, addend, addend_row, c, c_row); \
        a += n * a_row; \
        c += n * c_row; \
        start += start ? n : 0; \
        addend += addend ? n * addend_row : 0; \
        rows -= n; \
    }
    while (rows >= DOWN)
        ROWS_OF(DOWN)
    if (DOWN > 4 && rows >= 4)
        ROWS_OF(4)
    if (rows >= 2)
        ROWS_OF(2)
    if (rows >= 1)
        ROWS_OF(1)
#undef ROWS_OF
}

/* result[row] = start[row] + sum of weights[row][tap] * sources[tap]. May access up to a vector beyond the end. */
static void NAME(correlate)(int64_t rows, int64_t flat, int64_t taps, REAL **sources, const REAL *weights,
                            int64_t weight_step, const REAL *start, REAL *result, int64_t result_step) {
    int64_t at = 0;
    if (rows == 1) {            /* several vectors, to hide the latency of a single row's sums */
        for (; at + 4 * LANES <= flat; at += 4 * LANES)
            NAME(block)(1, 4, taps, weights, 0, 1, sources, NULL, 0, at, start, NULL, 0, result, 0);
        for (; at < flat; at += LANES)
            NAME(block)(1, 1, taps, weights, 0, 1, sources, NULL, 0, at, start, NULL, 0, result, 0);
        return;
    }
    for (; at + ACROSS * LANES <= flat; at += ACROSS * LANES)
        NAME(column)(ACROSS, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result,
                     result_step);
    for (; at + 2 * LANES <= flat; at += 2 * LANES)
        NAME(column)(2, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result, result_step);
    for (; at < flat; at += LANES)
        NAME(column)(1, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result, result_step);
}

/* out[step * out_row + column] = b[column * b_column + step], for all steps and `width` columns. */
INLINE void NAME(transpose)(const REAL *b, int64_t b_column, int64_t steps, int64_t width, REAL *out, int64_t out_row) {
    (DOUBLE ? transpose_doubles : transpose_words)((const char *)b, b_column * (int64_t)sizeof(REAL), (char *)out,
                                         out_row * (int64_t)sizeof(REAL), steps, width);
}

#define ACROSS_OF(number) NAME(column)(number, rows, steps, a, a_row, a_step, NULL, b, b_row, 0, NULL, addend, addend_row, \
                                       c, c_row)
/* Compute all rows of up to ACROSS vectors. */
static void NAME(columns)(int64_t across, int64_t rows, int64_t steps, const REAL *a, int64_t a_row, int64_t a_step,
                          const REAL *b, int64_t b_row, const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row) {
    if (across == 1)
        ACROSS_OF(1);
    else if (across == 2)
        ACROSS_OF(2);
    else
        ACROSS_OF(3);
}
#undef ACROSS_OF

/* Return the number of vectors to take next of `n` columns: two and two are faster than three and one. */
INLINE int64_t NAME(next_vectors)(int64_t n) {
    const int64_t vectors = (n + LANES - 1) / LANES;
    return vectors == ACROSS + 1 ? (ACROSS + 1) / 2 : vectors < ACROSS ? vectors : ACROSS;
}

/* Pack lines of `width` elements of b, padded with zeros. */
static void NAME(gather)(const REAL *b, int64_t b_row, int64_t b_column, int64_t steps, int64_t width, REAL *out,
                         int64_t out_row) {
    if (width < out_row)
        memset(out, 0, steps * out_row * sizeof(REAL));
    if (b_column != 1) {
        NAME(transpose)(b, b_column, steps, width, out, out_row);
        return;
    }
    for (int64_t step = 0; step < steps; step++)
        memcpy(out + step * out_row, b + step * b_row, width * sizeof(REAL));
}

/* c = a @ b. */
static void NAME(multiply_by_lines)(int64_t m, int64_t n, int64_t steps, const REAL *a, int64_t a_row, int64_t a_step,
                                    const REAL *b, int64_t b_row, int64_t b_column, const REAL *addend,
                                    int64_t addend_row, REAL *c, int64_t c_row, REAL *workspace) {
    for (int64_t at = 0, width; at < n; at += width) {
        const int64_t across = NAME(next_vectors)(n - at);
        const REAL *source = b + at * b_column;
        int64_t source_row = b_row;
        width = across * LANES;
        /* The last columns may be computed twice, unless that would overwrite the addend. */
        if (n - at < width && n >= width && addend != c) {
            at = n - width;
            source = b + at * b_column;
        }
        const int partial = n - at < width;
        width = partial ? n - at : width;
        if (partial || b_column != 1 || (m >= WORTH_COPYING && b_row * sizeof(REAL) % CONFLICT_STRIDE == 0)) {
            source_row = across * LANES;
            NAME(gather)(source, b_row, b_column, steps, width, workspace, source_row);
            source = workspace;
        }
        if (!partial) {
            NAME(columns)(across, m, steps, a, a_row, a_step, source, source_row, addend ? addend + at : NULL,
                          addend_row, c + at, c_row);
            continue;
        }
        REAL *results = workspace + steps * source_row;
        for (int64_t first = 0, rows; first < m; first += rows) {
            REAL *target = c + first * c_row + at;
            rows = m - first < MAX_ROWS ? m - first : MAX_ROWS;
            for (int64_t row = 0; addend && row < rows; row++)
                memcpy(results + row * source_row, addend + (first + row) * addend_row + at, width * sizeof(REAL));
            NAME(columns)(across, rows, steps, a + first * a_row, a_row, a_step, source, source_row,
                          addend ? results : NULL, source_row, results, source_row);
            for (int64_t row = 0; row < rows; row++)
                memcpy(target + row * c_row, results + row * source_row, width * sizeof(REAL));
        }
    }
}

/* c = a @ b for contiguous columns of b, as the transpose of b^T @ a^T, which reads lines of a. */
static void NAME(multiply_transposed)(int64_t m, int64_t n, int64_t steps, const REAL *a, int64_t a_row, int64_t a_step,
                                  const REAL *b, int64_t b_column, const REAL *addend, int64_t addend_row, REAL *c,
                                  int64_t c_row, REAL *workspace) {
    for (int64_t at = 0, width; at < m; at += width) {
        const int64_t across = NAME(next_vectors)(m - at), result_row = across * LANES;
        REAL *results = workspace + steps * result_row, *transposed = results + MAX_ROWS * result_row;
        const REAL *source = a + at * a_row;
        int64_t source_row = a_step;
        width = m - at < result_row ? m - at : result_row;
        if (a_row != 1 || width < result_row || a_step * sizeof(REAL) % CONFLICT_STRIDE == 0) {
            source_row = result_row;
            NAME(gather)(source, a_step, a_row, steps, width, workspace, source_row);
            source = workspace;
        }
        for (int64_t first = 0, rows; first < n; first += rows) {
            REAL *target = c + at * c_row + first;
            rows = n - first < MAX_ROWS ? n - first : MAX_ROWS;
            NAME(columns)(across, rows, steps, b + first * b_column, b_column, 1, source, source_row, NULL, 0, results,
                          result_row);
            NAME(transpose)(results, result_row, width, rows, addend ? transposed : target, addend ? MAX_ROWS : c_row);
            for (int64_t row = 0; addend && row < width; row++)
                for (int64_t i = 0; i < rows; i++)
                    target[row * c_row + i] =
                        addend[(at + row) * addend_row + first + i] + transposed[row * MAX_ROWS + i];
        }
    }
}

/* c = a @ b (+ addend); see `multiply` in product_blocks.h. */
static void NAME(multiply)(int64_t m, int64_t n, int64_t k, const REAL *a, int64_t a_row, int64_t a_step, const REAL *b,
                           int64_t b_row, int64_t b_column, const REAL *addend, int64_t addend_row, REAL *c,
                           int64_t c_row, REAL *workspace) {
    const int64_t idle = (m + LANES - 1) / LANES * LANES - m;
    /* Transposing an element takes about as long as ten multiplications. */
    const int transposed = (b_column != 1 && (a_step == 1 || a_row == 1)
                        && idle * n * k + 10 * m * (a_step == 1 ? n + k : n) < 10 * n * k);
    do {
        const int64_t steps = k < INNER ? k : INNER;
        if (transposed)
            NAME(multiply_transposed)(m, n, steps, a, a_row, a_step, b, b_column, addend, addend_row, c, c_row,
                                      workspace);
        else
            NAME(multiply_by_lines)(m, n, steps, a, a_row, a_step, b, b_row, b_column, addend, addend_row, c, c_row,
                                    workspace);
        a += steps * a_step;
        b += steps * b_row;
        k -= steps;
        addend = c;
        addend_row = c_row;
    } while (k > 0);
}

/* Add products of `rows` lines with `taps` sources, summed over `count` vectors, to `sums`. */
INLINE void NAME(dots_block)(const int rows, const int taps, int64_t count, const REAL *grad, int64_t grad_step,
                             REAL **sources, int64_t at, double *sums, int64_t sum_step) {
    typedef REAL four __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
    NAME(lanes) totals[4][9];
    for (int row = 0; row < rows; row++)
        for (int tap = 0; tap < taps; tap++)
            totals[row][tap] = (NAME(lanes)){0};
    for (int64_t i = 0; i < count; i++)
        for (int tap = 0; tap < taps; tap++) {
            const NAME(lanes) source = *(const NAME(wide) *)(sources[tap] + at + i * LANES);
            for (int row = 0; row < rows; row++)
                totals[row][tap] = FUSE(*(const NAME(wide) *)(grad + row * grad_step + at + i * LANES), source,
                                        totals[row][tap]);
        }
    for (int row = 0; row < rows; row++)
        for (int tap = 0; tap < taps; tap++) {
            double total = 0;
            if (LANES >= 4) {
                const four *parts = (const four *)&totals[row][tap];
                four sum = parts[0];
                for (int part = 1; part < LANES / 4; part++)
                    sum += parts[part];
                total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            } else {
                for (int lane = 0; lane < LANES; lane++)
                    total += totals[row][tap][lane];
            }
            sums[row * sum_step + tap] += total;
        }
}

INLINE void NAME(dots_rows)(const int rows, int64_t count, int64_t taps, const REAL *grad, int64_t grad_step,
                            REAL **sources, int64_t at, double *sums, int64_t sum_step) {
    enum { MOST = BYTES == 64 && DOWN == 8 ? 6 : 3 };
#define TAPS_OF(n) { \
        NAME(dots_block)(rows, n, count, grad, grad_step, sources, at, sums, sum_step); \
        taps -= n; \
        sources += n; \
        sums += n; \
    }
    while (taps >= 9 && rows == 1)
        TAPS_OF(9)
    while (taps >= MOST)
        TAPS_OF(MOST)
    while (taps >= 3)
        TAPS_OF(3)
    while (taps > 0)
        TAPS_OF(1)
#undef TAPS_OF
}

/* sums[row][tap] += <line `row` of the gradient, source `tap`>; zeros separate lines of the gradient. See `dots` in
   product_blocks.h. */
static void NAME(dots)(int64_t rows, int64_t flat, int64_t taps, int64_t run, const REAL *grad, int64_t grad_step,
                       REAL **sources, double *sums) {
    for (int64_t at = 0; at < flat; at += run) {
        const int64_t count = (flat - at < run ? flat - at : run) / LANES;
        int64_t row = 0;
        for (; row + 4 <= rows; row += 4)
            NAME(dots_rows)(4, count, taps, grad + row * grad_step, grad_step, sources, at, sums + row * taps, taps);
        for (; row < rows; row++)
            NAME(dots_rows)(1, count, taps, grad + row * grad_step, grad_step, sources, at, sums + row * taps, taps);
    }
}

#undef BYTES
#undef DOWN
#undef ACROSS
#undef FUSE
#undef LANES
