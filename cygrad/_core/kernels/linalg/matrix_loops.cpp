// The loops of matrix_loops.h.

#include "kernels/linalg/matrix_loops.h"

#include <algorithm>
#include "arrays/element_types.h"

namespace {

enum {
    INNER_BLOCK = 128,         // rows of b used together, ...
    COLUMN_BLOCK = 512         // ... and columns of them, which stay in the cache
};

// Add one row of a times some rows of b to a row of c.
template <class T>
void multiply_block(T *c, const T *a, int64_t a_step, const T *b, int64_t b_step, int64_t n, int64_t k, T alpha) {
    for (int64_t p = 0; p < k; p++) {
        const T factor = (T)(wrapping(a[p * a_step]) * wrapping(alpha));
        for (int64_t j = 0; j < n; j++)
            c[j] = (T)(wrapping(c[j]) + wrapping(factor) * wrapping(b[p * b_step + j]));
    }
}

template <class T>
void multiply_typed(T *c, int64_t c_step, const T *a, int64_t a_row_step, int64_t a_column_step, const T *b,
                    int64_t b_step, int64_t m, int64_t n, int64_t k, T alpha) {
    for (int64_t j = 0; j < n; j += COLUMN_BLOCK)
        for (int64_t p = 0; p < k; p += INNER_BLOCK)
            for (int64_t i = 0; i < m; i++)
                multiply_block(c + i * c_step + j, a + i * a_row_step + p * a_column_step, a_column_step,
                               b + p * b_step + j, b_step, std::min<int64_t>(COLUMN_BLOCK, n - j),
                               std::min<int64_t>(INNER_BLOCK, k - p), alpha);
}

template <class F> void for_integer(int dtype, F f) { for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t>(dtype, f); }

template <class T>
void cross(T *const *out, const T *const *a, const T *const *b, int64_t step, int64_t a_step, int64_t b_step,
           int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            const int next = (k + 1) % 3, last = (k + 2) % 3;
            out[k][i * step] = (T)(wrapping(a[next][i * a_step]) * wrapping(b[last][i * b_step]) -
                                   wrapping(a[last][i * a_step]) * wrapping(b[next][i * b_step]));
        }
}

template <class T> void unpack(T *values, T *vectors, const T *parts, const T *packed, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        values[2 * i] = parts[i], values[2 * i + 1] = parts[n + i];
    for (int64_t j = 0; packed != NULL && j < n; j++) {
        const T *real = packed + j * n, *imag = packed + (j + 1) * n;
        T *vector = vectors + 2 * j * n, *conjugate = vector + 2 * n;
        if (parts[n + j] == 0 || j + 1 == n) {
            for (int64_t i = 0; i < n; i++)
                vector[2 * i] = real[i], vector[2 * i + 1] = 0;
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            vector[2 * i] = real[i], vector[2 * i + 1] = imag[i];
            conjugate[2 * i] = real[i], conjugate[2 * i + 1] = -imag[i];
        }
        j++;
    }
}

}  // namespace

void multiply_add_integers(int dtype, int64_t m, int64_t n, int64_t k, int64_t alpha, const void *a,
                           int64_t a_row_step, int64_t a_column_step, const void *b, int64_t b_step, void *c,
                           int64_t c_step) {
    for_integer(dtype, [=](auto x) {
        typedef decltype(x) T;
        multiply_typed((T *)c, c_step, (const T *)a, a_row_step, a_column_step, (const T *)b, b_step, m, n, k,
                       (T)alpha);
    });
}

void dot_of_integers(int dtype, int64_t n, const void *x, int64_t x_step, const void *y, int64_t y_step,
                     void *result) {
    for_integer(dtype, [=](auto zero) {
        typedef decltype(zero) T;
        T total = 0;
        for (int64_t i = 0; i < n; i++)
            total = (T)(wrapping(total) + wrapping(((const T *)x)[i * x_step]) * wrapping(((const T *)y)[i * y_step]));
        *(T *)result = total;
    });
}

void scale_row(int dtype, void *c, int64_t n, double real, double imag, int64_t integer_beta) {
    for_dtype<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(dtype, [=](auto x) {
        typedef decltype(x) T;
        const T beta = std::is_integral_v<T> ? (T)integer_beta : (T)real;
        for (int64_t j = 0; j < n; j++)
            ((T *)c)[j] = (T)(wrapping(((T *)c)[j]) * wrapping(beta));
    });
    for_dtype<complex64_t, complex128_t>(dtype, [=](auto z) {
        typedef std::decay_t<decltype(__real__ z)> T;
        T *pairs = (T *)c;
        for (int64_t j = 0; j < n; j++) {
            const T x = pairs[2 * j], y = pairs[2 * j + 1];
            pairs[2 * j] = x * (T)real - y * (T)imag;
            pairs[2 * j + 1] = x * (T)imag + y * (T)real;
        }
    });
}

void add_scaled(int double_precision, void *sum, const void *matrix, double factor, int64_t n) {
    for_dtype<float, double>(double_precision ? dtype_of<double> : dtype_of<float>, [=](auto x) {
        typedef decltype(x) T;
        for (int64_t i = 0; i < n; i++)
            ((T *)sum)[i] += (T)factor * ((const T *)matrix)[i];
    });
}

void cross_products(int dtype, char *const *out, char *const *a, char *const *b, const int64_t *steps, int64_t n) {
    for_dtype<int64_t, float, double, complex64_t, complex128_t>(dtype, [=](auto x) {
        typedef decltype(x) T;
        cross((T *const *)out, (const T *const *)a, (const T *const *)b, steps[0], steps[1], steps[2], n);
    });
}

void unpack_eigenvectors(int double_precision, void *values, void *vectors, const void *parts, const void *packed,
                         int64_t n) {
    if (double_precision)
        unpack((double *)values, (double *)vectors, (const double *)parts, (const double *)packed, n);
    else
        unpack((float *)values, (float *)vectors, (const float *)parts, (const float *)packed, n);
}
