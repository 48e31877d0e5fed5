// The table of vector functions.

#include "primitives/vector_math.h"

#include <math.h>
#include <string.h>

/* Up to this size the multiple of pi/2 is subtracted with full precision. */
#define LARGEST_ANGLE 1048576.0
/* Adding and subtracting it rounds to an integer, which stays in the low bits of the sum. */
#define ROUND_DOUBLE 6755399441055744.0

/* sin(x + quarter * pi/2) */
static inline __attribute__((always_inline)) double sine(double x, int64_t quarter) {
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

#define LOOPS "primitives/vector_loops.h"
#include "simd/dispatch.h"

#if SIMD_TARGETS > 1
#define FOR_TARGETS(loops, name) {loops(baseline, name), loops(avx2, name), loops(avx512, name)}
#define WIDE_LOOPS(name) {{baseline::wide_##name##_loop}, {avx2::wide_##name##_loop}}
#else
#define FOR_TARGETS(loops, name) {loops(baseline, name)}
#define WIDE_LOOPS(name) {{baseline::wide_##name##_loop}}
#endif
#define SINGLE(target, name) {(vector_function_t)target::name##_loop<float>}
#define REALS(target, name) \
    {(vector_function_t)target::name##_loop<float>, (vector_function_t)target::name##_loop<double>}

#define VECTOR(name, arity, cost) {#name, arity, cost, 0, FOR_TARGETS(REALS, name)}
#define SINGLE_VECTOR(name, arity, cost) {#name, arity, cost, 0, FOR_TARGETS(SINGLE, name)}
#define WIDE_VECTOR(name, arity, cost) {#name, arity, cost, 0, WIDE_LOOPS(name)}
#define TRUTH_VECTOR(name, arity) {#name, arity, 1, 1, FOR_TARGETS(REALS, name)}

const vector_entry_t vector_entries[] = {
    VECTOR(maximum, 2, 1), VECTOR(minimum, 2, 1), VECTOR(clamp_between, 3, 2),
    VECTOR(sign, 1, 1), {"sgn", 1, 1, 0, FOR_TARGETS(REALS, sign)}, VECTOR(frac, 1, 1), VECTOR(frexp_mantissa, 1, 2),
    {"frexp_exponent", 1, 2, 4, FOR_TARGETS(REALS, frexp_exponent)}, VECTOR(nextafter, 2, 2),
    VECTOR(replace_non_finite, 4, 2), VECTOR(finite_backward, 2, 1), VECTOR(hardtanh_backward, 4, 1),
    VECTOR(present_backward, 2, 1), TRUTH_VECTOR(logical_not, 1), TRUTH_VECTOR(logical_and, 2),
    TRUTH_VECTOR(logical_or, 2), TRUTH_VECTOR(logical_xor, 2),
    SINGLE_VECTOR(exp, 1, 8), SINGLE_VECTOR(exp2, 1, 8),   /* NumPy's loops for doubles are as fast as ours */
    VECTOR(log1p, 1, 10), VECTOR(log1p_exp, 1, 10), VECTOR(erf, 1, 20), VECTOR(erfc, 1, 20), VECTOR(ndtr, 1, 20),
    VECTOR(erfinv, 1, 25), VECTOR(sigmoid, 1, 10), VECTOR(sigmoid_backward, 2, 2),
    VECTOR(tanh_backward, 2, 2), VECTOR(relu, 1, 1), VECTOR(relu_backward, 2, 1), VECTOR(leaky_relu, 2, 1),
    VECTOR(leaky_relu_backward, 3, 1), VECTOR(threshold, 3, 1),
    VECTOR(threshold_backward, 3, 1), VECTOR(elu, 2, 10), VECTOR(elu_backward, 3, 10), VECTOR(selu, 1, 10),
    VECTOR(selu_backward, 2, 10), VECTOR(celu, 2, 10), VECTOR(celu_backward, 3, 10), VECTOR(silu, 1, 10),
    VECTOR(silu_backward, 2, 12), VECTOR(mish, 1, 12), VECTOR(mish_backward, 2, 14), VECTOR(gelu, 1, 20),
    VECTOR(gelu_backward, 2, 20), VECTOR(gelu_tanh, 1, 12), VECTOR(gelu_tanh_backward, 2, 14),
    VECTOR(softplus, 3, 12), VECTOR(softplus_backward, 3, 10), VECTOR(logsigmoid, 1, 10),
    VECTOR(logsigmoid_backward, 2, 10), VECTOR(logit_loss_slope, 3, 12), VECTOR(hardswish, 1, 2),
    VECTOR(hardswish_backward, 2, 2), VECTOR(hardsigmoid, 1, 2), VECTOR(hardsigmoid_backward, 2, 2),
    VECTOR(hardshrink, 2, 1), VECTOR(softshrink, 2, 1), VECTOR(shrink_backward, 3, 1),
    VECTOR(smooth_l1_elementwise, 3, 2), VECTOR(smooth_l1_backward, 3, 2), VECTOR(huber_elementwise, 3, 2),
    VECTOR(huber_backward, 3, 2), VECTOR(copysign, 2, 1), VECTOR(angle, 1, 1), SINGLE_VECTOR(hypot, 2, 4),
    VECTOR(logaddexp, 2, 12), VECTOR(logaddexp2, 2, 12), VECTOR(fmod, 2, 6), VECTOR(remainder, 2, 8),
    VECTOR(floor_divide, 2, 10), VECTOR(trunc_divide, 2, 4), VECTOR(lerp, 3, 2), VECTOR(bessel_gap, 1, 4),
    VECTOR(atanh_excess, 1, 8),
    WIDE_VECTOR(sinh, 1, 12), WIDE_VECTOR(cosh, 1, 12), WIDE_VECTOR(expm1, 1, 10), WIDE_VECTOR(atanh, 1, 12),
    WIDE_VECTOR(log, 1, 8), WIDE_VECTOR(log2, 1, 8), WIDE_VECTOR(log10, 1, 8), WIDE_VECTOR(tan, 1, 12),
    WIDE_VECTOR(asin, 1, 12), WIDE_VECTOR(acos, 1, 12), WIDE_VECTOR(atan, 1, 12), WIDE_VECTOR(atan2, 2, 16),
    WIDE_VECTOR(pow, 2, 20),
};

const int VECTOR_ENTRIES = sizeof vector_entries / sizeof *vector_entries;

void (*const sines)(const double *x, double *out, int64_t n, int64_t quarter) = DISPATCH(sines);
