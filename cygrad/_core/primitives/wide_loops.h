/* Functions of float32, computed in double precision, so that results are rounded to within 0.501 units in the last
 * place; part of a header that simd/dispatch.h compiles. With AVX-512 NumPy has vector code of its own. */
#if SIMD_LEVEL < 2
/* exp(x) and exp(-x) cancel below: there two terms of the series of sinh are exact enough. */
#define NEARLY_ZERO 1e-3

/* atan(y / x) for y, x >= 0, or nan, with one division, of the smaller by the larger one: a Remez fit of atan(u) / u.
 * Even and odd coefficients are summed independently: chains of dependent operations take longer than the others. */
INLINE double angle_of(double y, double x) {
    const double small = y > x ? x : y, large = y > x ? y : x, u = small / large, z = u * u, w = z * z;
    const double odd = polynomial<double>(w, -0.003278312474949969, -0.026338678606807726, -0.060426387235771546,
            -0.09051620724581252, -0.1428527144099359, -0.33333333005320215);
    const double even = polynomial<double>(w, 0.000432960160284637, 0.011646649750997315, 0.04396731701333291,
            0.07503964035674392, 0.11105741778272736, 0.1999998083765276, 0.9999999999906544);
    const double value = u * multiply_add<double>(z, odd, even);
    return y > x ? M_PI_2 - value : value;
}

/* atan2(y, x): the bounds keep quotients of infinite numbers and of zeros from being nan. */
INLINE double arc_tangent_of_two(double y, double x) {
    const double a = fabs(y), b = fabs(x), side = copysign(1, x);
    const double sharp = angle_of(a > 1e300 ? 1e300 : a, b > 1e300 ? 1e300 : b < 1e-300 ? 1e-300 : b);
    return copysign(multiply_add<double>(side, sharp, multiply_add<double>(side, -M_PI_2, M_PI_2)), y);
}

/* asin(|x|), or half of acos(|x|) if that is `near` 0, by a Remez fit of (asin(s) / s - 1) / s**2 */
INLINE double arc_sine_of_smaller(double a, int near) {
    const double z = near ? 0.5 - 0.5 * a : a * a, s = near ? sqrt(z) : a;
    const double p = polynomial<double>(z, 0.03464635582987336, 0.007509451260147146, 0.02460471834124142,
            0.030112524701314054, 0.04465997216689359, 0.0749994889790612, 0.16666667180249753);
    return multiply_add<double>(s * z, p, s);
}

INLINE double arc_sine(double x) {
    const double a = fabs(x), angle = arc_sine_of_smaller(a, a > 0.5);
    return copysign(a > 0.5 ? multiply_add<double>(angle, -2, M_PI_2) : angle, x);
}

INLINE double arc_cosine(double x) {
    const double a = fabs(x), angle = copysign(arc_sine_of_smaller(a, a > 0.5), x);
    return a > 0.5 ? multiply_add<double>(angle, 2, x < 0 ? M_PI : 0) : M_PI_2 - angle;
}

/* tan(x) for |x| <= LARGEST_ANGLE: the quotient of Remez fits of sine and cosine */
INLINE double tangent(double x) {
    const double shifted = x * 0x1.45f306dc9c883p-1 + ROUND_DOUBLE, k = shifted - ROUND_DOUBLE;
    const double r = multiply_add<double>(k, -0x1.3198a2e037073p-69,
            multiply_add<double>(k, -0x1.0b4611a600000p-34, multiply_add<double>(k, -0x1.921fb54400000p+0, x)));
    const double z = r * r;
    const double sine = r * polynomial<double>(z, 2.7181213628931484e-06, -0.00019839312240729526,
            0.00833332930475639, -0.16666666640796554, 1);
    const double cosine = polynomial<double>(z, -2.717478666734562e-07, 2.479896068488564e-05,
            -0.0013888880659160766, 0.0416666665534214, -0.49999999999489336, 1);
    const bool turned = bits_of<double>(shifted) & 1;
    return (turned ? -cosine : sine) / (turned ? sine : cosine);
}

/* x = 2**k * (1 + f) for finite x > 0, with sqrt(1/2) <= 1 + f <= sqrt(2) */
INLINE double exponent_and_rest(double x, double *f) {
    const uint64_t bits = bits_of<double>(x), offset = bits_of<double>(0.70710678118654752440) - BIAS<double>;
    const uint64_t biased = (bits - offset) >> MANTISSA<double>;
    *f = of_bits<double>(bits + BIAS<double> - (biased << MANTISSA<double>)) - 1;
    return of_bits<double>(bits_of<double>(ROUND<double>) + biased) - (ROUND<double> + 1023);
}

