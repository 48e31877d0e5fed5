/* getrf and getrs for real matrices of a few rows and columns, where a call of LAPACK costs more than its arithmetic:
 * one matrix per lane of a vector. The operations for each are the same in all lanes and on all processors. */
#undef LANES
#undef BYTES
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX2__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES (BYTES / (int)sizeof(REAL))

typedef REAL NAME(set_t) __attribute__((vector_size(BYTES), may_alias));
#if DOUBLE
typedef int64_t NAME(mask_t) __attribute__((vector_size(BYTES), may_alias));
#else
typedef int32_t NAME(mask_t) __attribute__((vector_size(BYTES), may_alias));
#endif
#define CHOOSE(mask, a, b) \
    ((NAME(set_t))(((NAME(mask_t))(a) & (mask)) | ((NAME(mask_t))(b) & ~(mask))))
#define MAGNITUDE(x) ((NAME(set_t))((NAME(mask_t))(x) & ~(NAME(mask_t))(-(NAME(set_t)){0})))

/* Elements of consecutive matrices next to each other; the last matrix fills the remaining lanes. */
INLINE void NAME(load_lanes)(int count, int size, const REAL *from, NAME(set_t) *x) {
    for (int w = 0; w < LANES; w++, from += w < count ? size : 0)
        for (int e = 0; e < size; e++)
            ((REAL *)(x + e))[w] = from[e];
}

static void NAME(factor_lanes)(int count, int m, int n, REAL *a, int *pivots, int *info) {
    const int steps = m < n ? m : n;
    NAME(set_t) x[SMALL * SMALL], pivot[SMALL], singular = {0};
    NAME(load_lanes)(count, m * n, a, x);
    for (int k = 0; k < steps; k++) {
        NAME(set_t) *column = x + k * m, largest = MAGNITUDE(column[k]), row = (NAME(set_t)){0} + (REAL)k;
        for (int i = k + 1; i < m; i++) {
            const NAME(set_t) size = MAGNITUDE(column[i]);
            const NAME(mask_t) larger = size > largest;
            row = CHOOSE(larger, (NAME(set_t)){0} + (REAL)i, row);
            largest = CHOOSE(larger, size, largest);
        }
        const NAME(mask_t) zero = largest == 0;
        singular = CHOOSE(zero & (singular == 0), (NAME(set_t)){0} + (REAL)(k + 1), singular);
        pivot[k] = row;
        for (int i = k + 1; i < m; i++) {
            const NAME(mask_t) chosen = row == (REAL)i;
            for (int j = 0; j < n; j++) {
                const NAME(set_t) first = x[j * m + k], second = x[j * m + i];
                x[j * m + k] = CHOOSE(chosen, second, first);
                x[j * m + i] = CHOOSE(chosen, first, second);
            }
        }
        for (int i = k + 1; i < m; i++)
            column[i] = CHOOSE(zero, column[i], column[i] / column[k]);
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < m; i++)
                x[j * m + i] = CHOOSE(zero, x[j * m + i], x[j * m + i] - column[i] * x[j * m + k]);
    }
    for (int w = 0; w < count; w++) {
        for (int e = 0; e < m * n; e++)
            a[w * m * n + e] = ((REAL *)(x + e))[w];
        for (int k = 0; k < steps; k++)
            pivots[w * steps + k] = (int)pivot[k][w] + 1;
        if (info)
            info[w] = (int)singular[w];
    }
}

static void NAME(solve_lanes)(int count, int transposed, int n, int k, const REAL *a, const int *pivots, REAL *b) {
    NAME(set_t) lu[SMALL * SMALL], x[SMALL * SMALL], scale[SMALL];
    int order[LANES][SMALL];               /* of the rows of b, after the exchanges */
    NAME(load_lanes)(count, n * n, a, lu);
    for (int i = 0; i < n; i++)
        scale[i] = 1 / lu[i * (n + 1)];
    for (int w = 0; w < count; w++) {
        for (int i = 0; i < n; i++)
            order[w][i] = i;
        for (int i = 0; i < n; i++) {
            const int j = pivots[w * n + i] - 1, row = order[w][i];
            order[w][i] = order[w][j];
            order[w][j] = row;
        }
    }
    for (int start = 0; start < k; start += SMALL) {
        const int sides = k - start < SMALL ? k - start : SMALL;
        for (int w = 0; w < LANES; w++) {
            const int matrix = w < count ? w : count - 1;
            const REAL *from = b + (matrix * k + start) * n;
            for (int c = 0; c < sides; c++)
                for (int i = 0; i < n; i++)
                    ((REAL *)(x + i * SMALL + c))[w] = from[c * n + (transposed ? i : order[matrix][i])];
        }
        for (int j = 0; j < n; j++) {                              /* by L, or by the transpose of U */
            for (int i = 0; i < j; i++)
                for (int c = 0; c < sides; c++)
                    x[j * SMALL + c] -= lu[transposed ? j * n + i : i * n + j] * x[i * SMALL + c];
            for (int c = 0; c < sides && transposed; c++)
                x[j * SMALL + c] *= scale[j];
        }
        for (int j = n - 1; j >= 0; j--) {                         /* by U, or by the transpose of L */
            for (int i = n - 1; i > j; i--)
                for (int c = 0; c < sides; c++)
                    x[j * SMALL + c] -= lu[transposed ? j * n + i : i * n + j] * x[i * SMALL + c];
            for (int c = 0; c < sides && !transposed; c++)
                x[j * SMALL + c] *= scale[j];
        }
        for (int w = 0; w < count; w++)
            for (int c = 0; c < sides; c++)
                for (int i = 0; i < n; i++)
                    b[(w * k + start + c) * n + (transposed ? order[w][i] : i)] = ((REAL *)(x + i * SMALL + c))[w];
    }
}

static void NAME(small_getrf)(int count, int m, int n, REAL *a, int *pivots, int *info) {
    const int steps = m < n ? m : n;
    for (int w = 0; w < count; w += LANES)
        NAME(factor_lanes)(count - w < LANES ? count - w : LANES, m, n, a + w * m * n, pivots + w * steps,
                           info ? info + w : NULL);
}

static void NAME(small_getrs)(int count, int transposed, int n, int k, const REAL *a, const int *pivots, REAL *b) {
    for (int w = 0; w < count; w += LANES)
        NAME(solve_lanes)(count - w < LANES ? count - w : LANES, transposed, n, k, a + w * n * n, pivots + w * n,
                          b + w * n * k);
}
#undef CHOOSE
#undef MAGNITUDE
#undef LANES
#undef BYTES
