/* Loops over the functions of vector_functions.h, vector_error.h and vector_activations.h; see vector_math.h. */
#include "simd/vector_functions.h"
#include "primitives/vector_error.h"
#include "primitives/vector_activations.h"

/* For one to four operands x, y, z and w. `out` may be any of them, but must not overlap them otherwise. TRUTH: of
 * bool. */
#define EACH_TO(type, name, operands, value) \
    static void NAME(name##_loop)(const REAL *const *operand, type *out, int64_t n) { \
        operands \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) \
            out[i] = value; \
    }
#define EACH(...) EACH_TO(REAL, __VA_ARGS__)
#define TRUTH(...) EACH_TO(uint8_t, __VA_ARGS__)
#define ONE const REAL *x = operand[0];
#define TWO ONE const REAL *y = operand[1];
#define THREE TWO const REAL *z = operand[2];
#define FOUR THREE const REAL *w = operand[3];

EACH(maximum, TWO, NAME(larger)(x[i], y[i]))
EACH(minimum, TWO, NAME(smaller)(x[i], y[i]))
EACH(clamp_between, THREE, NAME(clamped)(x[i], y[i], z[i]))
EACH(sign, ONE, (REAL)(x[i] > 0) - (REAL)(x[i] < 0))         /* of nan, as in PyTorch, 0 */
EACH(frac, ONE, x[i] - NAME(truncated)(x[i]))
EACH(nextafter, TWO, NAME(next_after)(x[i], y[i]))
EACH(replace_non_finite, FOUR, NAME(replaced)(x[i], y[i], z[i], w[i]))
EACH(without_nan, ONE, x[i] != x[i] ? 0 : x[i])
EACH(finite_backward, TWO, ABSOLUTE(y[i]) < INFINITY ? x[i] : 0)
EACH(hardtanh_backward, FOUR, (y[i] <= z[i]) | (y[i] >= w[i]) ? 0 : x[i])
TRUTH(logical_not, ONE, x[i] == 0)
TRUTH(logical_and, TWO, (x[i] != 0) & (y[i] != 0))
TRUTH(logical_or, TWO, (x[i] != 0) | (y[i] != 0))
TRUTH(logical_xor, TWO, (x[i] != 0) ^ (y[i] != 0))
EACH(exp, ONE, NAME(exponential)(x[i]))
EACH(log1p, ONE, NAME(logarithm_of_sum)(x[i]))
EACH(log1p_exp, ONE, NAME(softplus)(x[i]))
EACH(erf, ONE, NAME(error_function)(x[i]))
EACH(erfc, ONE, NAME(complementary_error_function)(x[i]))
EACH(ndtr, ONE, NAME(normal_distribution)(x[i]))

EACH(sigmoid, ONE, NAME(sigmoid)(x[i]))
EACH(sigmoid_backward, TWO, x[i] * ((1 - y[i]) * y[i]))
EACH(tanh_backward, TWO, x[i] * (1 - y[i] * y[i]))
EACH(relu, ONE, x[i] <= 0 ? 0 : x[i])                       /* nan stays, -0 becomes 0 */
EACH(relu_backward, TWO, y[i] <= 0 ? 0 : x[i])
EACH(leaky_relu, TWO, NAME(leaky_relu)(x[i], y[i]))
EACH(leaky_relu_backward, THREE, NAME(leaky_relu_slope)(x[i], y[i], z[i]))
EACH(threshold, THREE, x[i] <= y[i] ? z[i] : x[i])
EACH(threshold_backward, THREE, y[i] <= z[i] ? 0 : x[i])
EACH(elu, TWO, NAME(elu)(x[i], y[i]))
EACH(elu_backward, THREE, NAME(elu_slope)(x[i], y[i], z[i]))
EACH(selu, ONE, NAME(selu)(x[i]))
EACH(selu_backward, TWO, NAME(selu_slope)(x[i], y[i]))
EACH(celu, TWO, NAME(celu)(x[i], y[i]))
EACH(celu_backward, THREE, NAME(celu_slope)(x[i], y[i], z[i]))
EACH(silu, ONE, x[i] * NAME(sigmoid)(x[i]))
EACH(silu_backward, TWO, NAME(silu_slope)(x[i], y[i]))
EACH(mish, ONE, NAME(mish)(x[i]))
EACH(mish_backward, TWO, NAME(mish_slope)(x[i], y[i]))
EACH(gelu, ONE, x[i] * NAME(normal_distribution)(x[i]))
EACH(gelu_backward, TWO, x[i] * NAME(gelu_slope)(y[i]))
EACH(gelu_tanh, ONE, x[i] * NAME(sigmoid)(NAME(gelu_tanh_angle)(x[i])))
EACH(gelu_tanh_backward, TWO, NAME(gelu_tanh_slope)(x[i], y[i]))
EACH(softplus, THREE, NAME(softplus_above)(x[i], y[i], z[i]))
EACH(softplus_backward, THREE, NAME(softplus_slope)(x[i], y[i], z[i]))
EACH(logsigmoid, ONE, -NAME(softplus)(-x[i]))
EACH(logsigmoid_backward, TWO, x[i] * NAME(sigmoid)(-y[i]))
EACH(hardswish, ONE, x[i] * NAME(six_steps)(x[i]) / 6)
EACH(hardswish_backward, TWO, NAME(hardswish_slope)(x[i], y[i]))
EACH(hardsigmoid, ONE, NAME(six_steps)(x[i]) / 6)
EACH(hardsigmoid_backward, TWO, NAME(hardsigmoid_slope)(x[i], y[i]))
EACH(hardshrink, TWO, ABSOLUTE(x[i]) <= y[i] ? 0 : x[i])
EACH(softshrink, TWO, NAME(softshrink)(x[i], y[i]))
EACH(shrink_backward, THREE, ABSOLUTE(y[i]) <= z[i] ? 0 : x[i])
EACH(smooth_l1_elementwise, THREE, NAME(smooth_l1)(x[i], y[i], z[i]))
EACH(smooth_l1_backward, THREE, NAME(smooth_l1_slope)(x[i], y[i], z[i]))
EACH(huber_elementwise, THREE, NAME(huber)(x[i], y[i], z[i]))
EACH(huber_backward, THREE, NAME(huber_slope)(x[i], y[i], z[i]))
EACH(copysign, TWO, NAME(signed_as)(x[i], y[i]))
EACH(angle, ONE, NAME(angle)(x[i]))
EACH(lerp, THREE, NAME(between)(x[i], y[i], z[i]))
EACH(hypot, TWO, NAME(hypotenuse)(x[i], y[i]))
EACH(logaddexp, TWO, NAME(added_logarithms)(x[i], y[i], 1))
EACH(logaddexp2, TWO, NAME(added_logarithms)(x[i], y[i], (REAL)0.6931471805599453))
EACH(near_erfinv, ONE, NAME(inverse_error_function)(x[i], 0))
EACH(far_erfinv, ONE, NAME(inverse_error_function)(x[i], 1))

