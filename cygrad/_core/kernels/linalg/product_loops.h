/* Matrix products; see product_blocks.h.

   A block of results stays in registers. Each sum is in order, with fused multiply-adds where the processor has them,
   so its bits do not depend on the block. */

constexpr int DOWN = SIMD_LEVEL == 2 ? 8 : 4, ACROSS = SIMD_LEVEL == 0 ? 2 : 3;

/* Compute `rows` x `across` vectors of results: the sum of a[row][step] * source[step], where a source is a line or,
   without `sources`, a row of b. Sums begin with `start`, one number per row, or zero; `addend`, which may be c, is
   added to the whole sum. */
template <class T> INLINE void block(
        const int rows, const int across, int64_t steps, const T *a, int64_t a_row, int64_t a_step, T *const *sources,
        const T *b, int64_t b_row, int64_t at, const T *start, const T *addend, int64_t addend_row, T *c,
        int64_t c_row) {
    vector_t<T> sums[DOWN][4];
    for (int row = 0; row < rows; row++)
        for (int k = 0; k < across; k++)
            sums[row][k] = vector_t<T>{} + (start ? start[row] : 0);
    b += at;
    for (int64_t step = 0; step < steps; step++) {
        const T *source = sources ? sources[step] + at : b;
        vector_t<T> line[4];
        for (int k = 0; k < across; k++)
            line[k] = load<T>(source + k * VECTOR_LANES<T>);
        for (int row = 0; row < rows; row++) {
            const vector_t<T> factor = every<T>(a[row * a_row]);
            for (int k = 0; k < across; k++)
                sums[row][k] = multiply_add(factor, line[k], sums[row][k]);
        }
        a += a_step;
        b += b_row;
    }
    for (int row = 0; row < rows; row++)
        for (int k = 0; k < across; k++) {
            if (addend)
                sums[row][k] = load<T>(addend + row * addend_row + at + k * VECTOR_LANES<T>) + sums[row][k];
            store(c + row * c_row + at + k * VECTOR_LANES<T>, sums[row][k]);
        }
}

