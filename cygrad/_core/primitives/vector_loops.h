/* Loops over the functions of vector_functions.h, vector_error.h and vector_activations.h; see vector_math.h. */
#include "simd/vector_functions.h"
#include "primitives/vector_error.h"
#include "primitives/vector_activations.h"

/* The second operand from number `done` on; if that is -1, a number, which is repeated in `block`. */
template <class T> INLINE const T *second(const T *y, int64_t done, T *block) {
    if (done >= 0)
        return y + done;
    for (int i = 0; i < 256; i++)
        block[i] = *y;
    return block;
}

#include "primitives/wide_loops.h"

/* Of one to four operands x, y, z and w, of which all but x may be numbers. `out` may be one of them, but overlap none
 * otherwise. TRUTH: of bool. */
#define EACH_TO(type, name, operands, value) \
    template <class T> static void name##_loop(const T *const *operand, type *out, int64_t n, int numbers) { \
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
#define EACH(...) EACH_TO(T, __VA_ARGS__)
#define TRUTH(...) EACH_TO(uint8_t, __VA_ARGS__)
#define ONE_HAS_MORE 0
#define TWO_HAS_MORE 1
#define THREE_HAS_MORE 1
#define FOUR_HAS_MORE 1
#define ONE_POINTERS const T *const xs = operand[0];
#define TWO_POINTERS ONE_POINTERS const T *const ys = operand[1];
#define THREE_POINTERS TWO_POINTERS const T *const zs = operand[2];
#define FOUR_POINTERS THREE_POINTERS const T *const ws = operand[3];
#define ONE_ELEMENTS const T x = xs[i];
#define TWO_ELEMENTS ONE_ELEMENTS const T y = ys[i];
#define THREE_ELEMENTS TWO_ELEMENTS const T z = zs[i];
#define FOUR_ELEMENTS THREE_ELEMENTS const T w = ws[i];
#define ONE_NUMBERS
#define TWO_NUMBERS const T y = *ys;
#define THREE_NUMBERS TWO_NUMBERS const T z = *zs;
#define FOUR_NUMBERS THREE_NUMBERS const T w = *ws;

EACH(maximum, TWO, larger<T>(x, y))
EACH(minimum, TWO, smaller<T>(x, y))
EACH(clamp_between, THREE, clamped<T>(x, y, z))
EACH(sign, ONE, (T)(x > 0) - (T)(x < 0))         /* of nan, as PyTorch has it, 0 */
EACH(frexp_mantissa, ONE, mantissa<T>(x))
EACH_TO(int32_t, frexp_exponent, ONE, exponent<T>(x))
EACH(frac, ONE, x - truncated<T>(x))
EACH(trunc_divide, TWO, truncated<T>(x / y))
EACH(nextafter, TWO, next_after<T>(x, y))
EACH(replace_non_finite, FOUR, replaced<T>(x, y, z, w))
EACH(present_backward, TWO, y != y ? 0 : x)
EACH(finite_backward, TWO, fabs(y) < INFINITY ? x : 0)
EACH(hardtanh_backward, FOUR, ((y <= z) | (y >= w)) ? 0 : x)
TRUTH(logical_not, ONE, x == 0)
TRUTH(logical_and, TWO, (x != 0) & (y != 0))
TRUTH(logical_or, TWO, (x != 0) | (y != 0))
TRUTH(logical_xor, TWO, (x != 0) ^ (y != 0))
EACH(exp, ONE, exponential<T>(x))
EACH(exp2, ONE, exponential_of_two(x))
EACH(log1p, ONE, logarithm_of_sum<T>(x))
EACH(log1p_exp, ONE, softplus<T>(x))
EACH(erf, ONE, error_function(x))
EACH(erfc, ONE, complementary_error_function(x))
EACH(ndtr, ONE, normal_distribution<T>(x))

