/* Reading along grids, for one type and one instruction set; see grid.h. */
#define ROUND_DOWN(x) (DOUBLE ? (REAL)floor(x) : (REAL)floorf((float)(x)))

/* Positions that the mode moves into the image, and how fast they move then. */
INLINE void NAME(grid_inside)(REAL *restrict at, REAL *restrict slope, int64_t count, int64_t size, int padding,
                              int align) {
    const REAL last = (REAL)(size - 1), low = align ? 0 : (REAL)-0.5, span = align ? last : (REAL)size;
    if (padding == GRID_ZEROS)
        return;
    if (padding == GRID_REFLECTION)
        for (int64_t i = 0; i < count; i++) {
            const REAL x = at[i] - low, distance = x < 0 ? -x : x;
            const REAL turns = span > 0 ? ROUND_DOWN(distance / span) : 0, rest = span > 0 ? distance - turns * span : 0;
            const int odd = turns != 2 * ROUND_DOWN(turns / 2);
            at[i] = odd ? low + span - rest : low + rest;
            slope[i] = span > 0 ? (odd != (x < 0) ? -slope[i] : slope[i]) : 0;
        }
    for (int64_t i = 0; i < count; i++) {
        const REAL x = at[i];
        slope[i] = x < 0 ? 0 : x > last ? 0 : slope[i];
        at[i] = x < 0 ? 0 : x > last ? last : x;
    }
}

/* The taps of one coordinate: their places, -1 outside of the image, and weights that are differentiated so often. */
static void NAME(grid_axis)(const grid_t *g, int axis, int order, const REAL *grid, int64_t count,
                            int32_t (*restrict places)[GRID_BLOCK], REAL (*restrict weights)[GRID_BLOCK]) {
    REAL at[GRID_BLOCK], slope[GRID_BLOCK], part[GRID_BLOCK], place[GRID_BLOCK], unused[GRID_BLOCK];
    const int64_t size = g->sizes[axis], step = g->n;
    const REAL last = (REAL)(size - 1), half = (g->align ? last : (REAL)size) / 2;
    for (int64_t i = 0; i < count; i++) {
        const REAL from_left = grid[i * step + axis] + 1;
        at[i] = g->align ? from_left * half : (from_left * (REAL)size - 1) / 2;
        slope[i] = half;
        unused[i] = 0;
    }
    if (g->mode != GRID_CUBIC)
        NAME(grid_inside)(at, slope, count, size, g->padding, g->align);
    if (g->mode == GRID_NEAREST)
        for (int64_t i = 0; i < count; i++)
            at[i] = DOUBLE ? (REAL)nearbyint(at[i]) : (REAL)nearbyintf((float)at[i]);
    for (int64_t i = 0; i < count; i++) {
        const REAL low = ROUND_DOWN(at[i]);
        part[i] = at[i] - low;
        at[i] = low;
    }
    for (int tap = 0; tap < g->taps; tap++) {
        REAL c[4] = {0};
        for (int power = order; power < 4; power++) {
            double factor = grid_polynomials[g->mode][tap][power];
            for (int k = 0; k < order; k++)
                factor *= power - k;
            c[power - order] = (REAL)factor;
        }
        if (places) {
            const REAL ahead = (REAL)(g->mode == GRID_CUBIC ? tap - 1 : tap);
            for (int64_t i = 0; i < count; i++)
                place[i] = at[i] + ahead;
            if (g->mode == GRID_CUBIC)
                NAME(grid_inside)(place, unused, count, size, g->padding, g->align);
            for (int64_t i = 0; i < count; i++) {
                const REAL here = place[i] >= 0 && place[i] <= last ? place[i] : -1;    /* nan is outside, too */
                places[tap][i] = (int32_t)here;
            }
        }
        if (g->mode == GRID_CUBIC)
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] = ((c[3] * part[i] + c[2]) * part[i] + c[1]) * part[i] + c[0];
        else
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] = c[1] * part[i] + c[0];
        for (int k = 0; k < order; k++)
            for (int64_t i = 0; i < count; i++)
                weights[tap][i] *= slope[i];
    }
}

static void NAME(grid_taps)(const grid_t *g, const REAL *grid, int64_t begin, int64_t count, int32_t *places,
                            REAL *weights) {
    int32_t at[3][GRID_TAPS][GRID_BLOCK];
    REAL weight[3][GRID_TAPS][GRID_BLOCK];
    const int taps = g->taps, planes = g->n == 3 ? taps : 1;
    for (int axis = 0; axis < g->n; axis++)
        NAME(grid_axis)(g, axis, g->order[axis], grid + begin * g->n, count, at[axis], weight[axis]);
    places += begin;
    weights += begin;
    for (int z = 0; z < planes; z++)
        for (int y = 0; y < taps; y++)
            for (int x = 0; x < taps; x++, places += g->points, weights += g->points) {
                const int32_t width = (int32_t)g->sizes[0], height = (int32_t)g->sizes[1];
                const int32_t *restrict column = at[0][x], *restrict row = at[1][y], *restrict plane = at[2][z];
                const REAL *restrict a = weight[0][x], *restrict b = weight[1][y], *restrict c = weight[2][z];
                if (g->n == 2)
                    for (int64_t i = 0; i < count; i++) {
                        places[i] = (column[i] | row[i]) < 0 ? -1 : row[i] * width + column[i];
                        weights[i] = b[i] * a[i];
                    }
                else
                    for (int64_t i = 0; i < count; i++) {
                        places[i] = (column[i] | row[i] | plane[i]) < 0 ? -1
                            : (plane[i] * height + row[i]) * width + column[i];
                        weights[i] = c[i] * b[i] * a[i];
                    }
            }
}

