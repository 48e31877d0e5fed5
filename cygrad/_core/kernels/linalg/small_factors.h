/* getrf and getrs for small real matrices, for which a call of LAPACK costs more than the arithmetic. */

static int NAME(small_getrf)(int m, int n, REAL *a, int *pivots)
{
    int info = 0;
    for (int k = 0; k < n && k < m; k++) {
        REAL *column = a + k * m, largest = column[k] < 0 ? -column[k] : column[k];
        int pivot = k;
        for (int i = k + 1; i < m; i++) {
            const REAL size = column[i] < 0 ? -column[i] : column[i];
            pivot = size > largest ? i : pivot;
            largest = size > largest ? size : largest;
        }
        pivots[k] = pivot + 1;
        if (column[pivot] == 0) {
            info = info ? info : k + 1;
            continue;
        }
        if (pivot != k)
            for (int j = 0; j < n; j++) {
                const REAL value = a[j * m + k];
                a[j * m + k] = a[j * m + pivot];
                a[j * m + pivot] = value;
            }
        for (int i = k + 1; i < m; i++)
            column[i] /= column[k];
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < m; i++)
                a[j * m + i] -= column[i] * a[j * m + k];
    }
    return info;
}

/* x[i] -= factor * x[j] for rows of some right-hand sides. */
static inline void NAME(subtract_row)(REAL (*x)[SMALL], int i, int j, REAL factor)
{
    for (int c = 0; c < SMALL; c++)
        x[i][c] -= factor * x[j][c];
}

static inline void NAME(exchange_rows)(REAL (*x)[SMALL], int i, int j)
{
    for (int c = 0; c < SMALL; c++) {
        const REAL value = x[i][c];
        x[i][c] = x[j][c];
        x[j][c] = value;
    }
}

static void NAME(small_getrs)(int transposed, int n, int k, const REAL *a, const int *pivots, REAL *b)
{
    REAL x[SMALL][SMALL] = {{0}}, scale[SMALL];
    for (int i = 0; i < n; i++)
        scale[i] = 1 / a[i * n + i];
    for (; k > 0; k -= SMALL, b += SMALL * n) {
        const int width = k < SMALL ? k : SMALL;
        for (int c = 0; c < width; c++)
            for (int i = 0; i < n; i++)
                x[i][c] = b[c * n + i];
        for (int i = 0; i < n && !transposed; i++)
            if (pivots[i] - 1 != i)
                NAME(exchange_rows)(x, i, pivots[i] - 1);
        for (int j = 0; j < n; j++) {                              /* by L, or by the transpose of U */
            for (int i = 0; i < j; i++)
                NAME(subtract_row)(x, j, i, transposed ? a[j * n + i] : a[i * n + j]);
            for (int c = 0; c < SMALL && transposed; c++)
                x[j][c] *= scale[j];
        }
        for (int j = n - 1; j >= 0; j--) {                         /* by U, or by the transpose of L */
            for (int i = n - 1; i > j; i--)
                NAME(subtract_row)(x, j, i, transposed ? a[j * n + i] : a[i * n + j]);
            for (int c = 0; c < SMALL && !transposed; c++)
                x[j][c] *= scale[j];
        }
        for (int i = n - 1; i >= 0 && transposed; i--)
            if (pivots[i] - 1 != i)
                NAME(exchange_rows)(x, i, pivots[i] - 1);
        for (int c = 0; c < width; c++)
            for (int i = 0; i < n; i++)
                b[c * n + i] = x[i][c];
    }
}
