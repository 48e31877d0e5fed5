/* Products of small matrices, for which a call of BLAS costs more than the arithmetic; see small_products.h. */
#if SIMD_LEVEL > 0
/* Compute `rows` rows of one vector of columns of b, whose rows are b_row apart. */
template <class T> INLINE void small_rows(
        const int rows, const T *a, int64_t a_row, int64_t a_column, const T *b, int64_t b_row, const T *addend,
        int64_t addend_row, T *c, int64_t c_row, int64_t k, T alpha, T beta, mask_t<T> mask) {
    vector_t<T> sums[8];
    vector_t<T> line = load(b, mask);
    for (int row = 0; row < rows; row++)
        sums[row] = a[row * a_row] * line;
    for (int64_t p = 1; p < k; p++) {
        a += a_column;
        b += b_row;
        line = load(b, mask);
        for (int row = 0; row < rows; row++)
            sums[row] = multiply_add(every<T>(a[row * a_row]), line, sums[row]);
    }
    for (int row = 0; row < rows; row++) {
        if (alpha != 1)
            sums[row] = alpha * sums[row];
        if (addend)
            sums[row] = multiply_add(every<T>(beta), load(addend + row * addend_row, mask), sums[row]);
        store(c + row * c_row, mask, sums[row]);
    }
}

template <class T> static void small_product(
        const T *a, int64_t a_row, int64_t a_column, const T *b, int64_t b_row, int64_t b_column, const T *addend,
        int64_t addend_row, T *c, int64_t c_row, int64_t m, int64_t n, int64_t k, double alpha, double beta) {
    T workspace[SMALL_INNER * VECTOR_LANES<T>];         /* packed b, if its rows are not contiguous */
    for (int64_t at = 0; at < n; at += VECTOR_LANES<T>) {
        const int64_t count = n - at < VECTOR_LANES<T> ? n - at : VECTOR_LANES<T>;
        const mask_t<T> mask = first_lanes<T>(count);
        const T *x = a, *y = b + at * b_column, *start = addend ? addend + at : NULL;
        T *z = c + at;
        int64_t step = b_row, rows = m;
        if (b_column != 1) {
            for (int64_t j = 0; j < count; j++)
                for (int64_t p = 0; p < k; p++)
                    workspace[p * VECTOR_LANES<T> + j] = y[p * b_row + j * b_column];
            y = workspace;
            step = VECTOR_LANES<T>;
        }
#define ROWS_OF(number) { \
        small_rows<T>(number, x, a_row, a_column, y, step, start, addend_row, z, c_row, k, (T)alpha, (T)beta, \
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
#else
template <class T> static void small_product(
        const T *a, int64_t a_row, int64_t a_column, const T *b, int64_t b_row, int64_t b_column, const T *addend,
        int64_t addend_row, T *c, int64_t c_row, int64_t m, int64_t n, int64_t k, double alpha, double beta) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const T *x = a + i * a_row, *y = b + j * b_column;
            T *result = c + i * c_row + j, sum = *x * *y;
            for (int64_t p = 1; p < k; p++)
                sum = multiply_add<T>(x[p * a_column], y[p * b_row], sum);
            if (alpha != 1)
                sum *= (T)alpha;
            *result = addend ? multiply_add<T>((T)beta, addend[i * addend_row + j], sum) : sum;
        }
}
#endif

/* c = a times b for a column a and a contiguous row b; bound by the memory bandwidth of c. */
template <class T> static void outer_product(
        const T *a, int64_t a_row, const T *__restrict b, T *__restrict c, int64_t c_row, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; i++, c += c_row) {
        const T number = a[i * a_row];
        for (int64_t j = 0; j < n; j++)
            c[j] = number * b[j];
    }
}
