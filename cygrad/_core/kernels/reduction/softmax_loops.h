/* Loops of softmax, log_softmax, their derivatives and attention weights; see softmax_rows.h. */
#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* out = exp(x - shift) for x <= shift; return the sum. Unless `all`, out is a buffer of SUMMED elements. */
template <class T> INLINE double shifted_powers(const T *x, T shift, T *out, int64_t n, int all) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t count = n - begin < SUMMED ? n - begin : SUMMED;
        const T *from = x + begin;
        T *to = all ? out + begin : out;
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            to[i] = decay<T>(from[i] - shift);
        total += sum_of<T>(to, NULL, count);
    }
    return total;
}

template <class T> static void softmax_rows(const T *x, const T *unused, T *out, int64_t n, int64_t rows) {
    for (int64_t k = 0; k < rows; k++, x += n, out += n) {
        const T factor = (T)(1 / shifted_powers<T>(x, largest<T>(x, n), out, n, 1));
        for (int64_t i = 0; i < n; i++)
            out[i] *= factor;
    }
}

template <class T> INLINE void mask_scores(const void *mask, int is_bool, int64_t step, T *scores, int64_t n) {
    const char *kept = (const char *)mask;
    const T *added = (const T *)mask;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        scores[i] = !is_bool ? scores[i] + added[i * step] : kept[i * step] ? scores[i] : -(T)INFINITY;
}

/* See softmax_rows.h. A nan among the scores makes all weights of the row nan, as it does in softmax. */
template <class T> static void attention_row(const attention_row_t *row, const T *scores, const void *mask, T *out,
                                             int64_t size) {
    const T scale = (T)row->scale;
    INDEPENDENT
    for (int64_t i = 0; i < size; i++)
        out[i] = scores[i] * scale;
    if (mask != NULL && row->mask_step == 1)
        mask_scores<T>(mask, row->mask_is_bool, 1, out, size);
    else if (mask != NULL)
        mask_scores<T>(mask, row->mask_is_bool, row->mask_step, out, size);
    const T shift = largest<T>(out, size);
    if (shift == -(T)INFINITY && !isnan(sum_of<T>(out, NULL, size))) {
        memset(out, 0, row->n * sizeof(T));
        return;
    }
    const T factor = (T)(1 / shifted_powers<T>(out, shift, out, size, 1));
    for (int64_t i = 0; i < size; i++)
        out[i] *= factor;
    memset(out + size, 0, (row->n - size) * sizeof(T));
}

/* Return the logarithm of a sum of exponentials whose largest is 1; nan stays. */
template <class T> INLINE T logarithm_of_total(double total) {
    const T rounded = (T)total, value = logarithm<T>(rounded, (T)(total - rounded));
    return rounded < (T)INFINITY ? value : rounded;
}

/* Vectorize the logarithms of several rows that stay in the cache. */
template <class T> static void log_softmax_rows(const T *x, const T *unused, T *out, int64_t n, int64_t rows) {
    T powers[SUMMED], shift[ROWS], logarithm[ROWS];
    double totals[ROWS];
    const int64_t most = n < SUMMED / ROWS ? ROWS : n < SUMMED ? SUMMED / n : 1;
    for (int64_t first = 0; first < rows; first += most, x += most * n, out += most * n) {
        const int64_t count = rows - first < most ? rows - first : most;
        for (int64_t k = 0; k < count; k++) {
            const T *row = x + k * n;
            shift[k] = largest<T>(row, n);
            totals[k] = shifted_powers<T>(row, shift[k], powers, n, 0);
        }
        for (int64_t k = 0; k < count; k++)
            logarithm[k] = logarithm_of_total<T>(totals[k]);
        for (int64_t k = 0; k < count; k++) {
            INDEPENDENT
            for (int64_t i = k * n; i < k * n + n; i++)
                out[i] = (x[i] - shift[k]) - logarithm[k];
        }
    }
}

template <class T> static void softmax_backward_rows(const T *grad, const T *result, T *out, int64_t n, int64_t rows) {
    for (int64_t k = 0; k < rows; k++, grad += n, result += n, out += n) {
        const T total = (T)sum_of<T>(grad, result, n);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            out[i] = (grad[i] - total) * result[i];
    }
}

template <class T> static void log_softmax_backward_rows(const T *grad, const T *result, T *out, int64_t n,
                                                         int64_t rows) {
    for (int64_t k = 0; k < rows; k++, grad += n, result += n, out += n) {
        const T total = (T)sum_of<T>(grad, NULL, n);
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            out[i] = grad[i] - exponential<T>(result[i]) * total;
    }
}

template <class T> static void scaled_exponentials(const T *x, double factor, double less, T *out, int64_t n) {
    const T by = (T)factor, minus = (T)less;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = exponential<T>(x[i]) * by - minus;
}

/* Loops over `width` <= COLUMNS adjacent rows, whose elements are `stride` apart: a step handles one element of each.
   */
template <class T> INLINE void largest_of_columns(const T *x, int64_t n, int64_t stride, int64_t width, T *largest) {
    for (int64_t k = 0; k < width; k++)
        largest[k] = -(T)INFINITY;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            largest[k] = largest[k] > x[i * stride + k] ? largest[k] : x[i * stride + k];
}

template <class T> static void softmax_columns(const T *x, const T *unused, T *out, int64_t n, int64_t stride,
                                               int64_t width) {
    T shift[COLUMNS], factor[COLUMNS];
    double totals[COLUMNS] = {0};
    largest_of_columns<T>(x, n, stride, width, shift);
    for (int64_t i = 0; i < n; i++) {
        const T *from = x + i * stride;
        T *to = out + i * stride;
        INDEPENDENT
        for (int64_t k = 0; k < width; k++) {
            const T power = decay<T>(from[k] - shift[k]);
            to[k] = power;
            totals[k] += power;
        }
    }
    for (int64_t k = 0; k < width; k++)
        factor[k] = (T)(1 / totals[k]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] *= factor[k];
}

template <class T> static void log_softmax_columns(const T *x, const T *unused, T *out, int64_t n, int64_t stride,
                                                   int64_t width) {
    T shift[COLUMNS], logarithm[COLUMNS];
    double totals[COLUMNS] = {0};
    largest_of_columns<T>(x, n, stride, width, shift);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += decay<T>(x[i * stride + k] - shift[k]);
    for (int64_t k = 0; k < width; k++)
        logarithm[k] = logarithm_of_total<T>(totals[k]);
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = (x[i * stride + k] - shift[k]) - logarithm[k];
    }
}

template <class T> static void softmax_backward_columns(const T *grad, const T *result, T *out, int64_t n,
                                                        int64_t stride, int64_t width) {
    double totals[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += grad[i * stride + k] * result[i * stride + k];
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = (grad[i * stride + k] - (T)totals[k]) * result[i * stride + k];
    }
}

template <class T> static void log_softmax_backward_columns(const T *grad, const T *result, T *out, int64_t n,
                                                            int64_t stride, int64_t width) {
    double totals[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            totals[k] += grad[i * stride + k];
    for (int64_t i = 0; i < n; i++) {
        INDEPENDENT
        for (int64_t k = 0; k < width; k++)
            out[i * stride + k] = grad[i * stride + k] - exponential<T>(result[i * stride + k]) * (T)totals[k];
    }
}
