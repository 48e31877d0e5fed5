/* Sums and maxima of contiguous elements, in lanes that are combined in the same order on all processors. Part of a
 * header that simd/targets.h compiles. */
#undef LANES
#undef PARTS
#undef PART_LANES
#define LANES (64 / (int)sizeof(REAL))
#if SIMD_LEVEL == 2                                  /* vectors of the processor: compilers keep wider ones in memory */
#define PARTS 1
#elif SIMD_LEVEL == 1
#define PARTS 2
#else
#define PARTS 4
#endif
#define PART_LANES (LANES / PARTS)
#define SUMMED 2048                                  /* elements that are summed in the precision of the type */

typedef REAL NAME(part_t) __attribute__((vector_size(64 / PARTS)));
typedef REAL NAME(unaligned_t) __attribute__((vector_size(64 / PARTS), aligned(sizeof(REAL)), may_alias));

typedef REAL NAME(half_t) __attribute__((vector_size(32)));
typedef REAL NAME(quarter_t) __attribute__((vector_size(16)));

/* Add the lanes as a balanced tree. */
INLINE double NAME(joined)(const NAME(part_t) *lanes) {
    NAME(half_t) halves[2];
    NAME(quarter_t) quarters[2];
    memcpy(halves, lanes, sizeof halves);
    halves[0] += halves[1];
    memcpy(quarters, halves, sizeof quarters);
    quarters[0] += quarters[1];
#if DOUBLE
    return quarters[0][0] + quarters[0][1];
#else
    return (quarters[0][0] + quarters[0][2]) + (quarters[0][1] + quarters[0][3]);
#endif
}

/* Sum a, or a * b if b is given. */
INLINE double NAME(sum_of)(const REAL *a, const REAL *b, int64_t n) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        NAME(part_t) sums[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES <= end; i += 2 * LANES)
            for (int k = 0; k < 2 * PARTS; k++) {
                const NAME(part_t) x = *(const NAME(unaligned_t) *)(a + i + k * PART_LANES);
                sums[k] += b ? x * *(const NAME(unaligned_t) *)(b + i + k * PART_LANES) : x;
            }
        double rest = 0;
        for (; i < end; i++)
            rest += b ? a[i] * b[i] : a[i];
        for (int k = 0; k < PARTS; k++)
            sums[k] += sums[PARTS + k];
        total += NAME(joined)(sums) + rest;
    }
    return total;
}

#define ENLARGE(vector_t, size) \
    INLINE void NAME(enlarge_##vector_t)(NAME(vector_t) *largest, const NAME(vector_t) *x) { \
        typedef UNSIGNED mask_t __attribute__((vector_size(size))); \
        const NAME(vector_t) other = *x; \
        const mask_t keep = (mask_t)(*largest > other); \
        *largest = (NAME(vector_t))(((mask_t)*largest & keep) | ((mask_t)other & ~keep)); \
    }
ENLARGE(part_t, 64 / PARTS)
ENLARGE(half_t, 32)
ENLARGE(quarter_t, 16)
#undef ENLARGE

/* Return the maximum, undefined if there is a nan (which then is in all sums). */
INLINE REAL NAME(largest)(const REAL *x, int64_t n) {
    REAL largest = -(REAL)INFINITY;
    int64_t i = 0;
    if (n >= LANES) {
        NAME(part_t) best[2 * PARTS], part;
        NAME(half_t) halves[2];
        NAME(quarter_t) quarters[2];
        for (int k = 0; k < 2 * PARTS; k++)
            best[k] = *(const NAME(unaligned_t) *)(x + k % PARTS * PART_LANES);
        for (; i + 2 * LANES <= n; i += 2 * LANES)
            for (int k = 0; k < 2 * PARTS; k++) {
                part = *(const NAME(unaligned_t) *)(x + i + k * PART_LANES);
                NAME(enlarge_part_t)(&best[k], &part);
            }
        for (int k = 0; k < PARTS; k++)
            NAME(enlarge_part_t)(&best[k], &best[PARTS + k]);
        memcpy(halves, best, sizeof halves);
        NAME(enlarge_half_t)(&halves[0], &halves[1]);
        memcpy(quarters, halves, sizeof quarters);
        NAME(enlarge_quarter_t)(&quarters[0], &quarters[1]);
        /* vectors up to the end: a scalar maximum may compile to a mispredicted branch */
#if !DOUBLE
        quarters[1] = (NAME(quarter_t)){quarters[0][2], quarters[0][3], quarters[0][0], quarters[0][1]};
        NAME(enlarge_quarter_t)(&quarters[0], &quarters[1]);
#endif
        quarters[1] = (NAME(quarter_t)){quarters[0][1], quarters[0][0]};
        NAME(enlarge_quarter_t)(&quarters[0], &quarters[1]);
        largest = quarters[0][0];
    }
    for (; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}