/* Blocks without an element near 1 skip that polynomial. */
static void NAME(erfinv_loop)(const REAL *const *operand, REAL *out, int64_t n) {
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *x = operand[0] + done;
        int far = 0;
        for (int64_t i = 0; i < count; i++)
            far |= !(ABSOLUTE(x[i]) < (REAL)0.995);
        (far ? NAME(far_erfinv_loop) : NAME(near_erfinv_loop))(&x, out + done, count);
    }
}

/* fmod() computes blocks whose quotients are too large or undefined. */
static void NAME(fmod_loop)(const REAL *const *operand, REAL *out, int64_t n) {
    REAL block[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *x = operand[0] + done, *y = operand[1] + done;
        int all_known = 1;
        for (int64_t i = 0; i < count; i++) {
            int known;
            block[i] = NAME(rest_of_division)(x[i], y[i], &known);
            all_known &= known;
        }
        if (!all_known)
            for (int64_t i = 0; i < count; i++)
                block[i] = DOUBLE ? (REAL)fmod(x[i], y[i]) : (REAL)fmodf((float)x[i], (float)y[i]);
        memcpy(out + done, block, count * sizeof(REAL));
    }
}

/* The same with the sign of the divisor. */
static void NAME(remainder_loop)(const REAL *const *operand, REAL *out, int64_t n) {
    REAL block[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *const part[2] = {operand[0] + done, operand[1] + done};
        const REAL *y = part[1];
        NAME(fmod_loop)(part, block, count);
        for (int64_t i = 0; i < count; i++) {
            const REAL rest = block[i], moved = (y[i] < 0) != (rest < 0) ? rest + y[i] : rest;
            block[i] = rest == 0 ? NAME(signed_as)(0, y[i]) : moved;
        }
        memcpy(out + done, block, count * sizeof(REAL));
    }
}
/* The difference to that remainder divided, an integer up to rounding: bit-identical to NumPy. */
static void NAME(floor_divide_loop)(const REAL *const *operand, REAL *out, int64_t n) {
    REAL block[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *const part[2] = {operand[0] + done, operand[1] + done};
        const REAL *x = part[0], *y = part[1];
        NAME(fmod_loop)(part, block, count);
        for (int64_t i = 0; i < count; i++) {
            const REAL rest = block[i], ratio = x[i] / y[i], whole = (x[i] - rest) / y[i];
            const REAL div = (rest != 0) & ((y[i] < 0) != (rest < 0)) ? whole - 1 : whole;
            const REAL low = DOUBLE ? (REAL)floor(div) : (REAL)floorf((float)div);
            const REAL value = div - low > (REAL)0.5 ? low + 1 : low;
            const REAL signed_value = div == 0 ? NAME(signed_as)(0, ratio) : value;
            block[i] = y[i] == 0 ? ratio : signed_value;
        }
        memcpy(out + done, block, count * sizeof(REAL));
    }
}
#undef EACH_TO
#undef EACH
#undef TRUTH
#undef ONE
#undef TWO
#undef THREE
#undef FOUR
