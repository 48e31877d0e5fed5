/* sin and cos of doubles, erf and erfc of floats, written so that compilers turn them into vector code.
 *
 * Each function is compiled for several instruction sets and the best is chosen when the module is loaded. All
 * give the same bits, in any position: the operations are the same, and the build allows no contraction of
 * products and sums. Coefficients are interpolations at Chebyshev nodes, computed with 60 digits.
 */
#ifndef CYGRAD_VECTOR_MATH_H
#define CYGRAD_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "each_cpu.h"

/* Up to this size the multiple of pi/2 is subtracted with full precision. */
#define LARGEST_ANGLE 1048576.0
/* Adding and subtracting it rounds to an integer, which stays in the low bits of the sum. */
#define ROUND_DOUBLE 6755399441055744.0
#define ROUND_FLOAT 12582912.0f

/* sin(x + quarter * pi/2) */
static inline double sine(double x, int64_t quarter) {
    double shifted = x * 0x1.45f306dc9c883p-1 + ROUND_DOUBLE;
    double k = shifted - ROUND_DOUBLE;
    /* pi/2 in parts of 33 bits, so that their products with k are exact */
    double r = ((x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a600000p-34) - k * 0x1.3198a2e037073p-69;
    double z = r * r;
    double odd = r + r * (z * (-0.166666666666666646 + z * (0.008333333333330924562
        + z * (-0.0001984126983672241776 + z * (2.755731608381635861e-6
        + z * (-2.505112794401418758e-8 + z * 1.591784852480826101e-10))))));
    double even = 1.0 - (0.5 * z - z * z * (0.04166666666666666537 + z * (-0.001388888888888738227
        + z * (0.00002480158729874306929 + z * (-2.755731726000883816e-7
        + z * (2.08761438279931325e-9 + z * -1.138245677806130585e-11))))));
    int64_t bits;
    double value;
    memcpy(&bits, &shifted, sizeof bits);
    bits += quarter;
    value = bits & 1 ? even : odd;
    value = bits & 2 ? -value : value;
    return x == 0 && quarter == 0 ? x : value;    /* keeps the sign of zero */
}

/* erf where |x| < 1 */
static inline float small_error_function(float x) {
    float z = x * x;
    return x * (1.12837916705601751f + z * (-0.3761263840715242634f + z * (0.1128378141581257569f
        + z * (-0.02686535976608023403f + z * (0.005220811718144567873f + z * (-0.0008480603277341629195f
        + z * (0.0001123889606761222004f + z * -9.584755498099894403e-6f)))))));
}

static inline float error_function(float x) {
    float a = fabsf(x), t = (a < 4.0f ? a : 4.0f) - 2.5f;
    /* outside: 1 - exp(log(erfc(|x|))), the logarithm being nearly a parabola */
    float y = -7.806815273275596362f + t * (-5.352680737489049225f + t * (-0.9438937237170571508f
        + t * (-0.01085818564924761255f + t * (0.002165456001143089528f + t * (-0.0004206704675885642046f
        + t * (0.00007702701290737267522f + t * (-0.00001300004980665059542f + t * (1.800686744688561851e-6f
        + t * (-6.068977575213918038e-8f + t * -3.322064843853474518e-8f)))))))));
    float shifted = y * 1.44269504f + ROUND_FLOAT;
    float n = shifted - ROUND_FLOAT;
    float f = (y - n * 0.693145752f) - n * 1.42860677e-6f;
    float power = 1.0f + f * (1.00000004f + f * (0.500000005f + f * (0.166664053f + f * (0.0416663401f
        + f * (0.00837596823f + f * 0.00139421598f)))));
    int32_t bits, scale;
    float outside;
    memcpy(&scale, &shifted, sizeof scale);
    memcpy(&bits, &power, sizeof bits);
    bits += (int32_t)((uint32_t)scale << 23);
    memcpy(&power, &bits, sizeof power);
    outside = copysignf(1.0f - power, x);
    return x != x ? x : a < 1.0f ? small_error_function(x) : outside;
}

/* Below 1/2 it is 1 - erf, which loses nothing; from there exp(-x*x) / (1 + 2|x|) times a function that hardly varies.
 * The square is taken apart, because the exponential turns its absolute error into a relative one. */
static inline float complementary_error_function(float x) {
    float a = fabsf(x), coarse, square, rest, shifted, n, f, power, t, ratio, value, low, high;
    int32_t bits, exponent, half;
    a = a < 10.1f ? a : 10.1f;                          /* from there it is 0; a comparison with nan gives this, too */
    memcpy(&bits, &a, sizeof bits);
    bits &= (int32_t)0xfffff000;
    memcpy(&coarse, &bits, sizeof coarse);              /* 12 bits: its square is exact */
    square = coarse * coarse;
    rest = (a - coarse) * (a + coarse);
    shifted = (square + rest) * -1.44269504f + ROUND_FLOAT;
    n = shifted - ROUND_FLOAT;
    f = ((-square - n * 0.693145752f) - n * 1.42860677e-6f) - rest;
    power = 1.0f + f * (1.0f + f * (0.5f + f * (0.166666667f + f * (0.0416666667f + f * (0.00833333333f
        + f * (0.00138888889f + f * 0.000198412698f))))));
    t = (a - 2.0f) / (a + 2.0f);
    ratio = 1.2769783823473f + t * (-0.092763815747858f + t * (-0.16603048912962f + t * (0.16405090619867f
        + t * (-0.05421836207616f + t * (-0.0080299772994650f + t * (0.0087122886293605f + t * (0.0012510566013095f
        + t * (-0.0014287809491246f + t * (-0.00040183104367141f + t * (0.00017648319724405f
        + t * 0.000083184718466917f))))))))));
    ratio = ratio / (1.0f + 2.0f * a);
    /* 2 to the n in two factors: results below the normal numbers are rounded once */
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (int32_t)((uint32_t)exponent - 0x4b400000u);
    half = exponent >> 1;
    bits = (int32_t)((uint32_t)(half + 127) << 23);
    memcpy(&low, &bits, sizeof low);
    bits = (int32_t)((uint32_t)(exponent - half + 127) << 23);
    memcpy(&high, &bits, sizeof high);
    value = power * ratio * low * high;
    value = x < 0 ? 2.0f - value : value;
    return x != x ? x : a < 0.5f ? 1.0f - small_error_function(x) : value;
}

FOR_EACH_CPU static void sines(const double *x, double *out, int64_t n, int64_t quarter) {
    int64_t i, large = 0;
    for (i = 0; i < n; i++)
        large += !(fabs(x[i]) <= LARGEST_ANGLE);
    if (large) {
        for (i = 0; i < n; i++)
            out[i] = fabs(x[i]) <= LARGEST_ANGLE ? sine(x[i], quarter) : quarter ? cos(x[i]) : sin(x[i]);
        return;
    }
    for (i = 0; i < n; i++)
        out[i] = sine(x[i], quarter);
}

FOR_EACH_CPU static void error_functions(const float *x, float *out, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i++)
        out[i] = error_function(x[i]);
}

FOR_EACH_CPU static void complementary_error_functions(const float *x, float *out, int64_t n) {
    int64_t i;
    for (i = 0; i < n; i++)
        out[i] = complementary_error_function(x[i]);
}

#endif
