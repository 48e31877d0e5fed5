/* getrf and getrs for real matrices of a few rows and columns, where a call of LAPACK costs more than its arithmetic:
 * one matrix per lane of a vector. The operations for each are the same in all lanes and on all processors. */

template <class T> INLINE vector_t<T> magnitude(vector_t<T> x) {
    typedef decltype(x < x) mask_t;
    return (vector_t<T>)((mask_t)x & ~(mask_t)-vector_t<T>{});
}

/* Elements of consecutive matrices next to each other; the last matrix fills the remaining lanes. */
template <class T> INLINE void load_lanes(int count, int size, const T *from, vector_t<T> *x) {
    for (int w = 0; w < VECTOR_LANES<T>; w++, from += w < count ? size : 0)
        for (int e = 0; e < size; e++)
            ((T *)(x + e))[w] = from[e];
}

template <class T> static void factor_lanes(int count, int m, int n, T *a, int *pivots, int *info) {
    const int steps = m < n ? m : n;
    vector_t<T> x[SMALL * SMALL], pivot[SMALL], singular = {0};
    load_lanes<T>(count, m * n, a, x);
    for (int k = 0; k < steps; k++) {
        vector_t<T> *column = x + k * m, largest = magnitude<T>(column[k]), row = vector_t<T>{} + (T)k;
        for (int i = k + 1; i < m; i++) {
            const vector_t<T> size = magnitude<T>(column[i]);
            const auto larger = size > largest;
            row = larger ? vector_t<T>{} + (T)i : row;
            largest = larger ? size : largest;
        }
        const auto zero = largest == 0;
        singular = (zero & (singular == 0)) ? vector_t<T>{} + (T)(k + 1) : singular;
        pivot[k] = row;
        for (int i = k + 1; i < m; i++) {
            const auto chosen = row == (T)i;
            for (int j = 0; j < n; j++) {
                const vector_t<T> first = x[j * m + k], second = x[j * m + i];
                x[j * m + k] = chosen ? second : first;
                x[j * m + i] = chosen ? first : second;
            }
        }
        for (int i = k + 1; i < m; i++)
            column[i] = zero ? column[i] : column[i] / column[k];
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < m; i++)
                x[j * m + i] = zero ? x[j * m + i] : x[j * m + i] - column[i] * x[j * m + k];
    }
    for (int w = 0; w < count; w++) {
        for (int e = 0; e < m * n; e++)
            a[w * m * n + e] = ((T *)(x + e))[w];
        for (int k = 0; k < steps; k++)
            pivots[w * steps + k] = (int)pivot[k][w] + 1;
        if (info)
            info[w] = (int)singular[w];
    }
}

template <class T> static void solve_lanes(
        int count, int transposed, int n, int k, const T *a, const int *pivots, T *b) {
    vector_t<T> lu[SMALL * SMALL], x[SMALL * SMALL], scale[SMALL];
    int order[VECTOR_LANES<T>][SMALL];               /* of the rows of b, after the exchanges */
    load_lanes<T>(count, n * n, a, lu);
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
        for (int w = 0; w < VECTOR_LANES<T>; w++) {
            const int matrix = w < count ? w : count - 1;
            const T *from = b + (matrix * k + start) * n;
            for (int c = 0; c < sides; c++)
                for (int i = 0; i < n; i++)
                    ((T *)(x + i * SMALL + c))[w] = from[c * n + (transposed ? i : order[matrix][i])];
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
                    b[(w * k + start + c) * n + (transposed ? order[w][i] : i)] = ((T *)(x + i * SMALL + c))[w];
    }
}

template <class T> static void small_getrf(int count, int m, int n, T *a, int *pivots, int *info) {
    const int steps = m < n ? m : n;
    constexpr int LANES = VECTOR_LANES<T>;
    for (int w = 0; w < count; w += LANES)
        factor_lanes<T>(count - w < LANES ? count - w : LANES, m, n, a + w * m * n, pivots + w * steps,
                        info ? info + w : NULL);
}

template <class T> static void small_getrs(
        int count, int transposed, int n, int k, const T *a, const int *pivots, T *b) {
    constexpr int LANES = VECTOR_LANES<T>;
    for (int w = 0; w < count; w += LANES)
        solve_lanes<T>(count - w < LANES ? count - w : LANES, transposed, n, k, a + w * n * n, pivots + w * n,
                       b + w * n * k);
}
