/* Fused multiply-adds of numbers in registers: the peak of this processor. simd/targets.h compiles it for each SIMD
 * target. */
#undef WIDTH
#undef MULTIPLY_ADD_ALL
#if SIMD_LEVEL == 2
#define WIDTH 64
#define MULTIPLY_ADD_ALL(a, b, c)                                                                 \
    (DOUBLE ? (NAME(register_t))_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))         \
            : (NAME(register_t))_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif SIMD_LEVEL == 1
#define WIDTH 32
#define MULTIPLY_ADD_ALL(a, b, c)                                                                 \
    (DOUBLE ? (NAME(register_t))_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))         \
            : (NAME(register_t))_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#else
#define WIDTH 16
#define MULTIPLY_ADD_ALL(a, b, c) ((a) * (b) + (c))
#endif
#define CHAINS 12                /* independent chains: two units, and some five cycles of latency */

typedef REAL NAME(register_t) __attribute__((vector_size(WIDTH)));

/* Run n times through CHAINS vectors; return the number of elements. */
static int64_t NAME(multiply_adds)(int64_t n, volatile double *result) {
    const NAME(register_t) zero = {0}, factor = zero + (REAL)*result, term = 1 - factor;
    NAME(register_t) chains[CHAINS], sum = zero;
    for (int i = 0; i < CHAINS; i++)
        chains[i] = zero + (REAL)i;
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < CHAINS; i++)
            chains[i] = MULTIPLY_ADD_ALL(chains[i], factor, term);
    for (int i = 0; i < CHAINS; i++)
        sum += chains[i];
    *result = (double)sum[0];
    return CHAINS * WIDTH / (int64_t)sizeof(REAL);
}
