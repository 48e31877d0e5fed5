// Types of elements for the reduction loops, each instantiated in a file of its own where that takes long.
#pragma once

#include "kernels/reduction/types.h"

#include <type_traits>

template <class T> struct complex_t {
    T re, im;
    complex_t() = default;
    complex_t(T real, T imaginary = 0) : re(real), im(imaginary) {}
    template <class S> complex_t(const complex_t<S> &z) : re(T(z.re)), im(T(z.im)) {}
    complex_t &operator+=(const complex_t &z) { re += z.re; im += z.im; return *this; }
    complex_t &operator*=(const complex_t &z) {
        T real = re * z.re - im * z.im;
        im = re * z.im + im * z.re;
        re = real;
        return *this;
    }
    complex_t operator/(double d) const { return complex_t(T(re / d), T(im / d)); }
};

template <class T> struct real_of { typedef T type; };
template <class T> struct real_of<complex_t<T>> { typedef T type; };
template <class T> struct is_complex : std::false_type {};
template <class T> struct is_complex<complex_t<T>> : std::true_type {};

loops_t float_loops(int operation);
loops_t double_loops(int operation);