/* Compute all rows of `across` vectors. */
template <class T> INLINE void column(
        const int across, int64_t rows, int64_t steps, const T *a, int64_t a_row, int64_t a_step, T *const *sources,
        const T *b, int64_t b_row, int64_t at, const T *start, const T *addend, int64_t addend_row, T *c,
        int64_t c_row) {
#define ROWS_OF(n) { \
        block<T>(n, across, steps, a, a_row, a_step, sources, b, b_row, at, start, addend, addend_row, c, c_row); \
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
template <class T> static void correlate(
        int64_t rows, int64_t flat, int64_t taps, T **sources, const T *weights, int64_t weight_step, const T *start,
        T *result, int64_t result_step) {
    int64_t at = 0;
    if (rows == 1) {            /* several vectors, to hide the latency of a single row's sums */
        for (; at + 4 * VECTOR_LANES<T> <= flat; at += 4 * VECTOR_LANES<T>)
            block<T>(1, 4, taps, weights, 0, 1, sources, NULL, 0, at, start, NULL, 0, result, 0);
        for (; at < flat; at += VECTOR_LANES<T>)
            block<T>(1, 1, taps, weights, 0, 1, sources, NULL, 0, at, start, NULL, 0, result, 0);
        return;
    }
    for (; at + ACROSS * VECTOR_LANES<T> <= flat; at += ACROSS * VECTOR_LANES<T>)
        column<T>(ACROSS, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result,
                  result_step);
    for (; at + 2 * VECTOR_LANES<T> <= flat; at += 2 * VECTOR_LANES<T>)
        column<T>(2, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result, result_step);
    for (; at < flat; at += VECTOR_LANES<T>)
        column<T>(1, rows, taps, weights, weight_step, 1, sources, NULL, 0, at, start, NULL, 0, result, result_step);
}

/* out[step * out_row + column] = b[column * b_column + step], for all steps and `width` columns. */
template <class T> INLINE void transpose(
        const T *b, int64_t b_column, int64_t steps, int64_t width, T *out, int64_t out_row) {
    (DOUBLE<T> ? transpose_doubles : transpose_words)((const char *)b, b_column * (int64_t)sizeof(T), (char *)out,
                                                      out_row * (int64_t)sizeof(T), steps, width);
}

#define ACROSS_OF(number) \
    column<T>(number, rows, steps, a, a_row, a_step, NULL, b, b_row, 0, NULL, addend, addend_row, c, c_row)
/* Compute all rows of up to ACROSS vectors. */
template <class T> static void columns(
        int64_t across, int64_t rows, int64_t steps, const T *a, int64_t a_row, int64_t a_step, const T *b,
        int64_t b_row, const T *addend, int64_t addend_row, T *c, int64_t c_row) {
    if (across == 1)
        ACROSS_OF(1);
    else if (across == 2)
        ACROSS_OF(2);
    else
        ACROSS_OF(3);
}
#undef ACROSS_OF

/* Return the number of vectors to take next of `n` columns: two and two are faster than three and one. */
template <class T> INLINE int64_t next_vectors(int64_t n) {
    const int64_t vectors = (n + VECTOR_LANES<T> - 1) / VECTOR_LANES<T>;
    return vectors == ACROSS + 1 ? (ACROSS + 1) / 2 : vectors < ACROSS ? vectors : ACROSS;
}

/* Pack lines of `width` elements of b, padded with zeros. */
template <class T> static void gather(
        const T *b, int64_t b_row, int64_t b_column, int64_t steps, int64_t width, T *out, int64_t out_row) {
    if (width < out_row)
        memset(out, 0, steps * out_row * sizeof(T));
    if (b_column != 1) {
        transpose<T>(b, b_column, steps, width, out, out_row);
        return;
    }
    for (int64_t step = 0; step < steps; step++)
        memcpy(out + step * out_row, b + step * b_row, width * sizeof(T));
}

/* c = a @ b. */
template <class T> static void multiply_by_lines(
        int64_t m, int64_t n, int64_t steps, const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_row,
        int64_t b_column, const T *addend, int64_t addend_row, T *c, int64_t c_row, T *workspace) {
    for (int64_t at = 0, width; at < n; at += width) {
        const int64_t across = next_vectors<T>(n - at);
        const T *source = b + at * b_column;
        int64_t source_row = b_row;
        width = across * VECTOR_LANES<T>;
        /* The last columns may be computed twice, unless that would overwrite the addend. */
        if (n - at < width && n >= width && addend != c) {
            at = n - width;
            source = b + at * b_column;
        }
        const int partial = n - at < width;
        width = partial ? n - at : width;
        if (partial || b_column != 1 || (m >= WORTH_COPYING && b_row * sizeof(T) % CONFLICT_STRIDE == 0)) {
            source_row = across * VECTOR_LANES<T>;
            gather<T>(source, b_row, b_column, steps, width, workspace, source_row);
            source = workspace;
        }
        if (!partial) {
            columns<T>(across, m, steps, a, a_row, a_step, source, source_row, addend ? addend + at : NULL,
                       addend_row, c + at, c_row);
            continue;
        }
        T *results = workspace + steps * source_row;
        for (int64_t first = 0, rows; first < m; first += rows) {
            T *target = c + first * c_row + at;
            rows = m - first < MAX_ROWS ? m - first : MAX_ROWS;
            for (int64_t row = 0; addend && row < rows; row++)
                memcpy(results + row * source_row, addend + (first + row) * addend_row + at, width * sizeof(T));
            columns<T>(across, rows, steps, a + first * a_row, a_row, a_step, source, source_row,
                       addend ? results : NULL, source_row, results, source_row);
            for (int64_t row = 0; row < rows; row++)
                memcpy(target + row * c_row, results + row * source_row, width * sizeof(T));
        }
    }
}

/* c = a @ b for contiguous columns of b, as the transpose of b^T @ a^T, which reads lines of a. */
template <class T> static void multiply_transposed(
        int64_t m, int64_t n, int64_t steps, const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_column,
        const T *addend, int64_t addend_row, T *c, int64_t c_row, T *workspace) {
    for (int64_t at = 0, width; at < m; at += width) {
        const int64_t across = next_vectors<T>(m - at), result_row = across * VECTOR_LANES<T>;
        T *results = workspace + steps * result_row, *transposed = results + MAX_ROWS * result_row;
        const T *source = a + at * a_row;
        int64_t source_row = a_step;
        width = m - at < result_row ? m - at : result_row;
        if (a_row != 1 || width < result_row || a_step * sizeof(T) % CONFLICT_STRIDE == 0) {
            source_row = result_row;
            gather<T>(source, a_step, a_row, steps, width, workspace, source_row);
            source = workspace;
        }
        for (int64_t first = 0, rows; first < n; first += rows) {
            T *target = c + at * c_row + first;
            rows = n - first < MAX_ROWS ? n - first : MAX_ROWS;
            columns<T>(across, rows, steps, b + first * b_column, b_column, 1, source, source_row, NULL, 0, results,
                       result_row);
            transpose<T>(results, result_row, width, rows, addend ? transposed : target, addend ? MAX_ROWS : c_row);
            for (int64_t row = 0; addend && row < width; row++)
                for (int64_t i = 0; i < rows; i++)
                    target[row * c_row + i] =
                        addend[(at + row) * addend_row + first + i] + transposed[row * MAX_ROWS + i];
        }
    }
}

/* c = a @ b (+ addend); see `multiply` in product_blocks.h. */
template <class T> static void multiply(
        int64_t m, int64_t n, int64_t k, const T *a, int64_t a_row, int64_t a_step, const T *b, int64_t b_row,
        int64_t b_column, const T *addend, int64_t addend_row, T *c, int64_t c_row, T *workspace) {
    const int64_t idle = (m + VECTOR_LANES<T> - 1) / VECTOR_LANES<T> * VECTOR_LANES<T> - m;
    /* Transposing an element takes about as long as ten multiplications. */
    const int transposed = (b_column != 1 && (a_step == 1 || a_row == 1)
                        && idle * n * k + 10 * m * (a_step == 1 ? n + k : n) < 10 * n * k);
    do {
        const int64_t steps = k < INNER ? k : INNER;
        if (transposed)
            multiply_transposed<T>(m, n, steps, a, a_row, a_step, b, b_column, addend, addend_row, c, c_row,
                                   workspace);
        else
            multiply_by_lines<T>(m, n, steps, a, a_row, a_step, b, b_row, b_column, addend, addend_row, c, c_row,
                                 workspace);
        a += steps * a_step;
        b += steps * b_row;
        k -= steps;
        addend = c;
        addend_row = c_row;
    } while (k > 0);
}

/* Add products of `rows` lines with `taps` sources, summed over `count` vectors, to `sums`. */
template <class T> INLINE void dots_block(
        const int rows, const int taps, int64_t count, const T *grad, int64_t grad_step, T **sources, int64_t at,
        double *sums, int64_t sum_step) {
    vector_t<T> totals[4][9];
    for (int row = 0; row < rows; row++)
        for (int tap = 0; tap < taps; tap++)
            totals[row][tap] = vector_t<T>{};
    for (int64_t i = 0; i < count; i++)
        for (int tap = 0; tap < taps; tap++) {
            const vector_t<T> source = load<T>(sources[tap] + at + i * VECTOR_LANES<T>);
            for (int row = 0; row < rows; row++)
                totals[row][tap] = multiply_add(load<T>(grad + row * grad_step + at + i * VECTOR_LANES<T>), source,
                                                totals[row][tap]);
        }
    for (int row = 0; row < rows; row++)
        for (int tap = 0; tap < taps; tap++) {
            double total = 0;
            if constexpr (VECTOR_LANES<T> >= 4) {
                typename vector_of<T, 4 * sizeof(T)>::type parts[VECTOR_LANES<T> / 4];
                memcpy(parts, &totals[row][tap], sizeof parts);
                for (int part = 1; part < VECTOR_LANES<T> / 4; part++)
                    parts[0] += parts[part];
                total = (parts[0][0] + parts[0][1]) + (parts[0][2] + parts[0][3]);
            } else {
                for (int lane = 0; lane < VECTOR_LANES<T>; lane++)
                    total += totals[row][tap][lane];
            }
            sums[row * sum_step + tap] += total;
        }
}

template <class T> INLINE void dots_rows(
        const int rows, int64_t count, int64_t taps, const T *grad, int64_t grad_step, T **sources, int64_t at,
        double *sums, int64_t sum_step) {
    constexpr int MOST = SIMD_LEVEL == 2 ? 6 : 3;
#define TAPS_OF(n) { \
        dots_block<T>(rows, n, count, grad, grad_step, sources, at, sums, sum_step); \
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
template <class T> static void dots(
        int64_t rows, int64_t flat, int64_t taps, int64_t run, const T *grad, int64_t grad_step, T **sources,
        double *sums) {
    for (int64_t at = 0; at < flat; at += run) {
        const int64_t count = (flat - at < run ? flat - at : run) / VECTOR_LANES<T>;
        int64_t row = 0;
        for (; row + 4 <= rows; row += 4)
            dots_rows<T>(4, count, taps, grad + row * grad_step, grad_step, sources, at, sums + row * taps, taps);
        for (; row < rows; row++)
            dots_rows<T>(1, count, taps, grad + row * grad_step, grad_step, sources, at, sums + row * taps, taps);
    }
}
