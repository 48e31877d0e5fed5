/* Steps of chains; see chains.h. */

enum { ADD, SUB, MUL, DIV, NEG, SQUARE, SQRT, RECIPROCAL };          /* as in short_loops.h */
constexpr int HELD_VECTORS = SIMD_LEVEL == 2 ? 16 : 8;

template <class T> struct chained {
    typedef T type __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T> using chained_t = typename chained<T>::type;

/* Compilers turn the operands of sums and products as they like, and of two nan the first one is the result. */
#if SIMD_LEVEL > 0 || (defined(__x86_64__) && defined(__AVX__))
#define IN_ORDER(name, suffix, x, y) __asm__("v" #name #suffix " %2, %1, %0" : "=v"(x) : "v"(x), "vm"(y))
#elif defined(__x86_64__) && defined(__GNUC__)
#define IN_ORDER(name, suffix, x, y) __asm__(#name #suffix " %1, %0" : "+x"(x) : "x"(y))
#endif

/* A reference to x instead of its value would keep what is held in memory. */
template <class T, int OPERATION> INLINE vector_t<T> computed(vector_t<T> x, const chained_t<T> &y) {
    vector_t<T> result = x;
#ifdef IN_ORDER
    if constexpr (OPERATION == ADD && DOUBLE<T>)
        IN_ORDER(add, pd, result, y);
    else if constexpr (OPERATION == ADD)
        IN_ORDER(add, ps, result, y);
    else if constexpr (OPERATION == MUL && DOUBLE<T>)
        IN_ORDER(mul, pd, result, y);
    else if constexpr (OPERATION == MUL)
        IN_ORDER(mul, ps, result, y);
    else
#endif
    if constexpr (OPERATION == SQRT)
        for (int lane = 0; lane < VECTOR_LANES<T>; lane++)
            result[lane] = sqrt(x[lane]);
    else
        result = OPERATION == ADD ? x + y : OPERATION == SUB ? x - y : OPERATION == MUL ? x * y
            : OPERATION == DIV ? x / y : OPERATION == NEG ? -x : OPERATION == SQUARE ? x * x : 1 / x;
    return result;
}
#undef IN_ORDER

/* An operand of one vector: held, in memory, or a number. */
template <class T, int KIND> INLINE const chained_t<T> &operand(
        const chained_t<T> &held, const char *memory, const chained_t<T> &number) {
    if constexpr (KIND == HELD)
        return held;
    else if constexpr (KIND == ELEMENTS)
        return *(const chained_t<T> *)memory;
    else
        return number;
}

template <class T, int OPERATION, int ONE, int OTHER, int KEPT, int... K> INLINE void take_step(
        chained_t<T> *held, const chain_step_t *step, int64_t offset, std::integer_sequence<int, K...>) {
    constexpr bool SWAPPED = OTHER == NUMBER && (OPERATION == ADD || OPERATION == MUL);     /* as compilers do */
    constexpr int FIRST = SWAPPED ? OTHER : ONE, SECOND = SWAPPED ? ONE : OTHER;
    const char *const first = SWAPPED ? step->right : step->left, *const second = SWAPPED ? step->left : step->right;
    chained_t<T> number = {};
    if constexpr (FIRST == NUMBER || SECOND == NUMBER)
        number = every<T>(*(const T *)(FIRST == NUMBER ? first : second));
    ((held[K] = computed<T, OPERATION>(operand<T, FIRST>(held[K], first + offset + K * VECTOR_BYTES, number),
                                       operand<T, SECOND>(held[K], second + offset + K * VECTOR_BYTES, number))), ...);
    if constexpr (KEPT)
        ((*(chained_t<T> *)(step->out + offset + K * VECTOR_BYTES) = held[K]), ...);
}

#define STEP(operation, one, other)                                                               \
    case CHAIN_CODE(operation, one, other, 0):                                                    \
        take_step<T, operation, one, other, 0>(held, step, offset, all);                          \
        break;                                                                                    \
    case CHAIN_CODE(operation, one, other, 1):                                                    \
        take_step<T, operation, one, other, 1>(held, step, offset, all);                          \
        break;
#define UNARY_STEPS(operation) STEP(operation, HELD, HELD) STEP(operation, ELEMENTS, HELD)
#define BINARY_STEPS(operation)                                                                   \
    UNARY_STEPS(operation)                                                                        \
    STEP(operation, HELD, ELEMENTS)                                                               \
    STEP(operation, HELD, NUMBER)                                                                 \
    STEP(operation, ELEMENTS, ELEMENTS)                                                           \
    STEP(operation, ELEMENTS, NUMBER)                                                             \
    STEP(operation, NUMBER, HELD)                                                                 \
    STEP(operation, NUMBER, ELEMENTS)

template <class T> static int64_t run_steps(const chain_step_t *steps, int64_t count, int64_t n) {
    constexpr std::make_integer_sequence<int, HELD_VECTORS> all;
    constexpr int64_t block = VECTOR_BYTES * HELD_VECTORS, size = sizeof(T);
    const int64_t end = n * size / block * block;
    chained_t<T> held[HELD_VECTORS] = {};
    for (int64_t offset = 0; offset < end; offset += block)
        for (const chain_step_t *step = steps; step < steps + count; step++)
            switch (step->code) {
                BINARY_STEPS(ADD) BINARY_STEPS(SUB) BINARY_STEPS(MUL) BINARY_STEPS(DIV)
                UNARY_STEPS(NEG) UNARY_STEPS(SQUARE) UNARY_STEPS(SQRT) UNARY_STEPS(RECIPROCAL)
                default: __builtin_unreachable();
            }
    return end / size;
}
#undef STEP
#undef UNARY_STEPS
#undef BINARY_STEPS
