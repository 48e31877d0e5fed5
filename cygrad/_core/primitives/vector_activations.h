/* Activation functions, element-wise losses and their derivatives, one element at a time. Part of a header that
 * simd/dispatch.h compiles, after vector_functions.h and vector_error.h. A derivative is multiplied by the incoming
 * gradient, which saves a pass over memory. Conditions are written so that nan takes the branch that propagates it;
 * a branch that is not taken raises no exception either. */

/* Of two zeros the second one, and nan if one of them is. */
template <class T> INLINE T larger(T x, T y) {
    const T larger = x > y ? x : y;
    return x != x ? x : larger;
}

template <class T> INLINE T smaller(T x, T y) {
    const T smaller = x < y ? x : y;
    return x != x ? x : smaller;
}

/* min(high, max(x, low)); nan is tested at the end, which makes shorter code. */
template <class T> INLINE T clamped(T x, T low, T high) {
    const T raised = x > low ? x : low, lowered = raised < high ? raised : high, value = low != low ? low : lowered;
    return x != x ? x : value;
}

template <class T> INLINE T truncated(T x) {
    return trunc(x);
}

/* The neighbor of x in the direction of y: the bits of numbers of one sign are ordered like the numbers. */
template <class T> INLINE T next_after(T x, T y) {
    const bits_t<T> sign = (bits_t<T>)1 << (8 * sizeof(T) - 1), bits = bits_of<T>(x);
    const bits_t<T> moved = (x < y) == (x > 0) ? bits + 1 : bits - 1;
    const T near = of_bits<T>(x == 0 ? (bits_of<T>(y) & sign) | 1 : moved), other = x == y ? y : near;
    return ((x != x) | (y != y)) ? x + y : other;
}

/* The parts of frexp(): a mantissa in [1/2, 1) and an exponent; 0, infinities and nan stay, with the exponent 0. */
#define HAS_PARTS(x) (((x) != 0) & (fabs(x) < INFINITY))
#define TINY(x) (fabs(x) < std::numeric_limits<T>::min())
#define RAISED(x) (TINY(x) ? (x) * (T)0x1p60 : (x))

template <class T> INLINE T mantissa(T x) {
    const bits_t<T> sign_and_digits = bits_of<T>(RAISED(x)) & ~((bits_t<T>)2 * BIAS<T> + ((bits_t<T>)1 << MANTISSA<T>));
    return HAS_PARTS(x) ? of_bits<T>(sign_and_digits | (BIAS<T> - ((bits_t<T>)1 << MANTISSA<T>))) : x;
}

template <class T> INLINE int32_t exponent(T x) {
    const bits_t<T> shifted = bits_of<T>(fabs(RAISED(x))) >> MANTISSA<T>;
    const int32_t exponent = (int32_t)shifted - (int32_t)(BIAS<T> >> MANTISSA<T>) + 1;
    return HAS_PARTS(x) ? exponent - (TINY(x) ? 60 : 0) : 0;
}

template <class T> INLINE T replaced(T x, T nan, T above, T below) {
    const T high = x == INFINITY ? above : x, low = x == -INFINITY ? below : high;
    return x != x ? nan : low;
}

/* exp(x) - 1 = 2**k (exp(r) - 1) + 2**k - 1, of which half is computed: 2**k may overflow */
template <class T> INLINE T exponential_less_one(T x) {
    T shifted;
    T y = HIGHEST_EXPONENT<T> < x ? HIGHEST_EXPONENT<T> : x;
    y = -60 > y ? -60 : y;                                /* from there it is -1 */
    const T r = reduced<T>(y, (T)(BIAS<T> >> MANTISSA<T>) - 1, &shifted);
    const T half = of_bits<T>(bits_of<T>(shifted) << MANTISSA<T>);
    const T value = 2 * multiply_add<T>(half, small_exponential_less_one<T>(r), half - (T)0.5);
    return x == 0 ? x : value;                            /* keeps the sign of zero */
}

template <class T> INLINE T at_most_zero(T x) {
    return x > 0 ? 0 : x;
}

template <class T> INLINE T elu(T x, T alpha) {
    const T bent = alpha * exponential_less_one<T>(at_most_zero<T>(x));
    return x > 0 ? x : bent;
}

template <class T> INLINE T elu_slope(T grad, T x, T alpha) {
    const T bent = grad * alpha * decay<T>(at_most_zero<T>(x));
    return x > 0 ? grad : bent;
}

