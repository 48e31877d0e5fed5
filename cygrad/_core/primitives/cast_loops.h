/* Casts of elements, and moves; see casts.h. */
#include "primitives/short_floats.h"

template <class S, class T> INLINE T converted(S x) {
    if constexpr (is_stored<S>)
        return converted<decltype(widened(x)), T>(widened(x));
    else if constexpr (std::is_same_v<T, half_t>)
        return half_of_float(converted<S, float>(x));
    else if constexpr (std::is_same_v<T, bfloat_t>)
        return bfloat_of_float(converted<S, float>(x));
    else if constexpr (std::is_same_v<T, complex_half_t>) {
        const complex64_t z = converted<S, complex64_t>(x);
        return complex_half_t{half_of_float(__real__ z), half_of_float(__imag__ z)};
    } else if constexpr (is_complex<S> && std::is_integral_v<T>)
        return (T)(int64_t)__real__ x;
    else if constexpr (is_complex<S> && !is_complex<T>)
        return (T)__real__ x;
    else if constexpr (is_complex<S> || !std::is_floating_point_v<S> || !std::is_integral_v<T>)
        return (T)x;
    else if constexpr (std::is_same_v<T, uint64_t>)
        return x >= (S)9223372036854775808.0 ? (uint64_t)x : (uint64_t)(int64_t)x;
    else
        return (T)(int64_t)x;      /* wraps around */
}

template <class S> INLINE uint8_t is_set(S x) {
    if constexpr (std::is_same_v<S, complex_half_t>)
        return ((x.real.bits | x.imag.bits) & 0x7fff) != 0;
    else if constexpr (is_stored<S>)
        return (x.bits & 0x7fff) != 0;
    else
        return x != (S)0;
}

/* out[i] = f(source[i]); steps in bytes. */
template <class S, class T, class F> INLINE void for_elements(char **arguments, int64_t n, const int64_t *steps, F f) {
    const char *source = arguments[0];
    char *out = arguments[1];
    const int64_t step_in = steps[0], step_out = steps[1];
    if (step_in == sizeof(S) && step_out == sizeof(T)) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            ((T *)out)[i] = f(((const S *)source)[i]);
    } else {
        for (int64_t i = 0; i < n; i++)
            *(T *)(out + i * step_out) = f(*(const S *)(source + i * step_in));
    }
}

template <class S, class T> void cast_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    char *rest[2] = {arguments[0], arguments[1]};
    int64_t count = *n;
#if SIMD_LEVEL > 0
    if (steps[0] == sizeof(S) && steps[1] == sizeof(T)) {
        const int64_t done = convert_eights((const S *)rest[0], (T *)rest[1], count);
        rest[0] += done * sizeof(S), rest[1] += done * sizeof(T), count -= done;
    }
#endif
    for_elements<S, T>(rest, count, steps, [](S x) __attribute__((always_inline)) { return converted<S, T>(x); });
}

template <class S> void to_bool_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    for_elements<S, uint8_t>(arguments, *n, steps, [](S x) __attribute__((always_inline)) { return is_set(x); });
}

/* Copy elements of the size of `word`. */
template <class word> void move_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    const char *source = arguments[0];
    word *out = (word *)arguments[1];
    const int64_t count = *n, step_in = steps[0], step_out = steps[1], size = sizeof(word);
    if (step_out != size) {
        for (int64_t i = 0; i < count; i++)
            *(word *)((char *)out + i * step_out) = *(const word *)(source + i * step_in);
    } else if (step_in == size) {
        memcpy(out, source, count * size);
    } else if (step_in == 0) {
        const word value = *(const word *)source;
        for (int64_t i = 0; i < count; i++)
            out[i] = value;
    } else if (sizeof(word) <= 8 && step_in == -size) {
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            out[i] = ((const word *)source)[-i];
    } else {
        for (int64_t i = 0; i < count; i++)
            out[i] = *(const word *)(source + i * step_in);
    }
}
