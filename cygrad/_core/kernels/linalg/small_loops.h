/* Products of small matrices, for which a call of BLAS costs more than the arithmetic; see small_products.h. */
#if SIMD_LEVEL == 2
#define BYTES 64
#define MASK(n) ((1u << (n)) - 1)
#if DOUBLE
#define LANES_OF(name) __m512d name
#define MASK_OF(name) __mmask8 name
#define LOAD(from, mask) _mm512_maskz_loadu_pd(mask, from)
#define STORE(to, mask, vector) _mm512_mask_storeu_pd(to, mask, vector)
#define EVERY(number) _mm512_set1_pd(number)
#define FUSE(a, b, c) _mm512_fmadd_pd(a, b, c)
#define TIMES(a, b) _mm512_mul_pd(a, b)
#else
#define LANES_OF(name) __m512 name
#define MASK_OF(name) __mmask16 name
#define LOAD(from, mask) _mm512_maskz_loadu_ps(mask, from)
#define STORE(to, mask, vector) _mm512_mask_storeu_ps(to, mask, vector)
#define EVERY(number) _mm512_set1_ps(number)
#define FUSE(a, b, c) _mm512_fmadd_ps(a, b, c)
#define TIMES(a, b) _mm512_mul_ps(a, b)
#endif
#elif SIMD_LEVEL == 1
#define BYTES 32
#define MASK_OF(name) __m256i name
#if DOUBLE
#define MASK(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LANES_OF(name) __m256d name
#define LOAD(from, mask) _mm256_maskload_pd(from, mask)
#define STORE(to, mask, vector) _mm256_maskstore_pd(to, mask, vector)
#define EVERY(number) _mm256_set1_pd(number)
#define FUSE(a, b, c) _mm256_fmadd_pd(a, b, c)
#define TIMES(a, b) _mm256_mul_pd(a, b)
#else
#define MASK(n) _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LANES_OF(name) __m256 name
#define LOAD(from, mask) _mm256_maskload_ps(from, mask)
#define STORE(to, mask, vector) _mm256_maskstore_ps(to, mask, vector)
#define EVERY(number) _mm256_set1_ps(number)
#define FUSE(a, b, c) _mm256_fmadd_ps(a, b, c)
#define TIMES(a, b) _mm256_mul_ps(a, b)
#endif
#endif

#if defined(BYTES)
#define LANES ((int64_t)(BYTES / sizeof(REAL)))

/* Compute `rows` rows of one vector of columns of b, whose rows are b_row apart. */
INLINE void NAME(small_rows)(const int rows, const REAL *a, int64_t a_row, int64_t a_column, const REAL *b,
                             int64_t b_row, const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row, int64_t k,
                             REAL alpha, REAL beta, MASK_OF(mask)) {
    LANES_OF(sums[8]);
    LANES_OF(line) = LOAD(b, mask);
    for (int row = 0; row < rows; row++)
        sums[row] = TIMES(EVERY(a[row * a_row]), line);
    for (int64_t p = 1; p < k; p++) {
        a += a_column;
        b += b_row;
        line = LOAD(b, mask);
        for (int row = 0; row < rows; row++)
            sums[row] = FUSE(EVERY(a[row * a_row]), line, sums[row]);
    }
    for (int row = 0; row < rows; row++) {
        if (alpha != 1)
            sums[row] = TIMES(EVERY(alpha), sums[row]);
        if (addend)
            sums[row] = FUSE(EVERY(beta), LOAD(addend + row * addend_row, mask), sums[row]);
        STORE(c + row * c_row, mask, sums[row]);
    }
}

static void NAME(small_product)(const REAL *a, int64_t a_row, int64_t a_column, const REAL *b, int64_t b_row,
                                int64_t b_column, const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row,
                                int64_t m, int64_t n, int64_t k, double alpha, double beta) {
    REAL workspace[SMALL_INNER * LANES];         /* packed b, if its rows are not contiguous */
    for (int64_t at = 0; at < n; at += LANES) {
        const int64_t count = n - at < LANES ? n - at : LANES;
        const MASK_OF(mask) = MASK((int)count);
        const REAL *x = a, *y = b + at * b_column, *start = addend ? addend + at : NULL;
        REAL *z = c + at;
        int64_t step = b_row, rows = m;
        if (b_column != 1) {
            for (int64_t j = 0; j < count; j++)
                for (int64_t p = 0; p < k; p++)
                    workspace[p * LANES + j] = y[p * b_row + j * b_column];
            y = workspace;
            step = LANES;
        }
#define ROWS_OF(number) { \
        NAME(small_rows)(number, x, a_row, a_column, y, step, start, addend_row, z, c_row, k, (REAL)alpha, (REAL)beta, \
                         mask); \
        x += number * a_row; \
        start += start ? number * addend_row : 0; \
        z += number * c_row; \
        rows -= number; \
    }
        while (rows >= 8)
            ROWS_OF(8)
        if (rows >= 4)
            ROWS_OF(4)
        if (rows >= 2)
            ROWS_OF(2)
        if (rows >= 1)
            ROWS_OF(1)
#undef ROWS_OF
    }
}
#undef BYTES
#undef LANES
#undef MASK
#undef MASK_OF
#undef LANES_OF
#undef LOAD
#undef STORE
#undef EVERY
#undef FUSE
#undef TIMES
#else
static void NAME(small_product)(const REAL *a, int64_t a_row, int64_t a_column, const REAL *b, int64_t b_row,
                                int64_t b_column, const REAL *addend, int64_t addend_row, REAL *c, int64_t c_row,
                                int64_t m, int64_t n, int64_t k, double alpha, double beta) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const REAL *x = a + i * a_row, *y = b + j * b_column;
            REAL *result = c + i * c_row + j, sum = *x * *y;
            for (int64_t p = 1; p < k; p++)
                sum = MULTIPLY_ADD(x[p * a_column], y[p * b_row], sum);
            if (alpha != 1)
                sum *= (REAL)alpha;
            *result = addend ? MULTIPLY_ADD((REAL)beta, addend[i * addend_row + j], sum) : sum;
        }
}
#endif

/* c = a times b for a column a and a contiguous row b; bound by the memory bandwidth of c. */
static void NAME(outer_product)(const REAL *a, int64_t a_row, const REAL *restrict b, REAL *restrict c, int64_t c_row,
                                int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++, c += c_row) {
        const REAL number = a[i * a_row];
        for (int64_t j = 0; j < n; j++)
            c[j] = number * b[j];
    }
}
