/* The operations of chains.h for one type of real numbers and one instruction set. */
#if SIMD_LEVEL == 2
#define WIDTH 64
#define EACH EACH_OF_16
#elif SIMD_LEVEL == 1
#define WIDTH 32
#define EACH EACH_OF_8
#else
#define WIDTH 16
#define EACH EACH_OF_8
#endif
#if DOUBLE
#define SUFFIX "pd"
#else
#define SUFFIX "ps"
#endif

typedef REAL NAME(chained_t) __attribute__((vector_size(WIDTH), aligned(sizeof(REAL)), may_alias));

INLINE NAME(chained_t) NAME(chained_sqrt)(NAME(chained_t) x) {
    for (size_t i = 0; i < WIDTH / sizeof(REAL); i++)
        x[i] = DOUBLE ? (REAL)__builtin_sqrt(x[i]) : (REAL)__builtin_sqrtf((float)x[i]);
    return x;
}

/* Compilers turn the operands of sums and products as they like, and of two nan the first one is the result. */
#if SIMD_LEVEL > 0 || (defined(__x86_64__) && defined(__AVX__))
#define IN_ORDER(name, x, y) __asm__("v" #name SUFFIX " %2, %1, %0" : "=v"(x) : "v"(x), "vm"(y))
#elif defined(__x86_64__) && defined(__GNUC__)
#define IN_ORDER(name, x, y) __asm__(#name SUFFIX " %1, %0" : "+x"(x) : "x"(y))
#else
#define IN_ORDER(name, x, y) x = CHAINED_##name(x, y)
#endif

/* Whole blocks of n elements; return the number of their elements. */
static int64_t NAME(chain)(const chain_step_t *steps, int64_t count, int64_t n) {
    const int64_t block = WIDTH * (EACH(COUNT) 0), end = n * (int64_t)sizeof(REAL) / block * block;
    NAME(chained_t) EACH(DECLARE) none;
    (void)none;
    for (int64_t offset = 0; offset < end; offset += block)
        for (const chain_step_t *step = steps; step < steps + count; step++)
            switch (step->code) {
                ORDERED_STEPS(0, add)
                BINARY_STEPS(1, sub)
                ORDERED_STEPS(2, mul)
                BINARY_STEPS(3, div)
                UNARY_STEPS(4, neg)
                UNARY_STEPS(5, square)
                UNARY_STEPS(6, sqrt)
                UNARY_STEPS(7, reciprocal)
                default: __builtin_unreachable();
            }
    return end / (int64_t)sizeof(REAL);
}

#undef IN_ORDER
#undef SUFFIX
#undef WIDTH
#undef EACH
