/* Functions of float32, computed in double precision, so that results are rounded to within 0.501 units in the last
 * place; part of a header that simd_targets.h compiles for float64. With AVX-512 NumPy has vector code of its own. */
#if DOUBLE && SIMD_LEVEL < 2
/* exp(x) and exp(-x) cancel below: there two terms of the series of sinh are exact enough. */
#define NEARLY_ZERO 1e-3

/* atan(x) for x >= 0, or nan; a Chebyshev fit of atan(u) / u up to u = tan(pi / 8) */
INLINE double NAME(arc_tangent)(double x) {
    const double t = x > 1 ? 1 / x : x, u = t > 0.41421356237309503 ? (t - 1) / (t + 1) : t, z = u * u;
    double p = MULTIPLY_ADD(z, 0.030702669171350186, -0.05877264115205971);
    p = MULTIPLY_ADD(z, p, 0.07564472108977517);
    p = MULTIPLY_ADD(z, p, -0.09078503591633819);
    p = MULTIPLY_ADD(z, p, 0.11110394011202065);
    p = MULTIPLY_ADD(z, p, -0.14285690815154076);
    p = MULTIPLY_ADD(z, p, 0.1999999961327284);
    p = MULTIPLY_ADD(z, p, -0.3333333333087163);
    p = MULTIPLY_ADD(z, p, 0.9999999999999742);
    const double value = MULTIPLY_ADD(u, p, t > 0.41421356237309503 ? M_PI_4 : 0);
    return x > 1 ? M_PI_2 - value : value;
}

/* atan2(y, x): the angle of the smaller part by the larger one, and its quadrant */
INLINE double NAME(arc_tangent_of_two)(double y, double x) {
    const double a = fabs(y), b = fabs(x), small = a < b ? a : b, large = a < b ? b : a;
    const double ratio = large == 0 ? 0 : small == INFINITY ? 1 : small / large, turned = NAME(arc_tangent)(ratio);
    const double sharp = a > b ? M_PI_2 - turned : turned, value = copysign(1, x) < 0 ? M_PI - sharp : sharp;
    return (a != a) | (b != b) ? a + b : copysign(value, y);
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
WIDE(atan, copysign(NAME(arc_tangent)(fabs(x)), x))
WIDE(asin, copysign(NAME(arc_tangent)(fabs(x) / sqrt((1 - fabs(x)) * (1 + fabs(x)))), x))
WIDE(acos, 2 * NAME(arc_tangent)(sqrt((1 - x) / (1 + x))))
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