template <class T> INLINE T selu(T x) {
    const T straight = (T)1.0507009873554805 * x;
    const T bent = (T)1.7580993408473766 * exponential_less_one<T>(at_most_zero<T>(x));
    return x > 0 ? straight : bent;
}

template <class T> INLINE T selu_slope(T grad, T x) {
    const T straight = grad * (T)1.0507009873554805;
    const T bent = grad * (T)1.7580993408473766 * decay<T>(at_most_zero<T>(x));
    return x > 0 ? straight : bent;
}

template <class T> INLINE T celu(T x, T alpha) {
    const T bent = alpha * exponential_less_one<T>(at_most_zero<T>(x) / alpha);
    return x > 0 ? x : bent;
}

template <class T> INLINE T celu_slope(T grad, T x, T alpha) {
    const T bent = grad * exponential<T>(at_most_zero<T>(x) / alpha);
    return x > 0 ? grad : bent;
}

template <class T> INLINE T leaky_relu(T x, T slope) {
    const T scaled = x * slope;
    return x > 0 ? x : scaled;
}

template <class T> INLINE T leaky_relu_slope(T grad, T x, T slope) {
    const T scaled = grad * slope;
    return x > 0 ? grad : scaled;
}

template <class T> INLINE T silu_slope(T grad, T x) {
    const T s = sigmoid<T>(x);
    return grad * (s * (1 + x * (1 - s)));
}

/* tanh(softplus(x)) = 1 - rest. With u = exp(x) it is u (u + 2) / (u (u + 2) + 2); above 0 all is divided by u * u. */
template <class T> INLINE T mish_factor(T x, T *rest, T *sigmoid) {
    const T e = decay<T>(-fabs(x)), e2 = e * (e + e);
    const T part = x < 0 ? e * (e + 2) : 1 + (e + e), left = x < 0 ? 2 : e2;
    *rest = left / (part + left);
    *sigmoid = (x < 0 ? e : 1) / (1 + e);
    return part / (part + left);
}

template <class T> INLINE T mish(T x) {
    T rest, sigmoid;
    return x * mish_factor<T>(x, &rest, &sigmoid);
}

template <class T> INLINE T mish_slope(T grad, T x) {
    T rest, sigmoid;
    const T factor = mish_factor<T>(x, &rest, &sigmoid);
    return grad * (factor + x * sigmoid * (rest * (1 + factor)));
}

template <class T> INLINE T gelu_tanh_angle(T x) {
    return (T)1.5957691216057308 * (x + (T)0.044715 * x * x * x);
}

/* The slope is 0 or 1 beyond 100, where powers overflow. */
template <class T> INLINE T gelu_tanh_slope(T grad, T point) {
    const T below = point > 100 ? 100 : point, x = below < -100 ? -100 : below;
    const T angle = gelu_tanh_angle<T>(x), e = decay<T>(-fabs(angle)), whole = 1 / (1 + e);
    const T part = e * whole, s = angle < 0 ? part : whole;
    return grad * (s + x * (whole * part) * ((T)1.5957691216057308 + (T)0.21406444881780076 * x * x));
}

/* x + 3, clamped to [0, 6] */
template <class T> INLINE T six_steps(T x) {
    const T y = x + 3, low = y < 0 ? 0 : y;
    return low > 6 ? 6 : low;
}

template <class T> INLINE T hardswish_slope(T grad, T x) {
    const T between = grad * (x / 3 + (T)0.5), above = x < 3 ? between : grad;
    return x <= -3 ? 0 : above;
}

template <class T> INLINE T hardsigmoid_slope(T grad, T x) {
    const T part = grad / 6;
    return ((x > -3) & (x < 3)) ? part : 0;
}

template <class T> INLINE T softplus_above(T x, T beta, T threshold) {
    const T y = x * beta, bent = softplus<T>(y) / beta;
    return y > threshold ? x : bent;
}

template <class T> INLINE T softplus_slope(T grad, T x, T threshold) {
    const T bent = grad * sigmoid<T>(x);
    return x > threshold ? grad : bent;
}

/* negative * sigmoid(x) - positive * sigmoid(-x), with one exponential */
template <class T> INLINE T logit_loss_slope(T x, T negative, T positive) {
    const T e = decay<T>(-fabs(x)), rising = x < 0 ? e : 1, falling = x < 0 ? 1 : e;
    return (negative * rising - positive * falling) / (1 + e);
}

template <class T> INLINE T softshrink(T x, T bound) {
    const T down = x - bound, up = x + bound, none = x * 0, below = x < -bound ? up : none;
    return x > bound ? down : below;
}

