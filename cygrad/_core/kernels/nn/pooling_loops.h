/* Window maxima of one plane, for one type. The includer defines REAL, LOWEST, NAME(function) and IS_NAN(x).

   The first of the largest elements wins, or the last nan. A window of padding alone, possible with dilation, has the
   index -1. */

static inline __attribute__((always_inline)) void NAME(maximum)(
        const pooling_t *p, const REAL *plane, const window_t *x, const window_t *y, const window_t *z,
        REAL *result, int64_t *index) {
    if (x->count * y->count * z->count == 0) {
        *result = LOWEST;
        *index = -1;
        return;
    }
    int64_t best = (x->begin * p->size[1] + y->begin) * p->size[2] + z->begin;
    REAL value = plane[best];
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++) {
            const int64_t line = ((x->begin + i * p->step[0]) * p->size[1] + y->begin + j * p->step[1]) * p->size[2]
                + z->begin;
            for (int64_t k = 0; k < z->count; k++) {
                const int64_t at = line + k * p->step[2];
                const REAL other = plane[at];
                if (other > value || IS_NAN(other)) {
                    value = other;
                    best = at;
                }
            }
        }
    *result = value;
    *index = best;
}

/* Compute n <= LANES adjacent windows inside a line, `stride` apart, vectorized over `lanes` windows. */
static inline __attribute__((always_inline)) void NAME(neighbors)(
        const pooling_t *p, const REAL *plane, const window_t *x, const window_t *y, const window_t *z, int n,
        const int lanes, const int64_t stride, REAL *values, int64_t *indices) {
    const int64_t origin = (x->begin * p->size[1] + y->begin) * p->size[2] + z->begin;
    REAL best[LANES];
    int32_t places[LANES];
    for (int lane = 0; lane < lanes; lane++) {
        best[lane] = plane[origin + lane * stride];
        places[lane] = 0;
    }
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t j = 0; j < y->count; j++)
            for (int64_t k = 0; k < z->count; k++) {
                const int64_t place = (i * p->step[0] * p->size[1] + j * p->step[1]) * p->size[2] + k * p->step[2];
                const REAL *source = plane + origin + place;
                for (int lane = 0; lane < lanes; lane++) {
                    const REAL value = source[lane * stride];
                    const int better = (value > best[lane]) | IS_NAN(value);
                    best[lane] = better ? value : best[lane];
                    places[lane] = better ? (int32_t)place : places[lane];
                }
            }
    for (int lane = 0; lane < n; lane++) {
        values[lane] = best[lane];
        indices[lane] = origin + lane * stride + places[lane];
    }
}

/* Call `neighbors` with whole vectors if the plane is long enough; return number of windows. */
static inline __attribute__((always_inline)) int NAME(some_neighbors)(
        const pooling_t *p, const REAL *plane, const window_t *x, const window_t *y, const window_t *z, int64_t left,
        const int64_t stride, REAL *values, int64_t *indices) {
    const int n = left < LANES ? (int)left : LANES, lanes = (n + WHOLE_LANES - 1) / WHOLE_LANES * WHOLE_LANES;
    const int64_t last = ((x->begin + (x->count - 1) * p->step[0]) * p->size[1] + y->begin
                          + (y->count - 1) * p->step[1]) * p->size[2] + z->begin + (z->count - 1) * p->step[2];
    /* With a stride, vectors are assembled from single elements: fewer lanes are faster. */
    const int whole = stride == 1 && last + lanes - 1 < p->size[0] * p->size[1] * p->size[2];
    if (n == LANES)
        NAME(neighbors)(p, plane, x, y, z, LANES, LANES, stride, values, indices);
    else
        NAME(neighbors)(p, plane, x, y, z, n, whole ? lanes : n, stride, values, indices);
    return n;
}

TARGET_CLONES
static void NAME(maxima)(const pooling_t *p, const REAL *plane, REAL *values, int64_t *indices) {
    for (int64_t a = 0; a < p->out[0]; a++)
        for (int64_t b = 0; b < p->out[1]; b++) {
            const window_t x = p->windows[0][a], y = p->windows[1][b];
            int64_t c = 0;
            while (c < p->out[2]) {
                const window_t z = p->windows[2][c];
                const int64_t left = c < p->inner_first ? 0 : p->inner_last - c;
                if (left >= 4 && x.count > 0 && y.count > 0) {
                    const int n = p->inner_stride == 1
                        ? NAME(some_neighbors)(p, plane, &x, &y, &z, left, 1, values, indices)
                        : p->inner_stride == 2 ? NAME(some_neighbors)(p, plane, &x, &y, &z, left, 2, values, indices)
                        : NAME(some_neighbors)(p, plane, &x, &y, &z, left, p->inner_stride, values, indices);
                    c += n;
                    values += n;
                    indices += n;
                } else {
                    NAME(maximum)(p, plane, &x, &y, &z, values++, indices++);
                    c++;
                }
            }
        }
}
