// The reduction loops for the SIMD target of this processor.

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

#define LOOPS "kernels/reduction/loops.h"
#include "simd/dispatch.h"

// The wider sets only for the usual types: it pays little for the others, and compiling takes its time.
static loops_t find_loops(int operation, int dtype) {
    switch (dtype) {
        case 0: case 1: return baseline::integral<uint8_t>(operation);
        case 2: return baseline::integral<int8_t>(operation);
        case 3: return baseline::integral<int16_t>(operation);
        case 4: return baseline::integral<int32_t>(operation);
        case 8: return baseline::floating<complex_t<float>, complex_t<double>, float>(operation);
        case 9: return baseline::floating<complex_t<double>, complex_t<double>, double>(operation);
    }
    return dtype == 5   ? DISPATCH(integral<int64_t>(operation))
           : dtype == 6 ? DISPATCH(real<float>(operation))
                        : DISPATCH(real<double>(operation));
}

loops_t reduction_loops[OPERATIONS][LOOP_DTYPES];

static const bool loaded = [] {
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int dtype = 0; dtype < LOOP_DTYPES; dtype++)
            reduction_loops[operation][dtype] = find_loops(operation, dtype);
    return true;
}();
