/* Activation functions, element-wise losses and their derivatives, one element at a time. Part of a header that
 * simd/targets.h compiles, after vector_functions.h and vector_error.h. A derivative is multiplied by the incoming
 * gradient, which saves a pass over memory. Conditions are written so that nan takes the branch that propagates it;
 * a branch that is not taken raises no exception either. */

/* Of two zeros the second one, and nan if one of them is. */
INLINE REAL NAME(larger)(REAL x, REAL y) {
    const REAL larger = x > y ? x : y;
    return x != x ? x : larger;
}

INLINE REAL NAME(smaller)(REAL x, REAL y) {
    const REAL smaller = x < y ? x : y;
    return x != x ? x : smaller;
}

/* min(high, max(x, low)); nan is tested at the end, which makes shorter code. */
INLINE REAL NAME(clamped)(REAL x, REAL low, REAL high) {
    const REAL raised = x > low ? x : low, lowered = raised < high ? raised : high, value = low != low ? low : lowered;
    return x != x ? x : value;
}

INLINE REAL NAME(truncated)(REAL x) {
    return DOUBLE ? (REAL)trunc(x) : (REAL)truncf((float)x);
}

/* The neighbor of x in the direction of y: the bits of numbers of one sign are ordered like the numbers. */
INLINE REAL NAME(next_after)(REAL x, REAL y) {
    const UNSIGNED sign = (UNSIGNED)1 << (8 * sizeof(REAL) - 1), bits = NAME(bits_of)(x);
    const UNSIGNED moved = (x < y) == (x > 0) ? bits + 1 : bits - 1;
    const REAL near = NAME(of_bits)(x == 0 ? (NAME(bits_of)(y) & sign) | 1 : moved), other = x == y ? y : near;
    return ((x != x) | (y != y)) ? x + y : other;
}

/* The parts of frexp(): a mantissa in [1/2, 1) and an exponent; what is 0 or not finite stays and has the exponent 0. */
#define HAS_PARTS(x) (((x) != 0) & (ABSOLUTE(x) < INFINITY))
#define TINY(x) (ABSOLUTE(x) < (DOUBLE ? (REAL)0x1p-1022 : (REAL)0x1p-126))
#define RAISED(x) (TINY(x) ? (x) * (REAL)0x1p60 : (x))

INLINE REAL NAME(mantissa)(REAL x) {
    const UNSIGNED sign_and_digits = NAME(bits_of)(RAISED(x)) & ~((UNSIGNED)2 * BIAS + ((UNSIGNED)1 << MANTISSA));
    return HAS_PARTS(x) ? NAME(of_bits)(sign_and_digits | (BIAS - ((UNSIGNED)1 << MANTISSA))) : x;
}

INLINE int32_t NAME(exponent)(REAL x) {
    const UNSIGNED shifted = NAME(bits_of)(ABSOLUTE(RAISED(x))) >> MANTISSA;
    const int32_t exponent = (int32_t)shifted - (int32_t)(BIAS >> MANTISSA) + 1;
    return HAS_PARTS(x) ? exponent - (TINY(x) ? 60 : 0) : 0;
}

INLINE REAL NAME(replaced)(REAL x, REAL nan, REAL above, REAL below) {
    const REAL high = x == INFINITY ? above : x, low = x == -INFINITY ? below : high;
    return x != x ? nan : low;
}

/* exp(x) - 1 = 2**k (exp(r) - 1) + 2**k - 1, of which half is computed: 2**k may overflow */
INLINE REAL NAME(exponential_less_one)(REAL x) {
    REAL shifted;
    REAL y = HIGHEST_EXPONENT < x ? HIGHEST_EXPONENT : x;
    y = -60 > y ? -60 : y;                                /* from there it is -1 */
    const REAL r = NAME(reduced)(y, (REAL)(BIAS >> MANTISSA) - 1, &shifted);
    const REAL half = NAME(of_bits)(NAME(bits_of)(shifted) << MANTISSA);
    const REAL value = 2 * MULTIPLY_ADD(half, NAME(small_exponential_less_one)(r), half - (REAL)0.5);
    return x == 0 ? x : value;                            /* keeps the sign of zero */
}

INLINE REAL NAME(at_most_zero)(REAL x) {
    return x > 0 ? 0 : x;
}