/* log(x) times a factor for finite x > 0, with a relative error of 2**-35: a Remez fit of log(1 + f) / f */
INLINE double short_logarithm(double x, double factor) {
    double f;
    const double k = exponent_and_rest(x, &f), z = f * f;
    const double odd = polynomial<double>(z, -0.09900870811920395, -0.09922849024021056, -0.12497485429075386,
            -0.1666694337215274, -0.2499999408116409, -0.500000000294056);
    const double even = polynomial<double>(z, 0.053629109771624495, 0.10033196773881663, 0.11005084204651319,
            0.14290986897061242, 0.19999881145931278, 0.3333333433372395, 0.9999999999859569);
    return multiply_add<double>(f * factor, multiply_add<double>(f, odd, even), k * (M_LN2 * factor));
}

/* x**y for finite x > 0 and finite y, with a relative error of 2**-34: fits of log2(1 + f) / f to 2**-43 and of 2**r */
INLINE double positive_power(double x, double y) {
    double f;
    const double k = exponent_and_rest(x, &f), z = f * f;
    const double odd = polynomial<double>(z, -0.05749573242767911, -0.11887328449882967, -0.11798095184402527,
            -0.1444225699526058, -0.18033135135019027, -0.2404492772253032, -0.3606737593346447, -0.721347520446803);
    const double even = polynomial<double>(z, 0.11560438342787736, 0.11069739828496915, 0.1309357512353652,
            0.16032086480732366, 0.2060984591220219, 0.2885390223230539, 0.4808983468765855, 1.442695040889047);
    const double power = y * multiply_add<double>(f, multiply_add<double>(f, odd, even), k);
    const double low = power < -160 ? -160 : power, bounded = low > 130 ? 130 : low;
    const double shifted = bounded + ROUND<double>, r = bounded - (shifted - ROUND<double>);
    const double p = polynomial<double>(r, 1.5201937712417717e-05, 0.00015469292038802637, 0.0013333922485583823,
            0.00961802725036106, 0.05550410353560262, 0.2402265119818727, 0.6931471807284044, 0.9999999999616783);
    return of_bits<double>(bits_of<double>(p) + (bits_of<double>(shifted) << MANTISSA<double>));
}

/* The logarithm of x, which is `value` for finite x > 0 */
INLINE float logarithm_or_limit(float x, float value) {
    const float positive = x < INFINITY ? value : x;
    return x > 0 ? positive : x == 0 ? -INFINITY : NAN;
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
    const double a = fabs(x), value = short_logarithm((1 + a) / (1 - a), 0.5);
    const double ordinary = a < 0x1p-10 ? a * multiply_add<double>(a * a, 1.0 / 3, 1) : value;
    return copysign(a < 1 ? ordinary : a == 1 ? INFINITY : NAN, x);
}

#define WIDE(name, value) \
    static void wide_##name##_loop(const void *const *operand, void *out_of, int64_t n, int numbers) { \
        const float *const xs = (const float *)operand[0]; \
        float *const out = (float *)out_of; \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            const float given = xs[i]; \
            const double x = given; \
            out[i] = (float)(value); \
        } \
    }
WIDE(sinh, hyperbolic_sine(x))
WIDE(cosh, hyperbolic_cosine(x))
WIDE(expm1, exponential_less_one<double>(x))
WIDE(atanh, area_tangent(x))
WIDE(log, logarithm_or_limit(given, (float)short_logarithm(x, 1)))
WIDE(log2, logarithm_or_limit(given, (float)short_logarithm(x, M_LOG2E)))
WIDE(log10, logarithm_or_limit(given, (float)short_logarithm(x, M_LOG10E)))
WIDE(atan, copysign(angle_of(fabs(x), 1), x))
WIDE(asin, arc_sine(x))
WIDE(acos, arc_cosine(x))
WIDE(small_tan, tangent(x))

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

/* Blocks with other numbers than positive ones are left to powf(). */
static void wide_pow_loop(const void *const *operand, void *out_of, int64_t n, int numbers) {
    float same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const float *x = (const float *)operand[0] + done;
        const float *y = second<float>((const float *)operand[1], numbers ? -1 : done, same);
        float *const out = (float *)out_of + done;
        int other = 0;
        for (int64_t i = 0; i < count; i++)
            other |= !((x[i] > 0) & (x[i] < INFINITY) & (fabsf(y[i]) < INFINITY));
        for (int64_t i = 0; i < count && other; i++)
            out[i] = powf(x[i], y[i]);
        if (other)
            continue;
        INDEPENDENT
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)positive_power(x[i], y[i]);
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