/* 1 - i1(1 / t) / i0(1 / t) for t < 1 / 50: the quotient of asymptotic series (Abramowitz and Stegun, 9.7.1). */
template <class T> INLINE T bessel_gap(T t) {
    const T far = (T)(23797.0 / 512) + t * ((T)(55384775.0 / 262144) + t * (T)(2180461.0 / 2048));
    const T middle = (T)(103.0 / 32) + t * ((T)(375733.0 / 32768) + t * far);
    const T near = (T)(13.0 / 32) + t * ((T)(1073.0 / 1024) + t * middle);
    return t * ((T)0.5 + t * ((T)0.125 + t * ((T)0.125 + t * ((T)(25.0 / 128) + t * near))));
}

/* (atanh(z) / z - 1) / z^2 of s = z^2 for s < 1 / 9 */
template <class T> INLINE T atanh_excess(T s) {
    const T rest = polynomial<T>(s, (T)1 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3);
    if constexpr (!DOUBLE<T>)
        return rest;
    const T high = polynomial<T>(s, (T)1 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25, 1.0 / 23, 1.0 / 21);
    const T third = s * s * s;
    return multiply_add<T>(third * third * third, high, rest);
}

template <class T> INLINE T smooth_l1(T x, T y, T beta) {
    const T a = fabs(x - y), m = a > beta ? beta : a;
    return m / beta * (a - (T)0.5 * m);       /* the quotient first: products of small numbers underflow */
}

template <class T> INLINE T smooth_l1_slope(T grad, T difference, T beta) {
    const T inside = grad * difference / beta, outside = difference < 0 ? -grad : grad;
    return fabs(difference) >= beta ? outside : inside;
}

template <class T> INLINE T huber(T x, T y, T delta) {
    const T a = fabs(x - y), m = a > delta ? delta : a;
    return m * (a - (T)0.5 * m);
}

template <class T> INLINE T huber_slope(T grad, T difference, T delta) {
    const T inside = grad * difference, steep = grad * delta, outside = difference < 0 ? -steep : steep;
    return fabs(difference) >= delta ? outside : inside;
}

/* x with the sign of y */
template <class T> INLINE T signed_as(T x, T y) {
    const bits_t<T> sign = (bits_t<T>)1 << (8 * sizeof(T) - 1);
    return of_bits<T>((bits_of<T>(x) & ~sign) | (bits_of<T>(y) & sign));
}

template <class T> INLINE T angle(T x) {
    const T value = x < 0 ? (T)3.141592653589793 : 0;
    return x != x ? x : value;
}

/* From the nearer end, so that both ends are exact. */
template <class T> INLINE T between(T x, T y, T weight) {
    const T low = x + weight * (y - x), high = y - (y - x) * (1 - weight);
    return fabs(weight) < (T)0.5 ? low : high;
}

/* Squares of float32 neither overflow nor underflow in double precision. */
template <class T> INLINE T hypotenuse(T x, T y) {
    const double value = sqrt((double)x * x + (double)y * y);
    return ((fabs(x) == INFINITY) + (fabs(y) == INFINITY)) ? (T)INFINITY : (T)value;
}

/* log(exp(x) + exp(y)), to base 2 if `unit` is log(2) */
template <class T> INLINE T added_logarithms(T x, T y, T unit) {
    const T larger = x > y ? x : y, more = softplus<T>(-fabs(x - y) * unit) / unit;
    return x == y ? x + (T)0.6931471805599453 / unit : larger + more;    /* two infinities have no difference */
}

/* x - trunc(x / y) * y without rounding, where `known` says that the quotient is small enough: it is off by at most
 * one, which the remainder shows. Without fused operations float32 is divided in double precision. */
template <class T> INLINE T rest_of_division(T x, T y, int *known) {
    typedef std::conditional_t<FUSED, T, double> wide;
    const wide q = trunc((wide)x / y), size = fabs(y), rest = FUSED ? multiply_add<wide>(-q, y, x) : x - q * y;
    const wide most = FUSED ? ((bits_t<T>)1 << MANTISSA<T>) : DOUBLE<T> ? 0 : 0x1p28;
    *known = (fabs(q) < most) & (size < INFINITY);
    const wide positive = x < 0 ? -rest : rest;
    const wide low = positive < 0 ? positive + size : positive, right = low >= size ? low - size : low;
    return signed_as<T>((T)right, x);
}
