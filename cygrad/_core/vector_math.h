/* Transcendental functions as vector code: loops for the processor at hand (see vector_loops.h), and sin and cos of
 * doubles, whose bits are the same for all processors.
 */
#ifndef CYGRAD_VECTOR_MATH_H
#define CYGRAD_VECTOR_MATH_H

#define LOOPS "vector_loops.h"
#include "each_set.h"
#undef LOOPS

/* From x to out, of n neighbours; `out` may be `x`, but overlap it no otherwise. */
typedef void (*vector_function_t)(const void *x, void *out, int64_t n);

typedef enum {
    RECTIFICATION, EXPONENTIAL, SIGMOID, SOFTPLUS, LOGARITHM_OF_SUM, ERROR_FUNCTION, COMPLEMENTARY_ERROR_FUNCTION,
    NORMAL_DISTRIBUTION, GELU, GELU_SLOPE, INVERSE_ERROR_FUNCTION, VECTOR_FUNCTIONS
} vector_name_t;

/* NULL if there is none for this type. */
static vector_function_t vector_function(int name, int double_precision) {
    static const vector_function_t functions[VECTOR_FUNCTIONS][SETS][2] = {
        VARIANTS(rectifications), VARIANTS(exponentials), VARIANTS(sigmoids), VARIANTS(softpluses),
        VARIANTS(logarithms_of_sums),
        VARIANTS(error_functions), VARIANTS(complementary_error_functions), VARIANTS(normal_distributions),
        VARIANTS(gelus), VARIANTS(gelu_slopes), SINGLE_VARIANTS(inverse_error_functions)};
    return functions[name][instruction_set()][double_precision];
}

/* Up to this size the multiple of pi/2 is subtracted with full precision. */
#define LARGEST_ANGLE 1048576.0
/* Adding and subtracting it rounds to an integer, which stays in the low bits of the sum. */
#define ROUND_DOUBLE 6755399441055744.0

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

#endif
