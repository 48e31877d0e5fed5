/* Distances of one vector from several, and their gradient; see distances.pyx. `order` is that of the norm.

   Sums are split into short parts, which keeps rounding errors small. Row c of `transposed` has component c of all k
   other vectors. */
#ifndef CYGRAD_DISTANCE_PARTS
#define CYGRAD_DISTANCE_PARTS
#include <float.h>
#include <math.h>
enum { AT_ONCE = 256, SUMMED_AT_ONCE = 1024, PART = 64, MIRRORED = 32 };
enum { FIRST = 1, SECOND, HIGHEST };              /* order: p = 1, p = 2 and p = inf */
#endif

#include "simd/vector_functions.h"
#include "simd/lane_sums.h"

#undef ROOT
#if DOUBLE
#define ROOT(x) sqrt(x)
#else
#define ROOT(x) sqrtf(x)
#endif

/* Return the maximum; nan wins. */
INLINE REAL NAME(larger)(REAL x, REAL y) {
    return ((y > x) | (y != y)) ? y : x;
}

/* Accumulate |a - b| or its square into `sum`, or take their maximum. */
INLINE REAL NAME(enlarged)(REAL sum, REAL a, REAL b, int order) {
    const REAL difference = a - b;
    if (order == SECOND)
        return MULTIPLY_ADD(difference, difference, sum);
    return order == FIRST ? sum + ABSOLUTE(difference) : NAME(larger)(sum, ABSOLUTE(difference));
}

/* Accumulate components first..last of n vectors, several at a time, so that sums stay in registers. */
INLINE void NAME(enlarge_parts)(const REAL *x, const REAL *y, REAL *part, int64_t n, int64_t k, int64_t first,
                                int64_t last, int order) {
    int64_t c = first;
    for (; c + 4 <= last; c += 4) {
        const REAL *row = y + c * k, x0 = x[c], x1 = x[c + 1], x2 = x[c + 2], x3 = x[c + 3];
        INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            REAL sum = NAME(enlarged)(part[j], x0, row[j], order);
            sum = NAME(enlarged)(sum, x1, row[j + k], order);
            sum = NAME(enlarged)(sum, x2, row[j + 2 * k], order);
            part[j] = NAME(enlarged)(sum, x3, row[j + 3 * k], order);
        }
    }
    for (; c < last; c++) {
        INDEPENDENT
        for (int64_t j = 0; j < n; j++)
            part[j] = NAME(enlarged)(part[j], x[c], y[c * k + j], order);
    }
}

#undef LEAST
#undef MOST
#if DOUBLE
#define LEAST 1e-290
#define MOST 1e300
#else
#define LEAST 1e-33f
#define MOST 1e37f
#endif

/* Compute the distance of x from one vector by scaled differences: its square may over- or underflow. */
static REAL NAME(scaled_distance)(const REAL *x, const REAL *y, int64_t k, int64_t m) {
    double largest = 0, sum = 0;
    for (int64_t c = 0; c < m; c++) {
        const double difference = fabs((double)x[c] - (double)y[c * k]);
        largest = ((difference > largest) | (difference != difference)) ? difference : largest;
    }
    if (!(largest > 0 && largest <= DBL_MAX))
        return (REAL)largest;
    for (int64_t c = 0; c < m; c++) {
        const double share = ((double)x[c] - (double)y[c * k]) / largest;
        sum += share * share;
    }
    return (REAL)(largest * sqrt(sum));
}

/* out[j] = the distance of x from vector j, for j from `from` on. */
static void NAME(distances_of)(const REAL *x, const REAL *transposed, REAL *out, int64_t from, int64_t k, int64_t m,
                               int order) {
    REAL sums[AT_ONCE], part[AT_ONCE];
    for (int64_t start = from; start < k; start += AT_ONCE) {
        const int64_t n = k - start < AT_ONCE ? k - start : AT_ONCE;
        memset(sums, 0, n * sizeof *sums);
        for (int64_t first = 0; first < m; first += PART) {
            const int64_t last = m - first < PART ? m : first + PART;
            memset(part, 0, n * sizeof *part);
            if (order == FIRST)
                NAME(enlarge_parts)(x, transposed + start, part, n, k, first, last, FIRST);
            else if (order == SECOND)
                NAME(enlarge_parts)(x, transposed + start, part, n, k, first, last, SECOND);
            else
                NAME(enlarge_parts)(x, transposed + start, part, n, k, first, last, HIGHEST);
            for (int64_t j = 0; j < n; j++)
                sums[j] = order == HIGHEST ? NAME(larger)(sums[j], part[j]) : sums[j] + part[j];
        }
        int extreme = 0;
        if (order == SECOND)
            for (int64_t j = 0; j < n; j++)
                extreme |= !((sums[j] >= LEAST) & (sums[j] <= MOST));
        for (int64_t j = 0; j < n; j++)
            out[start + j] = order == SECOND ? ROOT(sums[j]) : sums[j];
        for (int64_t j = 0; extreme && j < n; j++)
            if (!(sums[j] >= LEAST && sums[j] <= MOST))
                out[start + j] = NAME(scaled_distance)(x, transposed + start + j, k, m);
    }
}

