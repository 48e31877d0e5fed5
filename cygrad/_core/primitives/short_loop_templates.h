/* Loops over contiguous elements that compilers vectorize. `out` may begin where an operand does, but must not overlap
 * it otherwise: iterations are independent, which compilers must be told. */

template <class T, class F> INLINE void for_contiguous(T *out, int64_t n, F f) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = f(i);
}

#define LAMBDA(...) [=](int64_t i) __attribute__((always_inline)) { return (T)(__VA_ARGS__); }

/* Operands: X and Y, each an element of an array or one number for all. */
#define SHORT_LOOP(name, X, Y, ...)                                                                \
    template <class T> void name(const void *a, const void *b, void *out, int64_t n) {             \
        const T *left = (const T *)a, *right = (const T *)b;                                       \
        const T first = left[0], second = right[0];                                                \
        (void)first, (void)second;                                                                 \
        for_contiguous((T *)out, n, [=](int64_t i) __attribute__((always_inline)) {                \
            const T x = X, y = Y;                                                                  \
            (void)y;                                                                               \
            return (T)(__VA_ARGS__);                                                               \
        });                                                                                        \
    }
#define SHORT_LOOPS(name, ...)                                                                     \
    SHORT_LOOP(name##_arrays, left[i], right[i], __VA_ARGS__)                                      \
    SHORT_LOOP(name##_first, first, right[i], __VA_ARGS__)                                         \
    SHORT_LOOP(name##_second, left[i], second, __VA_ARGS__)

SHORT_LOOPS(add, x + y)
SHORT_LOOPS(sub, x - y)
SHORT_LOOPS(mul, x * y)
SHORT_LOOPS(div, x / y)
SHORT_LOOP(neg, left[i], 0, -x)
SHORT_LOOP(square, left[i], 0, x * x)
SHORT_LOOP(reciprocal, left[i], 0, 1 / x)
INLINE float root(float x) { return __builtin_sqrtf(x); }
INLINE double root(double x) { return __builtin_sqrt(x); }
SHORT_LOOP(sqrt, left[i], 0, root(x))
#undef SHORT_LOOP
#undef SHORT_LOOPS

/* x where the condition holds, else y. Conditions are hard to predict, so there is no branch: the bits are masked. */
template <class T, class X, class Y> INLINE void choose(const uint8_t *condition, X x, Y y, T *out, int64_t n) {
    for_contiguous(out, n, LAMBDA(y(i) ^ ((x(i) ^ y(i)) & (T)-(T)(condition[i] != 0))));
}

/* condition (bool), x, y -> x where it is true, else y */
template <class T> void where_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    const int64_t size = sizeof(T), count = *n;
    const uint8_t *condition = (const uint8_t *)arguments[0];
    const T *x = (const T *)arguments[1], *y = (const T *)arguments[2];
    T *out = (T *)arguments[3];
    if (steps[0] == 0 && count && steps[3] == size && steps[*condition ? 1 : 2] == size) {    /* one for all */
        memmove(out, *condition ? x : y, count * size);
        return;
    }
    if constexpr (std::is_integral_v<T>) {
        if (steps[0] == 1 && steps[3] == size && (steps[1] == size || steps[1] == 0) &&
            (steps[2] == size || steps[2] == 0)) {
            if (count <= 0)
                return;
            const T one = *x, other = *y;
            if (steps[1] && steps[2])
                choose(condition, LAMBDA(x[i]), LAMBDA(y[i]), out, count);
            else if (steps[1])
                choose(condition, LAMBDA(x[i]), LAMBDA(other), out, count);
            else if (steps[2])
                choose(condition, LAMBDA(one), LAMBDA(y[i]), out, count);
            else
                choose(condition, LAMBDA(one), LAMBDA(other), out, count);
            return;
        }
    }
    for (int64_t i = 0; i < count; i++)
        *(T *)((char *)out + i * steps[3]) =
            condition[i * steps[0]] ? *(const T *)((const char *)x + i * steps[1]) : *(const T *)((const char *)y + i * steps[2]);
}
#undef LAMBDA
