/* Functions of float32, computed in double precision, so that results are rounded to within 0.501 units in the last
 * place; part of a header that simd/targets.h compiles for float64. With AVX-512 NumPy has vector code of its own. */
#if DOUBLE && SIMD_LEVEL < 2
/* exp(x) and exp(-x) cancel below: there two terms of the series of sinh are exact enough. */
#define NEARLY_ZERO 1e-3

/* atan(y / x) for y, x >= 0, or nan, with one division: of the smaller by the larger one, or from pi / 8 on, with u =
 * tan(angle - pi / 4), of their difference by their sum. A Chebyshev fit of atan(u) / u. */
INLINE double NAME(angle_of)(double y, double x) {
    const double small = y > x ? x : y, large = y > x ? y : x;
    const int wide = small > 0.41421356237309503 * large;
    const double u = (wide ? small - large : small) / (wide ? small + large : large), z = u * u;
    double p = MULTIPLY_ADD(z, 0.030702669171350186, -0.05877264115205971);
    p = MULTIPLY_ADD(z, p, 0.07564472108977517);
    p = MULTIPLY_ADD(z, p, -0.09078503591633819);
    p = MULTIPLY_ADD(z, p, 0.11110394011202065);
    p = MULTIPLY_ADD(z, p, -0.14285690815154076);
    p = MULTIPLY_ADD(z, p, 0.1999999961327284);
    p = MULTIPLY_ADD(z, p, -0.3333333333087163);
    p = MULTIPLY_ADD(z, p, 0.9999999999999742);
    const double value = MULTIPLY_ADD(u, p, wide ? M_PI_4 : 0);
    return y > x ? M_PI_2 - value : value;
}

/* atan2(y, x): infinite parts count like equal ones, and two zeros like y = 0 */
INLINE double NAME(arc_tangent_of_two)(double y, double x) {
    const double a = fabs(y), b = fabs(x);
    const int infinite = (a == INFINITY) & (b == INFINITY), zero = (a == 0) & (b == 0);
    const double sharp = NAME(angle_of)(infinite ? 1 : a, infinite | zero ? 1 : b);
    return copysign(copysign(1, x) < 0 ? M_PI - sharp : sharp, y);
}

INLINE double NAME(arc_cosine)(double x) {
    const double sharp = NAME(angle_of)(sqrt((1 - x) * (1 + x)), fabs(x));
    return x < 0 ? M_PI - sharp : sharp;
}

INLINE double NAME(hyperbolic_sine)(double x) {
    const double e = NAME(exponential)(fabs(x));
    return fabs(x) < NEARLY_ZERO ? x * MULTIPLY_ADD(x * x, 1.0 / 6, 1) : copysign(0.5 * (e - 1 / e), x);
}

INLINE double NAME(hyperbolic_cosine)(double x) {
    const double e = NAME(exponential)(fabs(x));
    return 0.5 * (e + 1 / e);
}

INLINE double NAME(area_tangent)(double x) {
    const double a = fabs(x);
    return copysign(0.5 * NAME(logarithm_of_sum)(2 * a / (1 - a)), x);
}

/* log(x) times a factor */
INLINE double NAME(scaled_logarithm)(double x, double factor) {
    const double value = NAME(logarithm)(x, 0) * factor, finite = x < INFINITY ? value : x;
    return x > 0 ? finite : x == 0 ? -INFINITY : NAN;
}

#define WIDE(name, value) \
    static void NAME(wide_##name##_loop)(const float *const *operand, float *out, int64_t n, int numbers) { \
        const float *const xs = operand[0]; \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            const double x = xs[i]; \
            out[i] = (float)(value); \
        } \
    }
WIDE(sinh, NAME(hyperbolic_sine)(x))
WIDE(cosh, NAME(hyperbolic_cosine)(x))
WIDE(expm1, NAME(exponential_less_one)(x))
WIDE(atanh, NAME(area_tangent)(x))
WIDE(log2, NAME(scaled_logarithm)(x, 1.4426950408889634074))
WIDE(log10, NAME(scaled_logarithm)(x, 0.43429448190325182765))
WIDE(atan, copysign(NAME(angle_of)(fabs(x), 1), x))
WIDE(asin, copysign(NAME(angle_of)(fabs(x), sqrt((1 - x) * (1 + x))), x))
WIDE(acos, NAME(arc_cosine)(x))
WIDE(small_tan, sine(x, 0) / sine(x, 1))

static void NAME(wide_tan_loop)(const float *const *operand, float *out, int64_t n, int numbers) {
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const float *x = operand[0] + done;
        int large = 0;
        for (int64_t i = 0; i < count; i++)
            large |= !(fabsf(x[i]) <= (float)LARGEST_ANGLE);
        if (!large)
            NAME(wide_small_tan_loop)(&x, out + done, count, 0);
        for (int64_t i = 0; large && i < count; i++)
            out[done + i] = (float)tan(x[i]);
    }
}

static void NAME(wide_atan2_loop)(const float *const *operand, float *out, int64_t n, int numbers) {
    const float *const ys = operand[0], *const xs = operand[1];
    const double number = *xs;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)NAME(arc_tangent_of_two)(ys[i], numbers ? number : xs[i]);
}
#undef WIDE
#undef NEARLY_ZERO
#endif
