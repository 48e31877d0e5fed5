/* Element types of dtypes, for templates: for_dtype<float, double>(dtype, f) calls f with a number of the type that has
 * this dtype, if it is one of these. Elements of bool have the type of uint8. */
#pragma once

#include <stdint.h>
#include <type_traits>

typedef float _Complex complex64_t;
typedef double _Complex complex128_t;
struct half_t { uint16_t bits; };
struct bfloat_t { uint16_t bits; };
struct complex_half_t { half_t real, imag; };

template <class T> inline constexpr int dtype_of = -1;
template <> inline constexpr int dtype_of<uint8_t> = 1;
template <> inline constexpr int dtype_of<int8_t> = 2;
template <> inline constexpr int dtype_of<int16_t> = 3;
template <> inline constexpr int dtype_of<int32_t> = 4;
template <> inline constexpr int dtype_of<int64_t> = 5;
template <> inline constexpr int dtype_of<float> = 6;
template <> inline constexpr int dtype_of<double> = 7;
template <> inline constexpr int dtype_of<complex64_t> = 8;
template <> inline constexpr int dtype_of<complex128_t> = 9;
template <> inline constexpr int dtype_of<half_t> = 10;
template <> inline constexpr int dtype_of<bfloat_t> = 11;
template <> inline constexpr int dtype_of<complex_half_t> = 12;
template <> inline constexpr int dtype_of<uint16_t> = 13;
template <> inline constexpr int dtype_of<uint32_t> = 14;
template <> inline constexpr int dtype_of<uint64_t> = 15;

template <class T> constexpr bool is_complex = std::is_same_v<T, complex64_t> || std::is_same_v<T, complex128_t>;

/* The number of these parts, infinite ones and signed zeros included. */
template <class T> inline __attribute__((always_inline)) auto complex_number(T real, T imag) {
    std::conditional_t<std::is_same_v<T, float>, complex64_t, complex128_t> z;
    __real__ z = real, __imag__ z = imag;
    return z;
}

/* The number itself; an integer without its sign, so that sums and products wrap around. */
template <class T> inline __attribute__((always_inline)) auto wrapping(T x) {
    if constexpr (std::is_integral_v<T>)
        return (std::make_unsigned_t<decltype(x + x)>)x;
    else
        return x;
}

enum { BOOL_DTYPE, DTYPE_COUNT = 16 };

template <class... Types, class F> inline void for_dtype(int dtype, F f) {
    dtype = dtype == BOOL_DTYPE ? dtype_of<uint8_t> : dtype;
    (void)((dtype == dtype_of<Types> && (f(Types()), true)) || ...);
}

/* Words of each size, for elements that are only moved. */
struct pair_t { uint64_t words[2]; };

template <class F> inline void for_word(int64_t size, F f) {
    switch (size) {
        case 1: return f(uint8_t());
        case 2: return f(uint16_t());
        case 4: return f(uint32_t());
        case 8: return f(uint64_t());
        default: return f(pair_t());
    }
}