INLINE REAL NAME(elu)(REAL x, REAL alpha) {
    const REAL bent = alpha * NAME(exponential_less_one)(NAME(at_most_zero)(x));
    return x > 0 ? x : bent;
}

INLINE REAL NAME(elu_slope)(REAL grad, REAL x, REAL alpha) {
    const REAL bent = grad * alpha * NAME(decay)(NAME(at_most_zero)(x));
    return x > 0 ? grad : bent;
}

INLINE REAL NAME(selu)(REAL x) {
    const REAL straight = (REAL)1.0507009873554805 * x;
    const REAL bent = (REAL)1.7580993408473766 * NAME(exponential_less_one)(NAME(at_most_zero)(x));
    return x > 0 ? straight : bent;
}

INLINE REAL NAME(selu_slope)(REAL grad, REAL x) {
    const REAL straight = grad * (REAL)1.0507009873554805;
    const REAL bent = grad * (REAL)1.7580993408473766 * NAME(decay)(NAME(at_most_zero)(x));
    return x > 0 ? straight : bent;
}

INLINE REAL NAME(celu)(REAL x, REAL alpha) {
    const REAL bent = alpha * NAME(exponential_less_one)(NAME(at_most_zero)(x) / alpha);
    return x > 0 ? x : bent;
}

INLINE REAL NAME(celu_slope)(REAL grad, REAL x, REAL alpha) {
    const REAL bent = grad * NAME(exponential)(NAME(at_most_zero)(x) / alpha);
    return x > 0 ? grad : bent;
}

INLINE REAL NAME(leaky_relu)(REAL x, REAL slope) {
    const REAL scaled = x * slope;
    return x > 0 ? x : scaled;
}

INLINE REAL NAME(leaky_relu_slope)(REAL grad, REAL x, REAL slope) {
    const REAL scaled = grad * slope;
    return x > 0 ? grad : scaled;
}

INLINE REAL NAME(silu_slope)(REAL grad, REAL x) {
    const REAL s = NAME(sigmoid)(x);
    return grad * (s * (1 + x * (1 - s)));
}

/* tanh(softplus(x)) = 1 - rest. With u = exp(x) it is u (u + 2) / (u (u + 2) + 2); above 0 all is divided by u * u. */
INLINE REAL NAME(mish_factor)(REAL x, REAL *rest, REAL *sigmoid) {
    const REAL e = NAME(decay)(-ABSOLUTE(x)), e2 = e * (e + e);
    const REAL part = x < 0 ? e * (e + 2) : 1 + (e + e), left = x < 0 ? 2 : e2;
    *rest = left / (part + left);
    *sigmoid = (x < 0 ? e : 1) / (1 + e);
    return part / (part + left);
}

INLINE REAL NAME(mish)(REAL x) {
    REAL rest, sigmoid;
    return x * NAME(mish_factor)(x, &rest, &sigmoid);
}

INLINE REAL NAME(mish_slope)(REAL grad, REAL x) {
    REAL rest, sigmoid;
    const REAL factor = NAME(mish_factor)(x, &rest, &sigmoid);
    return grad * (factor + x * sigmoid * (rest * (1 + factor)));
}

INLINE REAL NAME(gelu_tanh_angle)(REAL x) {
    return (REAL)1.5957691216057308 * (x + (REAL)0.044715 * x * x * x);
}

/* The slope is 0 or 1 beyond 100, where powers overflow. */
INLINE REAL NAME(gelu_tanh_slope)(REAL grad, REAL point) {
    const REAL below = point > 100 ? 100 : point, x = below < -100 ? -100 : below;
    const REAL angle = NAME(gelu_tanh_angle)(x), e = NAME(decay)(-ABSOLUTE(angle)), whole = 1 / (1 + e);
    const REAL part = e * whole, s = angle < 0 ? part : whole;
    return grad * (s + x * (whole * part) * ((REAL)1.5957691216057308 + (REAL)0.21406444881780076 * x * x));
}

/* x + 3, clamped to [0, 6] */
INLINE REAL NAME(six_steps)(REAL x) {
    const REAL y = x + 3, low = y < 0 ? 0 : y;
    return low > 6 ? 6 : low;
}

INLINE REAL NAME(hardswish_slope)(REAL grad, REAL x) {
    const REAL between = grad * (x / 3 + (REAL)0.5), above = x < 3 ? between : grad;
    return x <= -3 ? 0 : above;
}

