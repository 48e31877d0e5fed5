/* Vectors of elements, in the width of the target or in another. simd/dispatch.h includes it before LOOPS. */

#if SIMD_LEVEL > 0 || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool FUSED = true;
#else
constexpr bool FUSED = false;
#endif
template <class T> constexpr bool DOUBLE = sizeof(T) == 8;
template <class T> using bits_t = typename std::conditional<DOUBLE<T>, uint64_t, uint32_t>::type;

template <class T, int BYTES> struct vector_of {
    typedef T type __attribute__((vector_size(BYTES)));
};
constexpr int VECTOR_BYTES = 16 << SIMD_LEVEL;
template <class T> using vector_t = typename vector_of<T, VECTOR_BYTES>::type;
template <class T> constexpr int VECTOR_LANES = VECTOR_BYTES / sizeof(T);

template <class T, int BYTES = VECTOR_BYTES> INLINE typename vector_of<T, BYTES>::type load(const T *from) {
    typename vector_of<T, BYTES>::type vector;
    memcpy(&vector, from, BYTES);
    return vector;
}

/* The number in all lanes. */
template <class T> INLINE vector_t<T> every(T number) {
    return number - vector_t<T>{};
}

template <class T, class V> INLINE void store(T *to, const V &vector) {
    memcpy(to, &vector, sizeof vector);
}

/* Combine the lanes of BYTES bytes by halving; `how(a, x)` accumulates x into a. */
template <class P, int BYTES, class F> INLINE P folded(const typename vector_of<P, BYTES>::type &lanes, F how) {
    if constexpr (BYTES == sizeof(P)) {
        return lanes[0];
    } else {
        typename vector_of<P, BYTES / 2>::type halves[2];
        memcpy(halves, &lanes, sizeof halves);
        how(halves[0], halves[1]);
        return folded<P, BYTES / 2>(halves[0], how);
    }
}

/* Every other lane of two vectors in a row, from lane FIRST on. */
template <class T, int BYTES, int FIRST, int... LANE> INLINE typename vector_of<T, BYTES>::type alternate_lanes(
        const typename vector_of<T, BYTES>::type &a, const typename vector_of<T, BYTES>::type &b,
        std::integer_sequence<int, LANE...>) {
    return SHUFFLE(a, b, (FIRST + 2 * LANE)...);
}

template <class T, int BYTES, int FIRST> INLINE typename vector_of<T, BYTES>::type alternate(
        const typename vector_of<T, BYTES>::type &a, const typename vector_of<T, BYTES>::type &b) {
    return alternate_lanes<T, BYTES, FIRST>(a, b, std::make_integer_sequence<int, BYTES / sizeof(T)>());
}

/* Call how(step); 1, the step of contiguous elements, as a constant, so that compilers make vector code for it. */
template <class F> INLINE void with_step(int64_t step, F how) {
    if (step == 1)
        how(std::integral_constant<int64_t, 1>());
    else
        how(step);
}

/* a * b + c, rounded once where the target has an instruction for it. */
template <class T> INLINE T multiply_add(T a, T b, T c) {
    if constexpr (!FUSED)
        return a * b + c;
    else if constexpr (DOUBLE<T>)
        return __builtin_fma(a, b, c);
    else
        return __builtin_fmaf(a, b, c);
}

/* The same for vectors of x86-64's targets. Compilers do not make one instruction of a fused multiply-add per lane. */
INLINE vector_t<float> multiply_add(vector_t<float> a, vector_t<float> b, vector_t<float> c) {
#if SIMD_LEVEL == 2
    return (vector_t<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif SIMD_LEVEL == 1
    return (vector_t<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

INLINE vector_t<double> multiply_add(vector_t<double> a, vector_t<double> b, vector_t<double> c) {
#if SIMD_LEVEL == 2
    return (vector_t<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif SIMD_LEVEL == 1
    return (vector_t<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

/* Loads and stores of the first lanes: others are zero, and are not written. */
#if SIMD_LEVEL == 2
template <class T> using mask_t = typename std::conditional<DOUBLE<T>, __mmask8, __mmask16>::type;
template <class T> INLINE mask_t<T> first_lanes(int64_t n) { return (mask_t<T>)((1u << n) - 1); }
INLINE vector_t<float> load(const float *from, __mmask16 mask) {
    return (vector_t<float>)_mm512_maskz_loadu_ps(mask, from);
}
INLINE vector_t<double> load(const double *from, __mmask8 mask) {
    return (vector_t<double>)_mm512_maskz_loadu_pd(mask, from);
}
INLINE void store(float *to, __mmask16 mask, vector_t<float> x) { _mm512_mask_storeu_ps(to, mask, (__m512)x); }
INLINE void store(double *to, __mmask8 mask, vector_t<double> x) { _mm512_mask_storeu_pd(to, mask, (__m512d)x); }
#elif SIMD_LEVEL == 1
template <class T> using mask_t = decltype(vector_t<T>{} < vector_t<T>{});
template <class T> INLINE mask_t<T> first_lanes(int64_t n) {
    if constexpr (DOUBLE<T>)
        return mask_t<T>{0, 1, 2, 3} < n;
    else
        return mask_t<T>{0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)n;
}
INLINE vector_t<float> load(const float *from, mask_t<float> mask) {
    return (vector_t<float>)_mm256_maskload_ps(from, (__m256i)mask);
}
INLINE vector_t<double> load(const double *from, mask_t<double> mask) {
    return (vector_t<double>)_mm256_maskload_pd(from, (__m256i)mask);
}
INLINE void store(float *to, mask_t<float> mask, vector_t<float> x) {
    _mm256_maskstore_ps(to, (__m256i)mask, (__m256)x);
}
INLINE void store(double *to, mask_t<double> mask, vector_t<double> x) {
    _mm256_maskstore_pd(to, (__m256i)mask, (__m256d)x);
}
#endif