EACH(sigmoid, ONE, sigmoid<T>(x))
EACH(sigmoid_backward, TWO, x * ((1 - y) * y))
EACH(tanh_backward, TWO, x * (1 - y * y))
EACH(relu, ONE, x <= 0 ? 0 : x)                       /* nan stays, -0 becomes 0 */
EACH(relu_backward, TWO, y <= 0 ? 0 : x)
EACH(leaky_relu, TWO, leaky_relu<T>(x, y))
EACH(leaky_relu_backward, THREE, leaky_relu_slope<T>(x, y, z))
EACH(threshold, THREE, x <= y ? z : x)
EACH(threshold_backward, THREE, y <= z ? 0 : x)
EACH(elu, TWO, elu<T>(x, y))
EACH(elu_backward, THREE, elu_slope<T>(x, y, z))
EACH(selu, ONE, selu<T>(x))
EACH(selu_backward, TWO, selu_slope<T>(x, y))
EACH(celu, TWO, celu<T>(x, y))
EACH(celu_backward, THREE, celu_slope<T>(x, y, z))
EACH(silu, ONE, x * sigmoid<T>(x))
EACH(silu_backward, TWO, silu_slope<T>(x, y))
EACH(mish, ONE, mish<T>(x))
EACH(mish_backward, TWO, mish_slope<T>(x, y))
EACH(gelu, ONE, x * normal_distribution<T>(x))
EACH(gelu_backward, TWO, x * gelu_slope<T>(y))
EACH(gelu_tanh, ONE, x * sigmoid<T>(gelu_tanh_angle<T>(x)))
EACH(gelu_tanh_backward, TWO, gelu_tanh_slope<T>(x, y))
EACH(softplus, THREE, softplus_above<T>(x, y, z))
EACH(softplus_backward, THREE, softplus_slope<T>(x, y, z))
EACH(logsigmoid, ONE, -softplus<T>(-x))
EACH(logsigmoid_backward, TWO, x * sigmoid<T>(-y))
EACH(logit_loss_slope, THREE, logit_loss_slope<T>(x, y, z))
EACH(hardswish, ONE, x * six_steps<T>(x) / 6)
EACH(hardswish_backward, TWO, hardswish_slope<T>(x, y))
EACH(hardsigmoid, ONE, six_steps<T>(x) / 6)
EACH(hardsigmoid_backward, TWO, hardsigmoid_slope<T>(x, y))
EACH(hardshrink, TWO, fabs(x) <= y ? 0 : x)
EACH(softshrink, TWO, softshrink<T>(x, y))
EACH(shrink_backward, THREE, fabs(y) <= z ? 0 : x)
EACH(smooth_l1_elementwise, THREE, smooth_l1<T>(x, y, z))
EACH(smooth_l1_backward, THREE, smooth_l1_slope<T>(x, y, z))
EACH(huber_elementwise, THREE, huber<T>(x, y, z))
EACH(huber_backward, THREE, huber_slope<T>(x, y, z))
EACH(copysign, TWO, signed_as<T>(x, y))
EACH(angle, ONE, angle<T>(x))
EACH(bessel_gap, ONE, bessel_gap<T>(x))
EACH(atanh_excess, ONE, atanh_excess<T>(x))
EACH(lerp, THREE, between<T>(x, y, z))
EACH(hypot, TWO, hypotenuse<T>(x, y))
EACH(logaddexp, TWO, added_logarithms<T>(x, y, 1))
EACH(logaddexp2, TWO, added_logarithms<T>(x, y, (T)0.6931471805599453))
EACH(near_erfinv, ONE, inverse_error_function(x, 0))
EACH(far_erfinv, ONE, inverse_error_function(x, 1))

/* Pieces none of whose elements is near 1 are spared the polynomial for those. */
template <class T> static void erfinv_loop(const T *const *operand, T *out, int64_t n, int numbers) {
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const T *x = operand[0] + done;
        int far = 0;
        for (int64_t i = 0; i < count; i++)
            far |= !(fabs(x[i]) < (T)0.995);
        (far ? far_erfinv_loop<T> : near_erfinv_loop<T>)(&x, out + done, count, 0);
    }
}

/* Blocks with quotients that are too large, or none, are left to fmod(). */
template <class T> static void fmod_loop(const T *const *operand, T *out, int64_t n, int numbers) {
    T block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const T *x = operand[0] + done, *y = second<T>(operand[1], numbers ? -1 : done, same);
        int all_known = 1;
        for (int64_t i = 0; i < count; i++) {
            int known;
            block[i] = rest_of_division<T>(x[i], y[i], &known);
            all_known &= known;
        }
        if (!all_known)
            for (int64_t i = 0; i < count; i++)
                block[i] = fmod(x[i], y[i]);
        memcpy(out + done, block, count * sizeof(T));
    }
}

/* The same with the sign of the divisor. */
template <class T> static void remainder_loop(const T *const *operand, T *out, int64_t n, int numbers) {
    T block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const T *const part[2] = {operand[0] + done, second<T>(operand[1], numbers ? -1 : done, same)};
        const T *y = part[1];
        fmod_loop<T>(part, block, count, 0);
        for (int64_t i = 0; i < count; i++) {
            const T rest = block[i], moved = (y[i] < 0) != (rest < 0) ? rest + y[i] : rest;
            block[i] = rest == 0 ? signed_as<T>(0, y[i]) : moved;
        }
        memcpy(out + done, block, count * sizeof(T));
    }
}

/* The difference to that rest divided, an integer up to its rounding: bit-identical to NumPy. */
template <class T> static void floor_divide_loop(const T *const *operand, T *out, int64_t n, int numbers) {
    T block[256], same[256];
    for (int64_t done = 0; done < n; done += 256) {
        const int64_t count = n - done < 256 ? n - done : 256;
        const T *const part[2] = {operand[0] + done, second<T>(operand[1], numbers ? -1 : done, same)};
        const T *x = part[0], *y = part[1];
        fmod_loop<T>(part, block, count, 0);
        for (int64_t i = 0; i < count; i++) {
            const T rest = block[i], ratio = x[i] / y[i], whole = (x[i] - rest) / y[i];
            const T div = ((rest != 0) & ((y[i] < 0) != (rest < 0))) ? whole - 1 : whole;
            const T low = floor(div);
            const T value = div - low > (T)0.5 ? low + 1 : low;
            const T signed_value = div == 0 ? signed_as<T>(0, ratio) : value;
            block[i] = y[i] == 0 ? ratio : signed_value;
        }
        memcpy(out + done, block, count * sizeof(T));
    }
}

static void sines(const double *x, double *out, int64_t n, int64_t quarter) {
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
