/* Exponentials, logarithms and related functions of one element, without branches or calls, so that compilers vectorize
 * loops over them. Part of a header that simd/targets.h compiles. Polynomials are Remez fits of the relative error with
 * 40 digits. The error of exponentials and logarithms is at most 1.5 ulp, that of related functions 3 ulp; infinities,
 * nan and subnormal numbers are correct. */

#undef UNSIGNED
#undef MANTISSA
#undef BIAS
#undef ROUND
#undef DOWN
#undef UP
#undef LN2_HIGH
#undef LN2_LOW
#undef LOWEST_EXPONENT
#undef HIGHEST_EXPONENT
#undef ABSOLUTE
#undef COARSE
#if DOUBLE
#define UNSIGNED uint64_t
#define MANTISSA 52
#define BIAS ((UNSIGNED)1023 << 52)
#define ROUND 6755399441055744.0                     /* added, it leaves the nearest integer in the low bits */
#define UP (600 + 1023)                              /* an exponent that scales by 2**600 ... */
#define DOWN 0x1p-600                                /* ... until results are rounded once */
#define LN2_HIGH 0x1.62e42feep-1                     /* times an exponent it is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LOWEST_EXPONENT -746.0
#define HIGHEST_EXPONENT 710.0
#define ABSOLUTE(x) fabs(x)
#define COARSE 0xfffffffff8000000u                   /* the bits of its numbers that half of a mantissa has */
#else
#define UNSIGNED uint32_t
#define MANTISSA 23
#define BIAS ((UNSIGNED)127 << 23)
#define ROUND 12582912.0f
#define UP (64 + 127)
#define DOWN 0x1p-64f
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW 0x1.7f7d1cp-20f
#define LOWEST_EXPONENT -104.0f
#define HIGHEST_EXPONENT 89.0f
#define ABSOLUTE(x) fabsf(x)
#define COARSE 0xfffff000u
#endif

