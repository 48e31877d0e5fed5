/* Loops over the functions of vector_functions.h, vector_error.h and vector_activations.h; see vector_math.h. */
#include "simd/vector_functions.h"
#include "primitives/vector_error.h"
#include "primitives/vector_activations.h"
#include "primitives/wide_loops.h"

/* Of one to four operands x, y, z and w, of which all but x may be numbers. `out` may be any of them, but overlap them no
 * otherwise. TRUTH: of bool. */
#define EACH_TO(type, name, operands, value) \
    static void NAME(name##_loop)(const REAL *const *operand, type *out, int64_t n, int numbers) { \
        operands##_POINTERS \
        if (numbers && operands##_HAS_MORE) { \
            operands##_NUMBERS \
            INDEPENDENT \
            for (int64_t i = 0; i < n; i++) { \
                ONE_ELEMENTS \
                out[i] = value; \
            } \
            return; \
        } \
        INDEPENDENT \
        for (int64_t i = 0; i < n; i++) { \
            operands##_ELEMENTS \
            out[i] = value; \
        } \
    }
#define EACH(...) EACH_TO(REAL, __VA_ARGS__)
#define TRUTH(...) EACH_TO(uint8_t, __VA_ARGS__)
#define ONE_HAS_MORE 0
#define TWO_HAS_MORE 1
#define THREE_HAS_MORE 1
#define FOUR_HAS_MORE 1
#define ONE_POINTERS const REAL *const xs = operand[0];
#define TWO_POINTERS ONE_POINTERS const REAL *const ys = operand[1];
#define THREE_POINTERS TWO_POINTERS const REAL *const zs = operand[2];
#define FOUR_POINTERS THREE_POINTERS const REAL *const ws = operand[3];
#define ONE_ELEMENTS const REAL x = xs[i];
#define TWO_ELEMENTS ONE_ELEMENTS const REAL y = ys[i];
#define THREE_ELEMENTS TWO_ELEMENTS const REAL z = zs[i];
#define FOUR_ELEMENTS THREE_ELEMENTS const REAL w = ws[i];
#define ONE_NUMBERS
#define TWO_NUMBERS const REAL y = *ys;
#define THREE_NUMBERS TWO_NUMBERS const REAL z = *zs;
#define FOUR_NUMBERS THREE_NUMBERS const REAL w = *ws;

EACH(maximum, TWO, NAME(larger)(x, y))
EACH(minimum, TWO, NAME(smaller)(x, y))
EACH(clamp_between, THREE, NAME(clamped)(x, y, z))
EACH(sign, ONE, (REAL)(x > 0) - (REAL)(x < 0))         /* of nan, as PyTorch has it, 0 */
EACH(frexp_mantissa, ONE, NAME(mantissa)(x))
EACH_TO(int32_t, frexp_exponent, ONE, NAME(exponent)(x))
EACH(frac, ONE, x - NAME(truncated)(x))
EACH(nextafter, TWO, NAME(next_after)(x, y))
EACH(replace_non_finite, FOUR, NAME(replaced)(x, y, z, w))
EACH(present_backward, TWO, y != y ? 0 : x)
EACH(finite_backward, TWO, ABSOLUTE(y) < INFINITY ? x : 0)
EACH(hardtanh_backward, FOUR, ((y <= z) | (y >= w)) ? 0 : x)
TRUTH(logical_not, ONE, x == 0)
TRUTH(logical_and, TWO, (x != 0) & (y != 0))
TRUTH(logical_or, TWO, (x != 0) | (y != 0))
TRUTH(logical_xor, TWO, (x != 0) ^ (y != 0))
EACH(exp, ONE, NAME(exponential)(x))
#if !DOUBLE
EACH(exp2, ONE, NAME(exponential_of_two)(x))
#endif
EACH(log1p, ONE, NAME(logarithm_of_sum)(x))
EACH(log1p_exp, ONE, NAME(softplus)(x))
EACH(erf, ONE, NAME(error_function)(x))
EACH(erfc, ONE, NAME(complementary_error_function)(x))
EACH(ndtr, ONE, NAME(normal_distribution)(x))

