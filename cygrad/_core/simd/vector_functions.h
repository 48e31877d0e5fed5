/* Exponentials, logarithms and related functions of one element, without branches or calls, so that compilers vectorize
 * loops over them. Part of a header that simd/dispatch.h compiles. Polynomials are Remez fits of the relative error with
 * 40 digits. The error of exponentials and logarithms is at most 1.5 ulp, that of related functions 3 ulp; infinities,
 * nan and subnormal numbers are correct. */

template <class T> constexpr int MANTISSA = DOUBLE<T> ? 52 : 23;
template <class T> constexpr bits_t<T> BIAS = bits_t<T>(DOUBLE<T> ? 1023 : 127) << MANTISSA<T>;
/* Added, it leaves the nearest integer in the low bits. */
template <class T> constexpr T ROUND = T(DOUBLE<T> ? 6755399441055744.0 : 12582912.0);
/* An exponent that scales by a power of two, until results are rounded once by the inverse. */
template <class T> constexpr T UP = DOUBLE<T> ? 600 + 1023 : 64 + 127;
template <class T> constexpr T DOWN = T(DOUBLE<T> ? 0x1p-600 : 0x1p-64);
/* Times an exponent, the first is exact. */
template <class T> constexpr T LN2_HIGH = T(DOUBLE<T> ? 0x1.62e42feep-1 : 0x1.62e4p-1);
template <class T> constexpr T LN2_LOW = T(DOUBLE<T> ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cp-20);
template <class T> constexpr T LOWEST_EXPONENT = DOUBLE<T> ? -746 : -104;
template <class T> constexpr T HIGHEST_EXPONENT = DOUBLE<T> ? 710 : 89;

/* Return the value at x of a polynomial, whose highest coefficient comes first. */
template <class T, class... C> INLINE T polynomial(T x, T first, C... rest) {
    ((first = multiply_add<T>(x, first, (T)rest)), ...);
    return first;
}