/* Mirror the upper triangle of a square matrix to the lower one, in these rows. */
static void NAME(mirror)(REAL *square, int64_t n, int64_t begin, int64_t end) {
    for (int64_t column = 0; column < end; column += MIRRORED)
        for (int64_t i = begin > column ? begin : column + 1; i < end; i++)
            for (int64_t j = column; j < column + MIRRORED && j < i; j++)
                square[i * n + j] = square[j * n + i];
}

/* Count the components of n vectors whose distance from x is that of the vector. */
static void NAME(count_farthest)(const REAL *x, const REAL *transposed, const REAL *distances, REAL *counts, int64_t n,
                                 int64_t k, int64_t m) {
    memset(counts, 0, n * sizeof(REAL));
    for (int64_t c = 0; c < m; c++)
        for (int64_t j = 0; j < n; j++)
            counts[j] += ABSOLUTE(x[c] - transposed[c * k + j]) == distances[j];
}

/* Sum shares * (own - y) in the order of sum_of; 0 where the share is 0. */
INLINE double NAME(sum_of_slopes)(const REAL *shares, const REAL *y, REAL own, int64_t n) {
    typedef UNSIGNED mask_t __attribute__((vector_size(64 / PARTS)));
    NAME(part_t) sums[2 * PARTS] = {{0}};
    double rest = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (int k = 0; k < 2 * PARTS; k++) {
            const NAME(part_t) share = *(const NAME(unaligned_t) *)(shares + i + k * PART_LANES);
            const NAME(part_t) slope = share * (own - *(const NAME(unaligned_t) *)(y + i + k * PART_LANES));
            sums[k] += (NAME(part_t))((mask_t)slope & (mask_t)(share != 0));
        }
    for (; i < n; i++)
        rest += shares[i] == 0 ? 0 : shares[i] * (own - y[i]);
    for (int k = 0; k < PARTS; k++)
        sums[k] += sums[PARTS + k];
    return NAME(joined)(sums) + rest;
}

/* out[c] = the sum over j of weights[j] * d distance[j] / d x[c]; 0 where vectors coincide. */
static void NAME(distance_gradient)(const REAL *x, const REAL *transposed, const REAL *weights, const REAL *distances,
                                    REAL *out, int64_t k, int64_t m, int order) {
    REAL shares[SUMMED_AT_ONCE], terms[SUMMED_AT_ONCE], highest[SUMMED_AT_ONCE];
    memset(out, 0, m * sizeof(REAL));
    for (int64_t start = 0; start < k; start += SUMMED_AT_ONCE) {
        const int64_t n = k - start < SUMMED_AT_ONCE ? k - start : SUMMED_AT_ONCE;
        const REAL *w = weights + start, *whole = distances + start;
        if (order == HIGHEST) {                        /* the given distances may have been rounded */
            memset(highest, 0, n * sizeof *highest);
            NAME(enlarge_parts)(x, transposed + start, highest, n, k, 0, m, HIGHEST);
            whole = highest;
            NAME(count_farthest)(x, transposed + start, whole, shares, n, k, m);
            for (int64_t j = 0; j < n; j++)
                shares[j] = w[j] / shares[j];
        } else {
            for (int64_t j = 0; j < n; j++)
                shares[j] = order == FIRST ? w[j] : whole[j] == 0 ? 0 : w[j] / whole[j];
        }
        for (int64_t c = 0; c < m; c++) {
            const REAL *y = transposed + c * k + start, own = x[c];
            if (order == SECOND) {
                out[c] += (REAL)NAME(sum_of_slopes)(shares, y, own, n);
                continue;
            }
            if (order == FIRST)
                for (int64_t j = 0; j < n; j++) {
                    const REAL difference = own - y[j];
                    terms[j] = difference > 0 ? shares[j] : difference < 0 ? -shares[j] : difference;
                }
            else
                for (int64_t j = 0; j < n; j++) {
                    const REAL difference = own - y[j];
                    const REAL signed_share = difference > 0 ? shares[j] : difference < 0 ? -shares[j] : difference;
                    const REAL rest = difference != difference ? difference : 0;
                    terms[j] = ABSOLUTE(difference) == whole[j] ? signed_share : rest;
                }
            out[c] += (REAL)NAME(sum_of)(terms, NULL, n);
        }
    }
}
