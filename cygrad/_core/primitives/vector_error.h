/* erf and related functions, in the style of vector_functions.h, which must be included before. Coefficients of erf
 * and erfc are interpolations at Chebyshev nodes, computed with 60 digits; the others Remez fits of relative error. */

/* x * x = square + rest, exactly */
template <class T> INLINE T exact_square(T x, T *rest) {
    if constexpr (FUSED) {
        const T square = x * x;
        *rest = multiply_add<T>(x, x, -square);
        return square;
    }
    const T coarse = of_bits<T>(bits_of<T>(x) & (bits_t<T>)(DOUBLE<T> ? 0xfffffffff8000000u : 0xfffff000u));
    *rest = (x - coarse) * (x + coarse);                    /* half of the bits are left: their square is exact */
    return coarse * coarse;
}

/* exp(-scale * x * x): the square is taken apart, because the exponential turns its absolute error into a relative one.
 * `scale` is 1 or 1/2. */
template <class T> INLINE T bell_of(T x, T scale) {
    T rest, shifted;
    const T square = exact_square<T>(x, &rest);
    const T r = reduced<T>(-scale * square, UP<T>, &shifted) - scale * rest;
    return scaled_down<T>(small_exponential<T>(r), shifted);
}

/* erf where |x| < 1 */
INLINE double small_error_function(double x) {
    const double z = x * x;
    /* erf(x) / x - 1: adding x last rounds once */
    const double p = polynomial<double>(z, -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
                                        1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
                                        -0.0008548325975389692, 0.0052239776071164225, -0.02686617064323777,
                                        0.11283791670945006, -0.37612638903183543, 0.1283791670955126);
    return multiply_add<double>(x, p, x);
}

/* exp(a * a) erfc(a) for 0 <= a <= 27.5: 1 / (1 + 2a) times a function that hardly varies, over
 * (a - 3.75) / (a + 3.75): the form of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2)
 * erfc x in 0 <= x < oo" (1981). */
INLINE double tail_without_bell(double a) {
    const double t = (a - 3.75) / (a + 3.75);
    const double p = polynomial<double>(
        t, -2.3753040476186743e-09, -7.727235767979867e-10, 3.285190504744905e-08, 1.5728734708960965e-08,
        -2.527781196400794e-07, -4.7881952579250564e-08, 1.7483772448749153e-06, -9.80313074712996e-07,
        -1.1443182344738672e-05, 2.2387299147117716e-05, 5.1648995064347805e-05, -0.00029015496872975417,
        0.00029371364519794555, 0.001755626016319403, -0.009746579550129066, 0.02836227740070735, -0.05869339859060613,
        0.09230432116150673, -0.10880393014169877, 0.08227673849011297, 0.003585415485463536, -0.1402405985855467,
        1.2375126308378275);
    return p / (1 + 2 * a);
}

/* 0 from 27.5 on. */
INLINE double outer_tail(double x) {
    double a = fabs(x);
    a = 27.5 < a ? 27.5 : a;
    return tail_without_bell(a) * bell_of<double>(a, 1);
}

INLINE double error_function(double x) {
    const double outside = copysign(1 - outer_tail(x), x);
    return fabs(x) < 1 ? small_error_function(x) : outside;
}

/* Below 1/2 it is 1 - erf, which is accurate there. */
INLINE double complementary_error_function(double x) {
    const double outside = outer_tail(x), value = x < 0 ? 2 - outside : outside;
    return fabs(x) < 0.5 ? 1 - small_error_function(x) : value;
}

/* The integral of the normal density up to x; and exp(-x * x / 2). From 38.8 on the tail is 0; near the middle the
 * distance from 1/2 is accurate. */
INLINE double normal_parts(double x, double *bell) {
    double a = fabs(x);
    a = 38.8 < a ? 38.8 : a;
    *bell = bell_of<double>(a, 0.5);
    const double tail = 0.5 * tail_without_bell(0.70710678118654752440 * a) * *bell;
    const double middle = 0.5 + 0.5 * small_error_function(0.70710678118654752440 * x);
    const double outside = x > 0 ? 1 - tail : tail;
    return a < 0.7 ? middle : outside;
}
/* erf where |x| < 1 */
INLINE float small_error_function(float x) {
    const float z = x * x;
    const float p = polynomial<float>(z, -9.584755498099894403e-6f, 0.0001123889606761222004f,
                                      -0.0008480603277341629195f, 0.005220811718144567873f, -0.02686535976608023403f,
                                      0.1128378141581257569f, -0.3761263840715242634f, 0.12837916705601751f);
    return multiply_add<float>(x, p, x);
}

INLINE float error_function(float x) {
    const float a = fabs(x), t = (4 < a ? 4 : a) - 2.5f;
    /* outside: 1 - exp(log(erfc(|x|))); the logarithm is nearly a parabola */
    const float y = polynomial<float>(t, -3.322064843853474518e-8f, -6.068977575213918038e-8f, 1.800686744688561851e-6f,
                                      -0.00001300004980665059542f, 0.00007702701290737267522f,
                                      -0.0004206704675885642046f, 0.002165456001143089528f, -0.01085818564924761255f,
                                      -0.9438937237170571508f, -5.352680737489049225f, -7.806815273275596362f);
    const float outside = copysignf(1 - decay<float>(y), x);
    return a < 1 ? small_error_function(x) : outside;
}

/* Below 1/2 it is 1 - erf, which loses nothing; from there exp(-x * x) / (1 + 2|x|) times a function that hardly
 * varies. */
