/* Functions of float32, computed in double precision, so that results are rounded to within 0.501 units in the last
 * place; part of a header that simd/dispatch.h compiles. With AVX-512 NumPy has vector code of its own. */
#if SIMD_LEVEL < 2
/* exp(x) and exp(-x) cancel below: there two terms of the series of sinh are exact enough. */
#define NEARLY_ZERO 1e-3

/* atan(y / x) for y, x >= 0, or nan, with one division: of the smaller by the larger one, or from pi / 8 on, with u =
 * tan(angle - pi / 4), of their difference by their sum. A Chebyshev fit of atan(u) / u. */
INLINE double angle_of(double y, double x) {
    const double small = y > x ? x : y, large = y > x ? y : x;
    const int wide = small > 0.41421356237309503 * large;
    const double u = (wide ? small - large : small) / (wide ? small + large : large), z = u * u;
    const double p = polynomial<double>(z, 0.030702669171350186, -0.05877264115205971, 0.07564472108977517,
            -0.09078503591633819, 0.11110394011202065, -0.14285690815154076, 0.1999999961327284, -0.3333333333087163,
            0.9999999999999742);
    const double value = multiply_add<double>(u, p, wide ? M_PI_4 : 0);
    return y > x ? M_PI_2 - value : value;
}

/* atan2(y, x): infinite parts count like equal ones, and two zeros like y = 0 */
INLINE double arc_tangent_of_two(double y, double x) {
    const double a = fabs(y), b = fabs(x);
    const int infinite = (a == INFINITY) & (b == INFINITY), zero = (a == 0) & (b == 0);
    const double sharp = angle_of(infinite ? 1 : a, infinite | zero ? 1 : b);
    return copysign(copysign(1, x) < 0 ? M_PI - sharp : sharp, y);
}

INLINE double arc_cosine(double x) {
    const double sharp = angle_of(sqrt((1 - x) * (1 + x)), fabs(x));
    return x < 0 ? M_PI - sharp : sharp;
}

INLINE double hyperbolic_sine(double x) {
    const double e = exponential<double>(fabs(x));
    return fabs(x) < NEARLY_ZERO ? x * multiply_add<double>(x * x, 1.0 / 6, 1) : copysign(0.5 * (e - 1 / e), x);
}

INLINE double hyperbolic_cosine(double x) {
    const double e = exponential<double>(fabs(x));
    return 0.5 * (e + 1 / e);
}

INLINE double area_tangent(double x) {
    const double a = fabs(x);
    return copysign(0.5 * logarithm_of_sum<double>(2 * a / (1 - a)), x);
}

/* log(x) times a factor */
INLINE double scaled_logarithm(double x, double factor) {
    const double value = logarithm<double>(x, 0) * factor, finite = x < INFINITY ? value : x;
    return x > 0 ? finite : x == 0 ? -INFINITY : NAN;
}

#define WIDE(name, value) \
    static void wide_##name##_loop(const void *const *operand, void *out_of, int64_t n, int numbers) { \
        const float *const xs = (const float *)operand[0]; \
        float *const out = (float *)out_of; \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            const double x = xs[i]; \
            out[i] = (float)(value); \
        } \
    }
WIDE(sinh, hyperbolic_sine(x))
WIDE(cosh, hyperbolic_cosine(x))
WIDE(expm1, exponential_less_one<double>(x))
WIDE(atanh, area_tangent(x))
WIDE(log2, scaled_logarithm(x, 1.4426950408889634074))
WIDE(log10, scaled_logarithm(x, 0.43429448190325182765))
WIDE(atan, copysign(angle_of(fabs(x), 1), x))
WIDE(asin, copysign(angle_of(fabs(x), sqrt((1 - x) * (1 + x))), x))
WIDE(acos, arc_cosine(x))
WIDE(small_tan, sine(x, 0) / sine(x, 1))

static void wide_tan_loop(const void *const *operand, void *out_of, int64_t n, int numbers) {
    float *const out = (float *)out_of;
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const float *x = (const float *)operand[0] + done;
        const void *const operands[1] = {x};
        int large = 0;
        for (int64_t i = 0; i < count; i++)
            large |= !(fabsf(x[i]) <= (float)LARGEST_ANGLE);
        if (!large)
            wide_small_tan_loop(operands, out + done, count, 0);
        for (int64_t i = 0; large && i < count; i++)
            out[done + i] = (float)tan((double)x[i]);
    }
}

static void wide_atan2_loop(const void *const *operand, void *out_of, int64_t n, int numbers) {
    const float *const ys = (const float *)operand[0], *const xs = (const float *)operand[1];
    float *const out = (float *)out_of;
    const double number = *xs;
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)arc_tangent_of_two(ys[i], numbers ? number : xs[i]);
}
#endif
