/* Sums and maxima of neighbours, in lanes that are joined in one order on all processors. Part of a header that each_set.h
 * compiles.
 */
#undef LANES
#define LANES (64 / (int)sizeof(REAL))
#define SUMMED 2048                                  /* elements that are summed in the precision of the type */

typedef REAL NAME(lanes_t) __attribute__((vector_size(64)));
typedef REAL NAME(unaligned_t) __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));

/* Added up as a balanced tree. */
INLINE double NAME(joined)(const NAME(lanes_t) *lanes) {
    REAL value[LANES];
    memcpy(value, lanes, sizeof value);
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            value[i] += value[i + width];
    return value[0];
}

/* The sum of a, or of a * b where b is given. */
INLINE double NAME(sum_of)(const REAL *a, const REAL *b, int64_t n) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(lanes_t) first = {0}, second = {0};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            NAME(lanes_t) x = *(const NAME(unaligned_t) *)(a + i), y = *(const NAME(unaligned_t) *)(a + i + LANES);
            if (b) {
                x *= *(const NAME(unaligned_t) *)(b + i);
                y *= *(const NAME(unaligned_t) *)(b + i + LANES);
            }
            first += x;
            second += y;
        }
        double rest = 0;
        for (; i < end; i++)
            rest += b ? a[i] * b[i] : a[i];
        first += second;
        total += NAME(joined)(&first) + rest;
    }
    return total;
}

INLINE void NAME(enlarge)(NAME(lanes_t) *largest, const REAL *x) {
    typedef UNSIGNED mask_t __attribute__((vector_size(64)));
    const NAME(lanes_t) other = *(const NAME(unaligned_t) *)x;
    const mask_t keep = (mask_t)(*largest > other);
    *largest = (NAME(lanes_t))(((mask_t)*largest & keep) | ((mask_t)other & ~keep));
}

/* The largest; something else if there is a nan, which then is in all sums, too. */
INLINE REAL NAME(largest)(const REAL *x, int64_t n) {
    REAL largest = -(REAL)INFINITY;
    int64_t i = 0;
    if (n >= LANES) {
        NAME(lanes_t) first = *(const NAME(unaligned_t) *)x, second = first;
        REAL value[LANES];
        for (; i + 2 * LANES <= n; i += 2 * LANES) {
            NAME(enlarge)(&first, x + i);
            NAME(enlarge)(&second, x + i + LANES);
        }
        memcpy(value, &second, sizeof value);
        NAME(enlarge)(&first, value);
        memcpy(value, &first, sizeof value);
        for (int width = LANES / 2; width; width /= 2)
            for (int k = 0; k < width; k++)
                value[k] = value[k] > value[k + width] ? value[k] : value[k + width];
        largest = value[0];
    }
    for (; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}
