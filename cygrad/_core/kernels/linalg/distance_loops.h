/* Distances of one vector from several, and their gradient; see distances.pyx. `order` is that of the norm.

   Sums are split into short parts, which keeps rounding errors small. Row c of `transposed` has component c of all k
   other vectors. */
#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

/* Return the maximum; nan wins. */
template <class T> INLINE T larger(T x, T y) {
    return ((y > x) | (y != y)) ? y : x;
}

/* Accumulate |a - b| or its square into `sum`, or take their maximum. */
template <class T> INLINE T enlarged(T sum, T a, T b, int order) {
    const T difference = a - b;
    if (order == SECOND)
        return multiply_add<T>(difference, difference, sum);
    return order == FIRST ? sum + fabs(difference) : larger<T>(sum, fabs(difference));
}

/* Accumulate components first..last of n vectors, several at a time, so that sums stay in registers. */
template <class T> INLINE void enlarge_parts(const T *x, const T *y, T *part, int64_t n, int64_t k, int64_t first,
                                             int64_t last, int order) {
    int64_t c = first;
    for (; c + 4 <= last; c += 4) {
        const T *row = y + c * k, x0 = x[c], x1 = x[c + 1], x2 = x[c + 2], x3 = x[c + 3];
        INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            T sum = enlarged<T>(part[j], x0, row[j], order);
            sum = enlarged<T>(sum, x1, row[j + k], order);
            sum = enlarged<T>(sum, x2, row[j + 2 * k], order);
            part[j] = enlarged<T>(sum, x3, row[j + 3 * k], order);
        }
    }
    for (; c < last; c++) {
        INDEPENDENT
        for (int64_t j = 0; j < n; j++)
            part[j] = enlarged<T>(part[j], x[c], y[c * k + j], order);
    }
}

/* Squares outside of these bounds may have over- or underflown. */
template <class T> constexpr T LEAST = T(DOUBLE<T> ? 1e-290 : 1e-33);
template <class T> constexpr T MOST = T(DOUBLE<T> ? 1e300 : 1e37);

/* Compute the distance of x from one vector by scaled differences: its square may over- or underflow. */
template <class T> static T scaled_distance(const T *x, const T *y, int64_t k, int64_t m) {
    double largest = 0, sum = 0;
    for (int64_t c = 0; c < m; c++) {
        const double difference = fabs((double)x[c] - (double)y[c * k]);
        largest = ((difference > largest) | (difference != difference)) ? difference : largest;
    }
    if (!(largest > 0 && largest <= DBL_MAX))
        return (T)largest;
    for (int64_t c = 0; c < m; c++) {
        const double share = ((double)x[c] - (double)y[c * k]) / largest;
        sum += share * share;
    }
    return (T)(largest * sqrt(sum));
}

/* out[j] = the distance of x from vector j, for j from `from` on. */
template <class T> static void distances_of(const T *x, const T *transposed, T *out, int64_t from, int64_t k, int64_t m,
                                            int order) {
    T sums[AT_ONCE], part[AT_ONCE];
    for (int64_t start = from; start < k; start += AT_ONCE) {
        const int64_t n = k - start < AT_ONCE ? k - start : AT_ONCE;
        memset(sums, 0, n * sizeof *sums);
        for (int64_t first = 0; first < m; first += PART) {
            const int64_t last = m - first < PART ? m : first + PART;
            memset(part, 0, n * sizeof *part);
            if (order == FIRST)
                enlarge_parts<T>(x, transposed + start, part, n, k, first, last, FIRST);
            else if (order == SECOND)
                enlarge_parts<T>(x, transposed + start, part, n, k, first, last, SECOND);
            else
                enlarge_parts<T>(x, transposed + start, part, n, k, first, last, HIGHEST);
            for (int64_t j = 0; j < n; j++)
                sums[j] = order == HIGHEST ? larger<T>(sums[j], part[j]) : sums[j] + part[j];
        }
        int extreme = 0;
        if (order == SECOND)
            for (int64_t j = 0; j < n; j++)
                extreme |= !((sums[j] >= LEAST<T>) & (sums[j] <= MOST<T>));
        for (int64_t j = 0; j < n; j++)
            out[start + j] = order == SECOND ? sqrt(sums[j]) : sums[j];
        for (int64_t j = 0; extreme && j < n; j++)
            if (!(sums[j] >= LEAST<T> && sums[j] <= MOST<T>))
                out[start + j] = scaled_distance<T>(x, transposed + start + j, k, m);
    }
}

