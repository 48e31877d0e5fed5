/* Sums and maxima of contiguous elements, in lanes that are combined in the same order on all processors. Part of a
 * header that simd/dispatch.h compiles. */
template <class T> using half_t = typename vector_of<T, 32>::type;
template <class T> using quarter_t = typename vector_of<T, 16>::type;
/* 64 bytes in vectors of the processor: compilers keep wider ones in memory. */
constexpr int PARTS = 4 >> SIMD_LEVEL;
template <class T> constexpr int LANES = 64 / sizeof(T);
constexpr int SUMMED = 2048;                         /* elements that are summed in the precision of the type */

/* Add the lanes as a balanced tree. */
template <class T> INLINE double joined(const vector_t<T> *lanes) {
    half_t<T> halves[2];
    quarter_t<T> quarters[2];
    memcpy(halves, lanes, sizeof halves);
    halves[0] += halves[1];
    memcpy(quarters, halves, sizeof quarters);
    quarters[0] += quarters[1];
    if constexpr (DOUBLE<T>)
        return quarters[0][0] + quarters[0][1];
    else
        return (quarters[0][0] + quarters[0][2]) + (quarters[0][1] + quarters[0][3]);
}

/* Sum a, or a * b if b is given. */
template <class T> INLINE double sum_of(const T *a, const T *b, int64_t n) {
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += SUMMED) {
        const int64_t end = n - begin < SUMMED ? n : begin + SUMMED;
        vector_t<T> sums[2 * PARTS] = {{0}};
        int64_t i = begin;
        for (; i + 2 * LANES<T> <= end; i += 2 * LANES<T>)
            for (int k = 0; k < 2 * PARTS; k++) {
                const vector_t<T> x = load<T>(a + i + k * VECTOR_LANES<T>);
                sums[k] += b ? x * load<T>(b + i + k * VECTOR_LANES<T>) : x;
            }
        double rest = 0;
        for (; i < end; i++)
            rest += b ? a[i] * b[i] : a[i];
        for (int k = 0; k < PARTS; k++)
            sums[k] += sums[PARTS + k];
        total += joined<T>(sums) + rest;
    }
    return total;
}

template <class V> INLINE void enlarge(V &largest, const V &x) {
    largest = largest > x ? largest : x;
}

/* Return the maximum, undefined if there is a nan (which then is in all sums). */
template <class T> INLINE T largest(const T *x, int64_t n) {
    T largest = -(T)INFINITY;
    int64_t i = 0;
    if (n >= LANES<T>) {
        vector_t<T> best[2 * PARTS];
        half_t<T> halves[2];
        quarter_t<T> quarters[2];
        for (int k = 0; k < 2 * PARTS; k++)
            best[k] = load<T>(x + k % PARTS * VECTOR_LANES<T>);
        for (; i + 2 * LANES<T> <= n; i += 2 * LANES<T>)
            for (int k = 0; k < 2 * PARTS; k++)
                enlarge(best[k], load<T>(x + i + k * VECTOR_LANES<T>));
        for (int k = 0; k < PARTS; k++)
            enlarge(best[k], best[PARTS + k]);
        memcpy(halves, best, sizeof halves);
        enlarge(halves[0], halves[1]);
        memcpy(quarters, halves, sizeof quarters);
        enlarge(quarters[0], quarters[1]);
        /* vectors up to the end: a scalar maximum may compile to a mispredicted branch */
        if constexpr (!DOUBLE<T>)
            enlarge(quarters[0], quarter_t<T>{quarters[0][2], quarters[0][3], quarters[0][0], quarters[0][1]});
        enlarge(quarters[0], quarter_t<T>{quarters[0][1], quarters[0][0]});
        largest = quarters[0][0];
    }
    for (; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
}
