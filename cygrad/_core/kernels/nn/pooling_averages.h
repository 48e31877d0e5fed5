/* Window averages of one plane and their transpose, for one type. The includer defines REAL and NAME(function). */

static inline REAL NAME(divisor)(const pooling_t *p, const window_t *x, const window_t *y, const window_t *z) {
    if (p->divisor != 0)
        return (REAL)p->divisor;
    if (p->with_padding)
        return (REAL)(x->full * y->full * z->full);
    return (REAL)(x->count * y->count * z->count);
}

/* Dividing the smallest integer by -1 raises a processor exception. */
static inline REAL NAME(quotient)(REAL sum, REAL divisor) {
    return divisor == (REAL)-1 ? -sum : sum / divisor;
}

/* Sum contiguous elements in lanes, which the compiler vectorizes. */
static inline __attribute__((always_inline)) REAL NAME(line_total)(const REAL *line, int64_t n) {
    REAL lanes[LANES] = {0}, sum = 0;
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += line[k + lane];
    for (int lane = 0; lane < LANES && n >= LANES; lane++)
        sum += lanes[lane];
    for (; k < n; k++)
        sum += line[k];
    return sum;
}

/* Average one window. */
static inline __attribute__((always_inline)) REAL NAME(average)(
        const pooling_t *p, const REAL *plane, const window_t *x, const window_t *y, const window_t *z) {
    REAL sum = 0;
    if (x->count * y->count * z->count == 0)
        return 0;
    for (int64_t i = 0; i < x->count; i++) {
        const REAL *line = plane + ((x->begin + i) * p->size[1] + y->begin) * p->size[2] + z->begin;
        if (z->count == p->size[2])
            sum += NAME(line_total)(line, y->count * z->count);
        else
            for (int64_t j = 0; j < y->count; j++)
                sum += NAME(line_total)(line + j * p->size[2], z->count);
    }
    return NAME(quotient)(sum, NAME(divisor)(p, x, y, z));
}

/* Average n adjacent windows that are not cut by padding: sum columns, then adjacent columns. */
static inline __attribute__((always_inline)) void NAME(neighbor_averages)(
        const pooling_t *p, const REAL *plane, const window_t *x, const window_t *y, const window_t *z, int64_t n,
        const int64_t stride, REAL *values) {
    REAL columns[SEGMENT], sums[SEGMENT];
    const int64_t length = (n - 1) * stride + z->count;
    const REAL divisor = NAME(divisor)(p, x, y, z);
    for (int64_t m = 0; m < length; m++)
        columns[m] = 0;
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            const REAL *line = plane + ((x->begin + i) * p->size[1] + y->begin + j) * p->size[2] + z->begin;
            for (int64_t m = 0; m < length; m++)
                columns[m] += line[m];
        }
    for (int64_t c = 0; c < n; c++)
        sums[c] = columns[c * stride];
    for (int64_t k = 1; k < z->count; k++)
        for (int64_t c = 0; c < n; c++)
            sums[c] += columns[c * stride + k];
    for (int64_t c = 0; c < n; c++)
        values[c] = NAME(quotient)(sums[c], divisor);
}

TARGET_CLONES
static void NAME(averages)(const pooling_t *p, const REAL *plane, REAL *values) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t n = x.count > 0 && y.count > 0 ? windows_of_segment(p, c) : 0;
                if (n < 4) {
                    *values++ = NAME(average)(p, plane, &x, &y, &z);
                    c++;
                    continue;
                }
                if (p->inner_stride == 1)
                    NAME(neighbor_averages)(p, plane, &x, &y, &z, n, 1, values);
                else if (p->inner_stride == 2)
                    NAME(neighbor_averages)(p, plane, &x, &y, &z, n, 2, values);
                else
                    NAME(neighbor_averages)(p, plane, &x, &y, &z, n, p->inner_stride, values);
                values += n;
                c += n;
            }
        }
}

/* Transpose of neighbor_averages: a column gets the same in all lines of the windows. */
static inline __attribute__((always_inline)) void NAME(neighbor_shares)(
        const pooling_t *p, const REAL *grad, const window_t *x, const window_t *y, const window_t *z, int64_t n,
        const int64_t stride, REAL *plane) {
    REAL shares[2 * SEGMENT], columns[SEGMENT];
    const int64_t length = (n - 1) * stride + z->count, zeros = stride == 1 ? z->count - 1 : 0;
    const REAL divisor = NAME(divisor)(p, x, y, z);
    for (int64_t k = 0; k < zeros; k++)
        shares[k] = shares[zeros + n + k] = 0;
    for (int64_t c = 0; c < n; c++)
        shares[zeros + c] = NAME(quotient)(grad[c], divisor);
    for (int64_t m = 0; m < length; m++)
        columns[m] = 0;
    for (int64_t k = 0; k < z->count; k++) {
        if (stride == 1)
            for (int64_t m = 0; m < length; m++)
                columns[m] += shares[zeros - k + m];
        else
            for (int64_t c = 0; c < n; c++)
                columns[c * stride + k] += shares[c];
    }
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            REAL *line = plane + ((x->begin + i) * p->size[1] + y->begin + j) * p->size[2] + z->begin;
            for (int64_t m = 0; m < length; m++)
                line[m] += columns[m];
        }
}

/* Distribute each element of `grad` equally to its window; `plane` starts at zero. */
TARGET_CLONES
static void NAME(shares)(const pooling_t *p, const REAL *grad, REAL *plane) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t n = x.count > 0 && y.count > 0 ? windows_of_segment(p, c) : 0;
                if (n >= 4) {
                    if (p->inner_stride == 1)
                        NAME(neighbor_shares)(p, grad, &x, &y, &z, n, 1, plane);
                    else if (p->inner_stride == 2)
                        NAME(neighbor_shares)(p, grad, &x, &y, &z, n, 2, plane);
                    else
                        NAME(neighbor_shares)(p, grad, &x, &y, &z, n, p->inner_stride, plane);
                    grad += n;
                    c += n;
                    continue;
                }
                c++;
                const REAL value = *grad++;
                if (x.count * y.count * z.count == 0)
                    continue;
                const REAL share = NAME(quotient)(value, NAME(divisor)(p, &x, &y, &z));
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < y.count; j++) {
                        REAL *line = plane + ((x.begin + i) * p->size[1] + y.begin + j) * p->size[2] + z.begin;
                        for (int64_t k = 0; k < z.count; k++)
                            line[k] += share;
                    }
            }
        }
}
