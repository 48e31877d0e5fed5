/* A product of so small matrices that a call of BLAS takes longer than the arithmetic; see small_products.h. */
static void NAME(small_product)(const REAL *a, int64_t a_row, int64_t a_column, const REAL *b, int64_t b_row,
                                int64_t b_column, REAL *c, int64_t c_row, int64_t m, int64_t n, int64_t k,
                                double alpha, double beta) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const REAL *x = a + i * a_row, *y = b + j * b_column;
            REAL *result = c + i * c_row + j, sum = *x * *y;
            for (int64_t p = 1; p < k; p++)
                sum = MULTIPLY_ADD(x[p * a_column], y[p * b_row], sum);
            if (alpha != 1)
                sum *= (REAL)alpha;
            *result = beta == 0 ? sum : MULTIPLY_ADD((REAL)beta, *result, sum);
        }
}