INLINE float complementary_error_function(float x) {
    float a = fabs(x);
    a = 10.1f < a ? 10.1f : a;                              /* from there it is 0 */
    const float t = (a - 2) / (a + 2);
    const float p =
        polynomial<float>(t, 0.000083184718466917f, 0.00017648319724405f, -0.00040183104367141f, -0.0014287809491246f,
                          0.0012510566013095f, 0.0087122886293605f, -0.0080299772994650f, -0.05421836207616f,
                          0.16405090619867f, -0.16603048912962f, -0.092763815747858f, 1.2769783823473f);
    const float outside = p / (1 + 2 * a) * bell_of<float>(a, 1), value = x < 0 ? 2 - outside : outside;
    return a < 0.5f ? 1 - small_error_function(x) : value;
}

/* The integral of the normal density up to x; and exp(-x * x / 2). For -a < 0 it is the density times a function that
 * varies slowly: that is t times a polynomial, for t = 1 / (1 + 0.3 a) in [0.187, 1], which holds up to a = 14.5, where
 * all is 0. The polynomial is one of t - 0.6, so that rounding errors of its first terms are small in the end. */
INLINE float normal_parts(float x, float *bell) {
    float a = fabs(x);
    a = 14.5f < a ? 14.5f : a;
    const float slope = 0.3f * a, t = 1 / (1 + slope), v = 0.4f - slope * t;
    const float p = polynomial<float>(v, -0.0206234610104f, 0.0010688800211f, 0.0441971813368f, -0.00755382670175f,
                                      -0.0910458047337f, -0.0138198865374f, 0.225355883703f, 0.413744848599f,
                                      0.405136747503f, 0.2585726787f);
    *bell = bell_of<float>(a, 0.5f);
    const float tail = t * p * *bell;
    return x > 0 ? 1 - tail : tail;
}

/* The inverse of erf divided by its argument, over w = -log(1 - x * x) where it is small, or over its root: the idea of
 * Giles, "Approximating the erfinv function" (2010). Unless it is `far`, w is at most 6.25. */
INLINE double inverse_error_function(double x, int far) {
    const double a = fabs(x), w = -logarithm<double>((1 - a) * (1 + a), 0), t = w - 3.125;
    const double p = polynomial<double>(
        t, -3.5932028927020693e-22, 3.194015548136271e-21, 1.999259988861535e-20, -3.4734793888538036e-19,
        6.075050702072414e-19, 1.5510787009902526e-17, -1.2215637192404172e-16, -3.94018812230432e-17,
        6.521333511502239e-15, -4.0020031087558496e-14, -8.07192593899004e-14, 2.6305268312595183e-12,
        -1.2978805369932565e-11, -5.414303283919504e-11, 1.051223377050429e-09, -4.1126604371632185e-09,
        -2.907039127564132e-08, 4.23478816822246e-07, -1.3654691758785656e-06, -1.3882523393957483e-05,
        0.00018673420801981186, -0.0007407025341546431, -0.006033670871426851, 0.24015818242558834, 1.6536545626831027);
    double quotient = p;
    if (far) {
        const double s = sqrt(w) - 4.28125;
        const double q = polynomial<double>(
            s, -1.8029751423818918e-16, -4.533786385416053e-15, 3.4891880765975816e-14, -2.530131692006128e-14,
            -3.879480646188289e-13, 1.4811730508397214e-12, -2.684177475903205e-12, -1.4334267224217777e-13,
            3.36902983034187e-11, -1.648589518869564e-10, 3.6034463193943756e-10, 3.983317078809174e-11,
            -3.107906658534887e-09, 1.1890788549171938e-08, -2.420126536226841e-08, 1.3748400230543828e-08,
            1.011948748495158e-07, -4.786416072830625e-07, 1.3192646060952041e-06, -2.772483044225168e-06,
            4.967074591990727e-06, -8.8534411789235e-06, 1.9900241295695257e-05, -6.04980590199019e-05,
            0.00020242258538222477, -0.0005819879527501044, 0.0006569837793600144, 1.0100210686921784,
            4.123785922523308);
        quotient = w <= 6.25 ? p : q;
    }
    const double value = x * quotient;
    return a < 1 ? value : a == 1 ? copysign(INFINITY, x) : NAN;
}
INLINE float inverse_error_function(float x, int far) {
    const float a = fabs(x), w = -logarithm<float>((1 - a) * (1 + a), 0);
    const float small = w - 2.5f, root = sqrtf(w) - 3;
    const float p = polynomial<float>(small, -8.79101396424e-9f, 2.32326218728e-8f, 4.66170077267e-7f,
                                      -3.46270448335e-6f, -4.96334517287e-6f, 0.00021834443838f, -0.00125274188294f,
                                      -0.00417738677983f, 0.246640286155f, 1.50140935928f);
    const float q = polynomial<float>(root, 1.25921065762e-4f, -3.17018029492e-4f, -7.2025732835e-5f, 0.00149392836207f,
                                      -0.00358938154039f, 0.00568381745936f, -0.00763893582559f, 0.00944562176415f,
                                      1.00167506121f, 2.83297679645f);
    const float value = x * (far && w >= 5 ? q : p);
    return a < 1 ? value : a == 1 ? copysignf(INFINITY, x) : NAN;
}
template <class T> INLINE T normal_distribution(T x) {
    T bell;
    return normal_parts(x, &bell);
}

/* The derivative of x times the normal distribution at x: that plus x times the density */
template <class T> INLINE T gelu_slope(T x) {
    T bell;
    const T integral = normal_parts(x, &bell);
    return integral + x * bell * (T)0.39894228040143267794;
}
