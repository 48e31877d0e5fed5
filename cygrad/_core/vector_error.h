/* The error function and its relatives for float32, written like those of vector_functions.h, which comes before.
 *
 * Coefficients of erf and erfc are interpolations at Chebyshev nodes, computed with 60 digits; the others Remez fits of
 * relative error. Those of float64 are computed one by one, by the C library.
 */

#if DOUBLE
INLINE double NAME(error_function)(double x) {
    return erf(x);
}

INLINE double NAME(complementary_error_function)(double x) {
    return erfc(x);
}

/* See below. */
INLINE double NAME(normal_parts)(double x, double *bell) {
    *bell = exp(-0.5 * x * x);
    return 0.5 * erfc(x * -0.70710678118654752440);
}

INLINE double NAME(normal_distribution)(double x) {
    return 0.5 * erfc(x * -0.70710678118654752440);
}
#else

/* x * x = square + rest, exactly */
INLINE float NAME(exact_square)(float x, float *rest) {
#if FUSED
    const float square = x * x;
    *rest = MULTIPLY_ADD(x, x, -square);
#else
    const float coarse = NAME(of_bits)(NAME(bits_of)(x) & 0xfffff000u), square = coarse * coarse;
    *rest = (x - coarse) * (x + coarse);                    /* 12 bits are left, so that their square is exact */
#endif
    return square;
}

/* exp(-scale * x * x): the square is taken apart, because the exponential turns its absolute error into a relative one.
 * `scale` is 1 or 1/2. */
INLINE float NAME(bell)(float x, float scale) {
    float rest, shifted;
    const float square = NAME(exact_square)(x, &rest);
    const float r = NAME(reduced)(-scale * square, UP, &shifted) - scale * rest;
    return NAME(scaled_down)(NAME(small_exponential)(r), shifted);
}

/* erf where |x| < 1 */
INLINE float NAME(small_error_function)(float x) {
    const float z = x * x;
    float p = MULTIPLY_ADD(z, -9.584755498099894403e-6f, 0.0001123889606761222004f);
    p = MULTIPLY_ADD(z, p, -0.0008480603277341629195f);
    p = MULTIPLY_ADD(z, p, 0.005220811718144567873f);
    p = MULTIPLY_ADD(z, p, -0.02686535976608023403f);
    p = MULTIPLY_ADD(z, p, 0.1128378141581257569f);
    p = MULTIPLY_ADD(z, p, -0.3761263840715242634f);
    p = MULTIPLY_ADD(z, p, 1.12837916705601751f);
    return x * p;
}

INLINE float NAME(error_function)(float x) {
    const float a = ABSOLUTE(x), t = (4 < a ? 4 : a) - 2.5f;
    /* outside: 1 - exp(log(erfc(|x|))), the logarithm being nearly a parabola */
    float y = MULTIPLY_ADD(t, -3.322064843853474518e-8f, -6.068977575213918038e-8f);
    y = MULTIPLY_ADD(t, y, 1.800686744688561851e-6f);
    y = MULTIPLY_ADD(t, y, -0.00001300004980665059542f);
    y = MULTIPLY_ADD(t, y, 0.00007702701290737267522f);
    y = MULTIPLY_ADD(t, y, -0.0004206704675885642046f);
    y = MULTIPLY_ADD(t, y, 0.002165456001143089528f);
    y = MULTIPLY_ADD(t, y, -0.01085818564924761255f);
    y = MULTIPLY_ADD(t, y, -0.9438937237170571508f);
    y = MULTIPLY_ADD(t, y, -5.352680737489049225f);
    y = MULTIPLY_ADD(t, y, -7.806815273275596362f);
    const float outside = copysignf(1 - NAME(decay)(y), x);
    return a < 1 ? NAME(small_error_function)(x) : outside;
}

/* Below 1/2 it is 1 - erf, which loses nothing; from there exp(-x * x) / (1 + 2|x|) times a function that hardly varies. */
INLINE float NAME(complementary_error_function)(float x) {
    float a = ABSOLUTE(x);
    a = 10.1f < a ? 10.1f : a;                              /* from there it is 0 */
    const float t = (a - 2) / (a + 2);
    float p = MULTIPLY_ADD(t, 0.000083184718466917f, 0.00017648319724405f);
    p = MULTIPLY_ADD(t, p, -0.00040183104367141f);
    p = MULTIPLY_ADD(t, p, -0.0014287809491246f);
    p = MULTIPLY_ADD(t, p, 0.0012510566013095f);
    p = MULTIPLY_ADD(t, p, 0.0087122886293605f);
    p = MULTIPLY_ADD(t, p, -0.0080299772994650f);
    p = MULTIPLY_ADD(t, p, -0.05421836207616f);
    p = MULTIPLY_ADD(t, p, 0.16405090619867f);
    p = MULTIPLY_ADD(t, p, -0.16603048912962f);
    p = MULTIPLY_ADD(t, p, -0.092763815747858f);
    p = MULTIPLY_ADD(t, p, 1.2769783823473f);
    const float outside = p / (1 + 2 * a) * NAME(bell)(a, 1), value = x < 0 ? 2 - outside : outside;
    return a < 0.5f ? 1 - NAME(small_error_function)(x) : value;
}