EACH(sigmoid, ONE, NAME(sigmoid)(x))
EACH(sigmoid_backward, TWO, x * ((1 - y) * y))
EACH(tanh_backward, TWO, x * (1 - y * y))
EACH(relu, ONE, x <= 0 ? 0 : x)                       /* nan stays, -0 becomes 0 */
EACH(relu_backward, TWO, y <= 0 ? 0 : x)
EACH(leaky_relu, TWO, NAME(leaky_relu)(x, y))
EACH(leaky_relu_backward, THREE, NAME(leaky_relu_slope)(x, y, z))
EACH(threshold, THREE, x <= y ? z : x)
EACH(threshold_backward, THREE, y <= z ? 0 : x)
EACH(elu, TWO, NAME(elu)(x, y))
EACH(elu_backward, THREE, NAME(elu_slope)(x, y, z))
EACH(selu, ONE, NAME(selu)(x))
EACH(selu_backward, TWO, NAME(selu_slope)(x, y))
EACH(celu, TWO, NAME(celu)(x, y))
EACH(celu_backward, THREE, NAME(celu_slope)(x, y, z))
EACH(silu, ONE, x * NAME(sigmoid)(x))
EACH(silu_backward, TWO, NAME(silu_slope)(x, y))
EACH(mish, ONE, NAME(mish)(x))
EACH(mish_backward, TWO, NAME(mish_slope)(x, y))
EACH(gelu, ONE, x * NAME(normal_distribution)(x))
EACH(gelu_backward, TWO, x * NAME(gelu_slope)(y))
EACH(gelu_tanh, ONE, x * NAME(sigmoid)(NAME(gelu_tanh_angle)(x)))
EACH(gelu_tanh_backward, TWO, NAME(gelu_tanh_slope)(x, y))
EACH(softplus, THREE, NAME(softplus_above)(x, y, z))
EACH(softplus_backward, THREE, NAME(softplus_slope)(x, y, z))
EACH(logsigmoid, ONE, -NAME(softplus)(-x))
EACH(logsigmoid_backward, TWO, x * NAME(sigmoid)(-y))
EACH(hardswish, ONE, x * NAME(six_steps)(x) / 6)
EACH(hardswish_backward, TWO, NAME(hardswish_slope)(x, y))
EACH(hardsigmoid, ONE, NAME(six_steps)(x) / 6)
EACH(hardsigmoid_backward, TWO, NAME(hardsigmoid_slope)(x, y))
EACH(hardshrink, TWO, ABSOLUTE(x) <= y ? 0 : x)
EACH(softshrink, TWO, NAME(softshrink)(x, y))
EACH(shrink_backward, THREE, ABSOLUTE(y) <= z ? 0 : x)
EACH(smooth_l1_elementwise, THREE, NAME(smooth_l1)(x, y, z))
EACH(smooth_l1_backward, THREE, NAME(smooth_l1_slope)(x, y, z))
EACH(huber_elementwise, THREE, NAME(huber)(x, y, z))
EACH(huber_backward, THREE, NAME(huber_slope)(x, y, z))
EACH(copysign, TWO, NAME(signed_as)(x, y))
EACH(angle, ONE, NAME(angle)(x))
EACH(lerp, THREE, NAME(between)(x, y, z))
EACH(hypot, TWO, NAME(hypotenuse)(x, y))
EACH(logaddexp, TWO, NAME(added_logarithms)(x, y, 1))
EACH(logaddexp2, TWO, NAME(added_logarithms)(x, y, (REAL)0.6931471805599453))
EACH(near_erfinv, ONE, NAME(inverse_error_function)(x, 0))
EACH(far_erfinv, ONE, NAME(inverse_error_function)(x, 1))

/* Pieces none of whose elements is near 1 are spared the polynomial for those. */
static void NAME(erfinv_loop)(const REAL *const *operand, REAL *out, int64_t n, int numbers) {
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *x = operand[0] + done;
        int far = 0;
        for (int64_t i = 0; i < count; i++)
            far |= !(ABSOLUTE(x[i]) < (REAL)0.995);
        (far ? NAME(far_erfinv_loop) : NAME(near_erfinv_loop))(&x, out + done, count, 0);
    }
}

/* The second operand from number `done` on; if that is -1, a number, which is repeated in `block`. */
INLINE const REAL *NAME(second)(const REAL *y, int64_t done, REAL *block) {
    if (done >= 0)
        return y + done;
    for (int i = 0; i < 256; i++)
        block[i] = *y;
    return block;
}

/* Blocks with quotients that are too large, or none, are left to fmod(). */
static void NAME(fmod_loop)(const REAL *const *operand, REAL *out, int64_t n, int numbers) {
    REAL block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *x = operand[0] + done, *y = NAME(second)(operand[1], numbers ? -1 : done, same);
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
static void NAME(remainder_loop)(const REAL *const *operand, REAL *out, int64_t n, int numbers) {
    REAL block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *const part[2] = {operand[0] + done, NAME(second)(operand[1], numbers ? -1 : done, same)};
        const REAL *y = part[1];
        NAME(fmod_loop)(part, block, count, 0);
        for (int64_t i = 0; i < count; i++) {
            const REAL rest = block[i], moved = (y[i] < 0) != (rest < 0) ? rest + y[i] : rest;
            block[i] = rest == 0 ? NAME(signed_as)(0, y[i]) : moved;
        }
        memcpy(out + done, block, count * sizeof(REAL));
    }
}

/* The difference to that rest divided, an integer up to its rounding: bit-identical to NumPy. */
static void NAME(floor_divide_loop)(const REAL *const *operand, REAL *out, int64_t n, int numbers) {
    REAL block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const REAL *const part[2] = {operand[0] + done, NAME(second)(operand[1], numbers ? -1 : done, same)};
        const REAL *x = part[0], *y = part[1];
        NAME(fmod_loop)(part, block, count, 0);
        for (int64_t i = 0; i < count; i++) {
            const REAL rest = block[i], ratio = x[i] / y[i], whole = (x[i] - rest) / y[i];
            const REAL div = ((rest != 0) & ((y[i] < 0) != (rest < 0))) ? whole - 1 : whole;
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
#undef ONE_HAS_MORE
#undef TWO_HAS_MORE
#undef THREE_HAS_MORE
#undef FOUR_HAS_MORE
#undef ONE_POINTERS
#undef TWO_POINTERS
#undef THREE_POINTERS
#undef FOUR_POINTERS
#undef ONE_ELEMENTS
#undef TWO_ELEMENTS
#undef THREE_ELEMENTS
#undef FOUR_ELEMENTS
#undef ONE_NUMBERS
#undef TWO_NUMBERS
#undef THREE_NUMBERS
#undef FOUR_NUMBERS