static void NAME(grid_slopes)(const grid_t *g, const REAL *grid, int64_t begin, int64_t count, int along,
                              const REAL *in, REAL *out) {
    REAL weight[3][GRID_TAPS][GRID_BLOCK], slope[3][GRID_TAPS][GRID_BLOCK], sums[3][GRID_BLOCK], turn[3][GRID_BLOCK];
    const int taps = g->taps, n = g->n, all = n == 3 ? taps * taps * taps : taps * taps;
    for (int axis = 0; axis < n; axis++) {
        NAME(grid_axis)(g, axis, g->order[axis], grid + begin * n, count, NULL, weight[axis]);
        NAME(grid_axis)(g, axis, g->order[axis] + 1, grid + begin * n, count, NULL, slope[axis]);
        for (int64_t i = 0; i < count; i++) {
            sums[axis][i] = 0;
            turn[axis][i] = along ? in[(begin + i) * n + axis] : 0;
        }
    }
    for (int k = 0; k < all; k++) {
        const int tap[3] = {k % taps, k / taps % taps, k / taps / taps};
        const REAL *restrict given = along ? NULL : in + k * g->points + begin;
        REAL *restrict made = along ? out + k * g->points + begin : NULL;
        for (int axis = 0; axis < n; axis++) {
            const int next = (axis + 1) % n, other = (axis + 2) % n;
            const REAL *restrict a = slope[axis][tap[axis]], *restrict b = weight[next][tap[next]];
            const REAL *restrict c = weight[other][tap[other]];
            REAL product[GRID_BLOCK];
            for (int64_t i = 0; i < count; i++)
                product[i] = n == 3 ? a[i] * b[i] * c[i] : a[i] * b[i];
            if (along)
                for (int64_t i = 0; i < count; i++)
                    made[i] = (axis ? made[i] : 0) + turn[axis][i] * product[i];
            else
                for (int64_t i = 0; i < count; i++)
                    sums[axis][i] += given[i] * product[i];
        }
    }
    if (!along)
        for (int axis = 0; axis < n; axis++)
            for (int64_t i = 0; i < count; i++)
                out[(begin + i) * n + axis] = sums[axis][i];
}

static void NAME(gather_weighted)(const REAL *restrict image, const int32_t *restrict places,
                                  const REAL *restrict weights, int64_t taps, int64_t points, REAL *restrict out) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t count = points - begin < GRID_BLOCK ? points - begin : GRID_BLOCK;
        REAL sums[GRID_BLOCK] = {0};
        for (int64_t k = 0; k < taps; k++) {
            const int32_t *restrict at = places + k * points + begin;
            const REAL *restrict weight = weights + k * points + begin;
            for (int64_t i = 0; i < count; i++) {
                const REAL value = image[at[i] < 0 ? 0 : at[i]];
                sums[i] += at[i] < 0 ? 0 : weight[i] * value;
            }
        }
        memcpy(out + begin, sums, (size_t)count * sizeof(REAL));
    }
}

static void NAME(scatter_weighted)(const REAL *restrict grad, const int32_t *restrict places,
                                   const REAL *restrict weights, int64_t taps, int64_t points, REAL *restrict image) {
    for (int64_t begin = 0; begin < points; begin += GRID_BLOCK) {
        const int64_t end = points - begin < GRID_BLOCK ? points : begin + GRID_BLOCK;
        for (int64_t k = 0; k < taps; k++)
            for (int64_t i = begin; i < end; i++)
                if (places[k * points + i] >= 0)
                    image[places[k * points + i]] += weights[k * points + i] * grad[i];
    }
}

static void NAME(gather_products)(const REAL *restrict grad, const REAL *restrict images,
                                  const int32_t *restrict places, int64_t channels, int64_t size, int64_t taps,
                                  int64_t points, int64_t begin, int64_t count, REAL *restrict out) {
    for (int64_t k = 0; k < taps; k++) {
        const int32_t *restrict at = places + k * points + begin;
        REAL sums[GRID_BLOCK] = {0};
        for (int64_t channel = 0; channel < channels; channel++) {
            const REAL *restrict image = images + channel * size, *restrict given = grad + channel * points + begin;
            for (int64_t i = 0; i < count; i++) {
                const REAL value = image[at[i] < 0 ? 0 : at[i]];
                sums[i] += at[i] < 0 ? 0 : given[i] * value;
            }
        }
        memcpy(out + k * points + begin, sums, (size_t)count * sizeof(REAL));
    }
}
#undef ROUND_DOWN