template <class T> INLINE bits_t<T> bits_of(T x) {
    bits_t<T> bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

template <class T> INLINE T of_bits(bits_t<T> bits) {
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(r) - 1 for |r| <= log(2) / 2 */
template <class T> INLINE T small_exponential_less_one(T r) {
    const T p = DOUBLE<T>
        ? polynomial<T>(r, 2.5000058878077566589e-8, 2.7630248415178702414e-7, 2.7557586382096508176e-6,
            2.4801493098807192082e-5, 1.9841269506569919376e-4, 1.3888888943630203214e-3, 8.333333333494465452e-3,
            4.1666666666530158293e-2, 0.16666666666666412517, 0.50000000000000106272)
        : polynomial<T>(r, 1.38145985621e-3f, 8.36871687871e-3f, 4.1668388047e-2f, 0.166665206317f,
            0.499999934478f);
    return multiply_add<T>(r * r, p, r);
}

template <class T> INLINE T small_exponential(T r) {
    return small_exponential_less_one<T>(r) + 1;
}

/* 2**k exp(r) with x = k log(2) + r, so that k + `offset` is in the low bits of `shifted` */
template <class T> INLINE T reduced(T x, T offset, T *shifted) {
    *shifted = multiply_add<T>(x, (T)1.4426950408889634074, ROUND<T> + offset);
    const T k = *shifted - (ROUND<T> + offset);
    return multiply_add<T>(k, -LN2_LOW<T>, multiply_add<T>(k, -LN2_HIGH<T>, x));
}

/* exp(x). The power of two is multiplied in two halves, so that subnormal results are rounded once. */
template <class T> INLINE T exponential(T x) {
    T shifted;
    x = HIGHEST_EXPONENT<T> < x ? HIGHEST_EXPONENT<T> : x;      /* nan stays: comparisons with it are false */
    x = LOWEST_EXPONENT<T> > x ? LOWEST_EXPONENT<T> : x;
    const T r = reduced<T>(x, 0, &shifted);
    const bits_t<T> whole = bits_of<T>(shifted), half = whole >> 1;
    return small_exponential<T>(r) * of_bits<T>((half << MANTISSA<T>) + BIAS<T>)
        * of_bits<T>(((whole - half) << MANTISSA<T>) + BIAS<T>);
}

/* 2**x, with a polynomial for (2**r - 1) / r and the same two halves of the power of two */
INLINE float exponential_of_two(float x) {
    x = 129 < x ? 129 : x;
    x = -155 > x ? -155 : x;
    const float shifted = x + ROUND<float>, r = x - (shifted - ROUND<float>);
    const bits_t<float> whole = bits_of<float>(shifted), half = whole >> 1;
    const float p = polynomial<float>(r, 1.54531629451e-4f, 1.33908633647e-3f, 9.61808255728e-3f, 5.55035711422e-2f,
            0.240226507606f, 0.693147188026f);
    return multiply_add<float>(r, p, 1) * of_bits<float>((half << MANTISSA<float>) + BIAS<float>)
        * of_bits<float>(((whole - half) << MANTISSA<float>) + BIAS<float>);
}

/* The product of the power of two that `reduced` has found with the offset UP, and of p in [1/2, 2] */
template <class T> INLINE T scaled_down(T p, T shifted) {
    return p * of_bits<T>(bits_of<T>(shifted) << MANTISSA<T>) * DOWN<T>;
}

/* exp(x) for x <= 0, or nan: less work */
template <class T> INLINE T decay(T x) {
    T shifted;
    x = LOWEST_EXPONENT<T> > x ? LOWEST_EXPONENT<T> : x;
    const T r = reduced<T>(x, UP<T>, &shifted);
    return scaled_down<T>(small_exponential<T>(r), shifted);
}

/* 1 / (1 + exp(-x)) */
template <class T> INLINE T sigmoid(T x) {
    const T e = decay<T>(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* log(1 + e) for 0 <= e <= 1: twice the area hyperbolic tangent of s = e / (2 + e) */
template <class T> INLINE T logarithm_above_one(T e) {
    const T s = e / (2 + e), z = s * s;
    const T p = DOUBLE<T>
        ? polynomial<T>(z, 0.17018577679218098282, 0.083401002457909106138, 0.12106086533201025057,
            0.13300973553323179366, 0.15386559925235176944, 0.18181743924848078836, 0.22222223969732389659,
            0.28571428547853883571, 0.40000000000157242548, 0.66666666666666303805)
        : polynomial<T>(z, 0.280244585f, 0.279991412f, 0.400216991f, 0.666664131f);
    return multiply_add<T>(s * z, p, s + s);
}

/* log(1 + exp(x)) */
template <class T> INLINE T softplus(T x) {
    return (x > 0 ? x : 0) + logarithm_above_one<T>(decay<T>(-fabs(x)));
}

/* log(2**k (1 + f)) for sqrt(1/2) <= 1 + f <= sqrt(2) */
template <class T> INLINE T joined_logarithm(T k, T f) {
    T rest;
    if constexpr (DOUBLE<T>) {
        const T s = f / (2 + f), z = s * s, half = 0.5 * f * f;
        const T p = polynomial<T>(z, 0.14796105340295893258, 0.15314035845653289861, 0.18183564866252048057,
            0.22222198563493911398, 0.28571428742474791629, 0.39999999999414321522, 0.66666666666667344602);
        /* 2s = f - s f, and s f = f f / 2 - s f f / 2: so f comes last, and exact */
        rest = half - s * multiply_add<T>(z, p, half);
    } else {
        const T p = polynomial<T>(f, -7.63449934624e-2f, 0.127615781717f, -0.131601818595f, 0.142017578104f,
            -0.166233573804f, 0.200012268852f, -0.250008210334f, 0.333333317076f), square = f * f;
        rest = multiply_add<T>(square * f, -p, (T)0.5 * square);
    }
    return multiply_add<T>(k, LN2_HIGH<T>, f - multiply_add<T>(k, -LN2_LOW<T>, rest));
}

/* log(x + tail) for a normal x > 0 and a tail that is small against it */
template <class T> INLINE T logarithm(T x, T tail) {
    const bits_t<T> bits = bits_of<T>(x), root = bits_of<T>((T)0.70710678118654752440);
    const bits_t<T> biased = (bits - root + BIAS<T>) >> MANTISSA<T>, power = (biased << MANTISSA<T>) - BIAS<T>;
    const T k = of_bits<T>(bits_of<T>(ROUND<T>) + biased) - (ROUND<T> + (T)(BIAS<T> >> MANTISSA<T>));
    /* half of 2**(1 - k), which is a number for all k */
    const T scale = of_bits<T>(2 * BIAS<T> + ((bits_t<T>)1 << MANTISSA<T>) - (biased << MANTISSA<T>));
    const T f = (of_bits<T>(bits - power) - 1) + tail * (T)0.5 * scale;
    return joined_logarithm<T>(k, f);
}

/* log(1 + x), with the rounding error of the sum added back */
template <class T> INLINE T logarithm_of_sum(T x) {
    const T sum = 1 + x;
    T value = logarithm<T>(sum, x - (sum - 1));
    value = x < (T)INFINITY ? value : x;
    value = x > -1 ? value : x == -1 ? -(T)INFINITY : (T)NAN;
    return x == 0 ? x : value;                            /* keeps the sign of zero */
}
