/* Averages of windows of one plane and their transpose, for one type. The includer defines REAL and NAME(function). */

static inline REAL NAME(divisor)(const pooling_t *p, const window_t *x, const window_t *y, const window_t *z) {
    if (p->divisor != 0)
        return (REAL)p->divisor;
    if (p->with_padding)
        return (REAL)(x->full * y->full * z->full);
    return (REAL)(x->count * y->count * z->count);
}

/* The sum of a line: in lanes, which the compiler makes a vector. */
static inline __attribute__((always_inline)) REAL NAME(line_total)(const REAL *line, int64_t n) {
    REAL lanes[8] = {0}, sum = 0;
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int lane = 0; lane < 8; lane++)
            lanes[lane] += line[k + lane];
    for (int lane = 0; lane < 8 && n >= 8; lane++)
        sum += lanes[lane];
    for (; k < n; k++)
        sum += line[k];
    return sum;
}

FOR_EACH_CPU
static void NAME(averages)(const pooling_t *p, const REAL *plane, REAL *values) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++)
            for (int64_t c = 0; c < p->out[2]; c++) {
                const window_t x = p->windows[0][a], y = p->windows[1][b], z = p->windows[2][c];
                REAL sum = 0;
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < y.count; j++) {
                        const REAL *line = plane + ((x.begin + i) * p->size[1] + y.begin + j) * p->size[2] + z.begin;
                        if (z.count >= 8)
                            sum += NAME(line_total)(line, z.count);
                        else
                            for (int64_t k = 0; k < z.count; k++)
                                sum += line[k];
                    }
                *values++ = x.count * y.count * z.count > 0 ? sum / NAME(divisor)(p, &x, &y, &z) : 0;
            }
}

/* Each element of `grad` shared equally by the elements of its window; `plane` starts at zero. */
FOR_EACH_CPU
static void NAME(shares)(const pooling_t *p, const REAL *grad, REAL *plane) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++)
            for (int64_t c = 0; c < p->out[2]; c++) {
                const window_t x = p->windows[0][a], y = p->windows[1][b], z = p->windows[2][c];
                const REAL value = *grad++;
                if (x.count * y.count * z.count == 0)
                    continue;
                const REAL share = value / NAME(divisor)(p, &x, &y, &z);
                for (int64_t i = 0; i < x.count; i++)
                    for (int64_t j = 0; j < y.count; j++) {
                        REAL *line = plane + ((x.begin + i) * p->size[1] + y.begin + j) * p->size[2] + z.begin;
                        for (int64_t k = 0; k < z.count; k++)
                            line[k] += share;
                    }
            }
}