/* The integral of the normal density up to x; and exp(-x * x / 2). For -a < 0 it is the density times a function that varies slowly: that is t
 * times a polynomial, for t = 1 / (1 + 0.3 a) in [0.187, 1], which holds up to a = 14.5, where all is 0. The polynomial is
 * one of t - 0.6, so that rounding errors of its first terms are small in the end. */
INLINE float NAME(normal_parts)(float x, float *bell) {
    float a = ABSOLUTE(x);
    a = 14.5f < a ? 14.5f : a;
    const float slope = 0.3f * a, t = 1 / (1 + slope), v = 0.4f - slope * t;
    float p = MULTIPLY_ADD(v, -0.0206234610104f, 0.0010688800211f);
    p = MULTIPLY_ADD(v, p, 0.0441971813368f);
    p = MULTIPLY_ADD(v, p, -0.00755382670175f);
    p = MULTIPLY_ADD(v, p, -0.0910458047337f);
    p = MULTIPLY_ADD(v, p, -0.0138198865374f);
    p = MULTIPLY_ADD(v, p, 0.225355883703f);
    p = MULTIPLY_ADD(v, p, 0.413744848599f);
    p = MULTIPLY_ADD(v, p, 0.405136747503f);
    p = MULTIPLY_ADD(v, p, 0.2585726787f);
    *bell = NAME(bell)(a, 0.5f);
    const float tail = t * p * *bell;
    return x > 0 ? 1 - tail : tail;
}

INLINE float NAME(normal_distribution)(float x) {
    float bell;
    return NAME(normal_parts)(x, &bell);
}

/* The inverse of erf divided by its argument, over w = -log(1 - x * x) where it is below 5, or over its root: the idea of
 * Giles, "Approximating the erfinv function" (2010). */
INLINE float NAME(inverse_error_function)(float x) {
    const float a = ABSOLUTE(x), w = -NAME(logarithm)((1 - a) * (1 + a), 0);
    const float near = w - 2.5f, far = sqrtf(w) - 3;
    float p = MULTIPLY_ADD(near, -8.79101396424e-9f, 2.32326218728e-8f);
    p = MULTIPLY_ADD(near, p, 4.66170077267e-7f);
    p = MULTIPLY_ADD(near, p, -3.46270448335e-6f);
    p = MULTIPLY_ADD(near, p, -4.96334517287e-6f);
    p = MULTIPLY_ADD(near, p, 0.00021834443838f);
    p = MULTIPLY_ADD(near, p, -0.00125274188294f);
    p = MULTIPLY_ADD(near, p, -0.00417738677983f);
    p = MULTIPLY_ADD(near, p, 0.246640286155f);
    p = MULTIPLY_ADD(near, p, 1.50140935928f);
    float q = MULTIPLY_ADD(far, 1.25921065762e-4f, -3.17018029492e-4f);
    q = MULTIPLY_ADD(far, q, -7.2025732835e-5f);
    q = MULTIPLY_ADD(far, q, 0.00149392836207f);
    q = MULTIPLY_ADD(far, q, -0.00358938154039f);
    q = MULTIPLY_ADD(far, q, 0.00568381745936f);
    q = MULTIPLY_ADD(far, q, -0.00763893582559f);
    q = MULTIPLY_ADD(far, q, 0.00944562176415f);
    q = MULTIPLY_ADD(far, q, 1.00167506121f);
    q = MULTIPLY_ADD(far, q, 2.83297679645f);
    const float value = x * (w < 5 ? p : q);
    return a < 1 ? value : a == 1 ? copysignf(INFINITY, x) : NAN;
}
#endif

/* The derivative of x times the normal distribution at x: that plus x times the density */
INLINE REAL NAME(gelu_slope)(REAL x) {
    REAL bell;
    const REAL integral = NAME(normal_parts)(x, &bell);
    return integral + x * bell * (REAL)0.39894228040143267794;
}