INLINE UNSIGNED NAME(bits_of)(REAL x) {
    UNSIGNED bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE REAL NAME(of_bits)(UNSIGNED bits) {
    REAL x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(r) - 1 for |r| <= log(2) / 2 */
INLINE REAL NAME(small_exponential_less_one)(REAL r) {
#if DOUBLE
    REAL p = MULTIPLY_ADD(r, 2.5000058878077566589e-8, 2.7630248415178702414e-7);
    p = MULTIPLY_ADD(r, p, 2.7557586382096508176e-6);
    p = MULTIPLY_ADD(r, p, 2.4801493098807192082e-5);
    p = MULTIPLY_ADD(r, p, 1.9841269506569919376e-4);
    p = MULTIPLY_ADD(r, p, 1.3888888943630203214e-3);
    p = MULTIPLY_ADD(r, p, 8.333333333494465452e-3);
    p = MULTIPLY_ADD(r, p, 4.1666666666530158293e-2);
    p = MULTIPLY_ADD(r, p, 0.16666666666666412517);
    p = MULTIPLY_ADD(r, p, 0.50000000000000106272);
#else
    REAL p = MULTIPLY_ADD(r, 1.38145985621e-3f, 8.36871687871e-3f);
    p = MULTIPLY_ADD(r, p, 4.1668388047e-2f);
    p = MULTIPLY_ADD(r, p, 0.166665206317f);
    p = MULTIPLY_ADD(r, p, 0.499999934478f);
#endif
    return MULTIPLY_ADD(r * r, p, r);
}

INLINE REAL NAME(small_exponential)(REAL r) {
    return NAME(small_exponential_less_one)(r) + 1;
}

/* 2**k exp(r) with x = k log(2) + r, so that k + `offset` is in the low bits of `shifted` */
INLINE REAL NAME(reduced)(REAL x, REAL offset, REAL *shifted) {
    *shifted = MULTIPLY_ADD(x, (REAL)1.4426950408889634074, ROUND + offset);
    const REAL k = *shifted - (ROUND + offset);
    return MULTIPLY_ADD(k, -LN2_LOW, MULTIPLY_ADD(k, -LN2_HIGH, x));
}

/* exp(x). The power of two is multiplied in two halves, so that subnormal results are rounded once. */
INLINE REAL NAME(exponential)(REAL x) {
    REAL shifted;
    x = HIGHEST_EXPONENT < x ? HIGHEST_EXPONENT : x;      /* nan stays: comparisons with it are false */
    x = LOWEST_EXPONENT > x ? LOWEST_EXPONENT : x;
    const REAL r = NAME(reduced)(x, 0, &shifted);
    const UNSIGNED whole = NAME(bits_of)(shifted), half = whole >> 1;
    return NAME(small_exponential)(r) * NAME(of_bits)((half << MANTISSA) + BIAS)
        * NAME(of_bits)(((whole - half) << MANTISSA) + BIAS);
}

#if !DOUBLE
/* 2**x, with a polynomial for (2**r - 1) / r and the same two halves of the power of two */
INLINE float NAME(exponential_of_two)(float x) {
    x = 129 < x ? 129 : x;
    x = -155 > x ? -155 : x;
    const float shifted = x + ROUND, r = x - (shifted - ROUND);
    const UNSIGNED whole = NAME(bits_of)(shifted), half = whole >> 1;
    float p = MULTIPLY_ADD(r, 1.54531629451e-4f, 1.33908633647e-3f);
    p = MULTIPLY_ADD(r, p, 9.61808255728e-3f);
    p = MULTIPLY_ADD(r, p, 5.55035711422e-2f);
    p = MULTIPLY_ADD(r, p, 0.240226507606f);
    p = MULTIPLY_ADD(r, p, 0.693147188026f);
    return MULTIPLY_ADD(r, p, 1) * NAME(of_bits)((half << MANTISSA) + BIAS)
        * NAME(of_bits)(((whole - half) << MANTISSA) + BIAS);
}
#endif

/* The product of the power of two that `reduced` has found with the offset UP, and of p in [1/2, 2] */
INLINE REAL NAME(scaled_down)(REAL p, REAL shifted) {
    return p * NAME(of_bits)(NAME(bits_of)(shifted) << MANTISSA) * DOWN;
}

/* exp(x) for x <= 0, or nan: less work */
INLINE REAL NAME(decay)(REAL x) {
    REAL shifted;
    x = LOWEST_EXPONENT > x ? LOWEST_EXPONENT : x;
    const REAL r = NAME(reduced)(x, UP, &shifted);
    return NAME(scaled_down)(NAME(small_exponential)(r), shifted);
}

/* 1 / (1 + exp(-x)) */
INLINE REAL NAME(sigmoid)(REAL x) {
    const REAL e = NAME(decay)(-ABSOLUTE(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* log(1 + e) for 0 <= e <= 1: twice the area hyperbolic tangent of s = e / (2 + e) */
INLINE REAL NAME(logarithm_above_one)(REAL e) {
    const REAL s = e / (2 + e), z = s * s;
#if DOUBLE
    REAL p = MULTIPLY_ADD(z, 0.17018577679218098282, 0.083401002457909106138);
    p = MULTIPLY_ADD(z, p, 0.12106086533201025057);
    p = MULTIPLY_ADD(z, p, 0.13300973553323179366);
    p = MULTIPLY_ADD(z, p, 0.15386559925235176944);
    p = MULTIPLY_ADD(z, p, 0.18181743924848078836);
    p = MULTIPLY_ADD(z, p, 0.22222223969732389659);
    p = MULTIPLY_ADD(z, p, 0.28571428547853883571);
    p = MULTIPLY_ADD(z, p, 0.40000000000157242548);
    p = MULTIPLY_ADD(z, p, 0.66666666666666303805);
#else
    REAL p = MULTIPLY_ADD(z, 0.280244585f, 0.279991412f);
    p = MULTIPLY_ADD(z, p, 0.400216991f);
    p = MULTIPLY_ADD(z, p, 0.666664131f);
#endif
    return MULTIPLY_ADD(s * z, p, s + s);
}

/* log(1 + exp(x)) */
INLINE REAL NAME(softplus)(REAL x) {
    return (x > 0 ? x : 0) + NAME(logarithm_above_one)(NAME(decay)(-ABSOLUTE(x)));
}

/* log(2**k (1 + f)) for sqrt(1/2) <= 1 + f <= sqrt(2) */
INLINE REAL NAME(joined_logarithm)(REAL k, REAL f) {
#if DOUBLE
    const REAL s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    REAL p = MULTIPLY_ADD(z, 0.14796105340295893258, 0.15314035845653289861);
    p = MULTIPLY_ADD(z, p, 0.18183564866252048057);
    p = MULTIPLY_ADD(z, p, 0.22222198563493911398);
    p = MULTIPLY_ADD(z, p, 0.28571428742474791629);
    p = MULTIPLY_ADD(z, p, 0.39999999999414321522);
    p = MULTIPLY_ADD(z, p, 0.66666666666667344602);
    /* 2s = f - s f, and s f = f f / 2 - s f f / 2: so f comes last, and exact */
    const REAL rest = half - s * MULTIPLY_ADD(z, p, half);
#else
    REAL p = MULTIPLY_ADD(f, -7.63449934624e-2f, 0.127615781717f);
    p = MULTIPLY_ADD(f, p, -0.131601818595f);
    p = MULTIPLY_ADD(f, p, 0.142017578104f);
    p = MULTIPLY_ADD(f, p, -0.166233573804f);
    p = MULTIPLY_ADD(f, p, 0.200012268852f);
    p = MULTIPLY_ADD(f, p, -0.250008210334f);
    p = MULTIPLY_ADD(f, p, 0.333333317076f);
    const REAL square = f * f, rest = MULTIPLY_ADD(square * f, -p, (REAL)0.5 * square);
#endif
    return MULTIPLY_ADD(k, LN2_HIGH, f - MULTIPLY_ADD(k, -LN2_LOW, rest));
}

/* log(x + tail) for a normal x > 0 and a tail that is small against it */
INLINE REAL NAME(logarithm)(REAL x, REAL tail) {
    const UNSIGNED bits = NAME(bits_of)(x), root = NAME(bits_of)((REAL)0.70710678118654752440);
    const UNSIGNED biased = (bits - root + BIAS) >> MANTISSA, power = (biased << MANTISSA) - BIAS;
    const REAL k = NAME(of_bits)(NAME(bits_of)(ROUND) + biased) - (ROUND + (REAL)(BIAS >> MANTISSA));
    /* half of 2**(1 - k), which is a number for all k */
    const REAL scale = NAME(of_bits)(2 * BIAS + ((UNSIGNED)1 << MANTISSA) - (biased << MANTISSA));
    const REAL f = (NAME(of_bits)(bits - power) - 1) + tail * (REAL)0.5 * scale;
    return NAME(joined_logarithm)(k, f);
}

/* log(1 + x), with the rounding error of the sum added back */
INLINE REAL NAME(logarithm_of_sum)(REAL x) {
    const REAL sum = 1 + x;
    REAL value = NAME(logarithm)(sum, x - (sum - 1));
    value = x < (REAL)INFINITY ? value : x;
    value = x > -1 ? value : x == -1 ? -(REAL)INFINITY : (REAL)NAN;
    return x == 0 ? x : value;                            /* keeps the sign of zero */
}