/* Mirror the upper triangle of a square matrix to the lower one, in these rows. */
template <class T> static void mirror(T *square, int64_t n, int64_t begin, int64_t end) {
    for (int64_t column = 0; column < end; column += MIRRORED)
        for (int64_t i = begin > column ? begin : column + 1; i < end; i++)
            for (int64_t j = column; j < column + MIRRORED && j < i; j++)
                square[i * n + j] = square[j * n + i];
}

/* Count the components of n vectors whose distance from x is that of the vector. */
template <class T> static void count_farthest(const T *x, const T *transposed, const T *distances, T *counts, int64_t n,
                                              int64_t k, int64_t m) {
    memset(counts, 0, n * sizeof(T));
    for (int64_t c = 0; c < m; c++)
        for (int64_t j = 0; j < n; j++)
            counts[j] += fabs(x[c] - transposed[c * k + j]) == distances[j];
}

/* Sum shares * (own - y) in the order of sum_of; 0 where the share is 0, which only SOME are. */
template <class T, bool SOME> INLINE double sum_of_slopes(const T *shares, const T *y, T own, int64_t n) {
    vector_t<T> sums[2 * PARTS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + 2 * LANES<T> <= n; i += 2 * LANES<T>)
        for (int k = 0; k < 2 * PARTS; k++) {
            const vector_t<T> share = load<T>(shares + i + k * VECTOR_LANES<T>);
            const vector_t<T> slope = share * (own - load<T>(y + i + k * VECTOR_LANES<T>));
            sums[k] += !SOME ? slope : share != 0 ? slope : vector_t<T>{};
        }
    for (; i < n; i++)
        rest += shares[i] == 0 ? 0 : shares[i] * (own - y[i]);
    for (int k = 0; k < PARTS; k++)
        sums[k] += sums[PARTS + k];
    return joined<T>(sums) + rest;
}

/* out[c] = the sum over j of weights[j] * d distance[j] / d x[c]; 0 where vectors coincide. */
template <class T> static void distance_gradient(const T *x, const T *transposed, const T *weights, const T *distances,
                                                 T *out, int64_t k, int64_t m, int order) {
    T shares[SUMMED_AT_ONCE], terms[SUMMED_AT_ONCE], highest[SUMMED_AT_ONCE];
    memset(out, 0, m * sizeof(T));
    for (int64_t start = 0; start < k; start += SUMMED_AT_ONCE) {
        const int64_t n = k - start < SUMMED_AT_ONCE ? k - start : SUMMED_AT_ONCE;
        const T *w = weights + start, *whole = distances + start;
        int extreme = 0, some = 0;
        if (order == HIGHEST) {                        /* the given distances may have been rounded */
            memset(highest, 0, n * sizeof *highest);
            enlarge_parts<T>(x, transposed + start, highest, n, k, 0, m, HIGHEST);
            whole = highest;
            count_farthest<T>(x, transposed + start, whole, shares, n, k, m);
            for (int64_t j = 0; j < n; j++)
                shares[j] = w[j] / shares[j];
        } else {
            for (int64_t j = 0; j < n; j++)
                shares[j] = order == FIRST ? w[j] : whole[j] == 0 ? 0 : w[j] / whole[j];
            for (int64_t j = 0; order == SECOND && j < n; j++) {
                const T size = fabs(shares[j]);
                const int fits = (int)(size >= LEAST<T>) & (int)(size <= MOST<T>);
                extreme |= (w[j] != 0) & (whole[j] != 0) & !fits;
                some |= size == 0;
            }
        }
        for (int64_t c = 0; c < m; c++) {
            const T *y = transposed + c * k + start, own = x[c];
            if (extreme) {                             /* a share may have over- or underflown */
                for (int64_t j = 0; j < n; j++)
                    terms[j] = whole[j] == 0 ? 0 : w[j] * ((own - y[j]) / whole[j]);
                out[c] += (T)sum_of<T>(terms, NULL, n);
                continue;
            }
            if (order == SECOND) {
                out[c] += (T)(some ? sum_of_slopes<T, true> : sum_of_slopes<T, false>)(shares, y, own, n);
                continue;
            }
            if (order == FIRST)
                for (int64_t j = 0; j < n; j++) {
                    const T difference = own - y[j];
                    terms[j] = difference > 0 ? shares[j] : difference < 0 ? -shares[j] : difference;
                }
            else
                for (int64_t j = 0; j < n; j++) {
                    const T difference = own - y[j];
                    const T signed_share = difference > 0 ? shares[j] : difference < 0 ? -shares[j] : difference;
                    const T rest = difference != difference ? difference : 0;
                    terms[j] = fabs(difference) == whole[j] ? signed_share : rest;
                }
            out[c] += (T)sum_of<T>(terms, NULL, n);
        }
    }
}
