/* Distances of one vector from several, and their gradient; see distances.pyx. `sum_of_sizes`: p = 1 instead of p = 2.

   Sums are taken in short parts that are added up then, which keeps rounding small. `turned` has row c of m for
   component c of all k other vectors. */
#ifndef CYGRAD_DISTANCE_PARTS
#define CYGRAD_DISTANCE_PARTS
enum { AT_ONCE = 256, PART = 64 };
#endif

#undef SIZE
#undef ROOT
#if DOUBLE
#define SIZE(x) fabs(x)
#define ROOT(x) sqrt(x)
#else
#define SIZE(x) fabsf(x)
#define ROOT(x) sqrtf(x)
#endif

/* out[j] = the distance of x from vector j. */
static void NAME(distances_of)(const REAL *x, const REAL *turned, REAL *out, int64_t k, int64_t m, int sum_of_sizes) {
    REAL sums[AT_ONCE], part[AT_ONCE];
    for (int64_t start = 0; start < k; start += AT_ONCE) {
        const int64_t n = k - start < AT_ONCE ? k - start : AT_ONCE;
        memset(sums, 0, sizeof sums);
        for (int64_t first = 0; first < m; first += PART) {
            const int64_t last = m - first < PART ? m : first + PART;
            memset(part, 0, sizeof part);
            for (int64_t c = first; c < last; c++) {
                const REAL *y = turned + c * k + start, own = x[c];
                if (sum_of_sizes)
                    for (int64_t j = 0; j < n; j++)
                        part[j] += SIZE(own - y[j]);
                else
                    for (int64_t j = 0; j < n; j++) {
                        const REAL difference = own - y[j];
                        part[j] = MULTIPLY_ADD(difference, difference, part[j]);
                    }
            }
            for (int64_t j = 0; j < n; j++)
                sums[j] += part[j];
        }
        for (int64_t j = 0; j < n; j++)
            out[start + j] = sum_of_sizes ? sums[j] : ROOT(sums[j]);
    }
}

/* out[c] = the sum over j of weights[j] times the derivative of distance j by x[c], 0 where vectors coincide. */
static void NAME(distance_gradient)(const REAL *x, const REAL *turned, const REAL *weights, const REAL *distances,
                                    REAL *out, int64_t k, int64_t m, int sum_of_sizes) {
    REAL shares[AT_ONCE], terms[AT_ONCE];
    memset(out, 0, m * sizeof(REAL));
    for (int64_t start = 0; start < k; start += AT_ONCE) {
        const int64_t n = k - start < AT_ONCE ? k - start : AT_ONCE;
        for (int64_t j = 0; j < n; j++)
            shares[j] = sum_of_sizes ? weights[start + j]
                                     : distances[start + j] == 0 ? 0 : weights[start + j] / distances[start + j];
        for (int64_t c = 0; c < m; c++) {
            const REAL *y = turned + c * k + start, own = x[c];
            int64_t width = 1;
            if (sum_of_sizes)
                for (int64_t j = 0; j < n; j++) {
                    const REAL difference = own - y[j];
                    terms[j] = difference > 0 ? shares[j] : difference < 0 ? -shares[j] : difference;
                }
            else
                for (int64_t j = 0; j < n; j++)
                    terms[j] = shares[j] == 0 ? 0 : shares[j] * (own - y[j]);
            while (width < n)
                width *= 2;
            memset(terms + n, 0, (width - n) * sizeof(REAL));
            for (width /= 2; width; width /= 2)
                for (int64_t j = 0; j < width; j++)
                    terms[j] += terms[j + width];
            out[c] += terms[0];
        }
    }
}