INLINE REAL NAME(hardsigmoid_slope)(REAL grad, REAL x) {
    const REAL part = grad / 6;
    return ((x > -3) & (x < 3)) ? part : 0;
}

INLINE REAL NAME(softplus_above)(REAL x, REAL beta, REAL threshold) {
    const REAL y = x * beta, bent = NAME(softplus)(y) / beta;
    return y > threshold ? x : bent;
}

INLINE REAL NAME(softplus_slope)(REAL grad, REAL x, REAL threshold) {
    const REAL bent = grad * NAME(sigmoid)(x);
    return x > threshold ? grad : bent;
}

INLINE REAL NAME(softshrink)(REAL x, REAL bound) {
    const REAL down = x - bound, up = x + bound, none = x * 0, below = x < -bound ? up : none;
    return x > bound ? down : below;
}

INLINE REAL NAME(smooth_l1)(REAL x, REAL y, REAL beta) {
    const REAL a = ABSOLUTE(x - y), m = a > beta ? beta : a;
    return m * (a - (REAL)0.5 * m) / beta;
}

INLINE REAL NAME(smooth_l1_slope)(REAL grad, REAL difference, REAL beta) {
    const REAL inside = grad * difference / beta, outside = difference < 0 ? -grad : grad;
    return ABSOLUTE(difference) >= beta ? outside : inside;
}

INLINE REAL NAME(huber)(REAL x, REAL y, REAL delta) {
    const REAL a = ABSOLUTE(x - y), m = a > delta ? delta : a;
    return m * (a - (REAL)0.5 * m);
}

INLINE REAL NAME(huber_slope)(REAL grad, REAL difference, REAL delta) {
    const REAL inside = grad * difference, steep = grad * delta, outside = difference < 0 ? -steep : steep;
    return ABSOLUTE(difference) >= delta ? outside : inside;
}

/* x with the sign of y */
INLINE REAL NAME(signed_as)(REAL x, REAL y) {
    const UNSIGNED sign = (UNSIGNED)1 << (8 * sizeof(REAL) - 1);
    return NAME(of_bits)((NAME(bits_of)(x) & ~sign) | (NAME(bits_of)(y) & sign));
}

INLINE REAL NAME(angle)(REAL x) {
    const REAL value = x < 0 ? (REAL)3.141592653589793 : 0;
    return x != x ? x : value;
}

/* From the nearer end, so that both ends are exact. */
INLINE REAL NAME(between)(REAL x, REAL y, REAL weight) {
    const REAL low = x + weight * (y - x), high = y - (y - x) * (1 - weight);
    return ABSOLUTE(weight) < (REAL)0.5 ? low : high;
}

/* Squares of float32 neither overflow nor underflow in double precision. */
INLINE REAL NAME(hypotenuse)(REAL x, REAL y) {
    const double value = sqrt((double)x * x + (double)y * y);
    return ((ABSOLUTE(x) == INFINITY) | (ABSOLUTE(y) == INFINITY)) ? (REAL)INFINITY : (REAL)value;
}

/* log(exp(x) + exp(y)), to base 2 if `unit` is log(2) */
INLINE REAL NAME(added_logarithms)(REAL x, REAL y, REAL unit) {
    const REAL larger = x > y ? x : y, more = NAME(softplus)(-ABSOLUTE(x - y) * unit) / unit;
    return x == y ? x + (REAL)0.6931471805599453 / unit : larger + more;    /* two infinities have no difference */
}

/* x - trunc(x / y) * y without rounding, where `known` says that the quotient is small enough: it is off by at most
 * one, which the remainder shows. */
INLINE REAL NAME(rest_of_division)(REAL x, REAL y, int *known) {
#if DOUBLE
    const double q = trunc(x / y), rest = MULTIPLY_ADD(-q, y, x), size = fabs(y);
    *known = FUSED & (fabs(q) < 0x1p52) & (size < INFINITY);
#else
    const double q = trunc((double)x / y), rest = x - q * y, size = fabs((double)y);
    *known = (fabs(q) < 0x1p28) & (size < INFINITY);
#endif
    const double positive = x < 0 ? -rest : rest;
    const double low = positive < 0 ? positive + size : positive, right = low >= size ? low - size : low;
    return NAME(signed_as)((REAL)right, x);
}
