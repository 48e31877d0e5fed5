// The loops over elements of one type.

#include "primitives/typed_loops.h"

#include <initializer_list>
#include "arrays/element_types.h"
#include "primitives/short_loops.h"

#define LOOPS "primitives/short_loop_templates.h"
#include "simd/dispatch.h"

namespace {

enum { BLOCK = 512 };                  // elements that a loop copies to contiguous memory on the stack

template <class T> INLINE T &at(char *const *arguments, const int64_t *steps, int k, int64_t i) {
    return *(T *)(arguments[k] + i * steps[k]);
}

// Loops by a function of numbers: its results are elements of R, its arguments of T.
template <class R, auto FUNCTION, class T>
void loop_of_one(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    for (int64_t i = 0, count = *n; i < count; i++)
        at<R>(arguments, steps, 1, i) = FUNCTION(at<T>(arguments, steps, 0, i));
}

template <class R, auto FUNCTION, class T>
void loop_of_two(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    for (int64_t i = 0, count = *n; i < count; i++)
        at<R>(arguments, steps, 2, i) = FUNCTION(at<T>(arguments, steps, 0, i), at<T>(arguments, steps, 1, i));
}

template <auto FUNCTION, class T>
void loop_of_three(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    for (int64_t i = 0, count = *n; i < count; i++)
        at<T>(arguments, steps, 3, i) = FUNCTION(at<T>(arguments, steps, 0, i), at<T>(arguments, steps, 1, i),
                                                 at<T>(arguments, steps, 2, i));
}

// ------------------------------------------------------------------------------------------------------------ integers

// Integer arithmetic as in PyTorch. The smallest integer divided by -1 wraps around.

// Round towards zero.
template <class T> INLINE T quotient(T a, T b) {
    if (std::is_signed_v<T> && b == (T)-1)
        return (T)(0 - (uint64_t)a);
    return a / b;
}

// a - quotient(a, b) * b: has the sign of a.
template <class T> INLINE T rest(T a, T b) { return std::is_signed_v<T> && b == (T)-1 ? 0 : a % b; }

template <class T> INLINE T floor_quotient(T a, T b) {
    return quotient(a, b) - (std::is_signed_v<T> && rest(a, b) != 0 && (a < 0) != (b < 0));
}

// a - floor_quotient(a, b) * b: has the sign of b.
template <class T> INLINE T modulo(T a, T b) {
    const T left = rest(a, b);
    return std::is_signed_v<T> && left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

// base ** exponent, wrapping around; a negative exponent gives the integer part of the inverse.
template <class T> INLINE T integer_power(T base, T exponent) {
    uint64_t result = 1, square = (uint64_t)base;
    if (std::is_signed_v<T> && exponent < 0)
        return base == 1 ? 1 : base == (T)-1 ? (exponent & 1 ? -1 : 1) : 0;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1)
            result *= square;
    return (T)result;
}

template <class T> INLINE uint8_t is_negative(T x) { return x < 0; }

constexpr char DIV[] = "div", FLOOR_DIVIDE[] = "floor_divide", REMAINDER[] = "remainder", FMOD[] = "fmod";

// Divide. Elements in [0, b), as most indices, need no division; after one that lies elsewhere, 64 divide untested.
template <const char *NAME, auto FUNCTION, class T>
void division_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    const bool has_rest = NAME == REMAINDER || NAME == FMOD;
    int64_t untested = 0;
    for (int64_t i = 0, count = *n; i < count; i++) {
        const T a = at<T>(arguments, steps, 0, i), b = at<T>(arguments, steps, 1, i);
        if (b == 0)
            return refuse_zero(NAME);
        if (i >= untested && a >= 0 && a < b) {
            at<T>(arguments, steps, 2, i) = has_rest ? a : 0;
            continue;
        }
        untested = i < untested ? untested : i + 64;
        at<T>(arguments, steps, 2, i) = FUNCTION(a, b);
    }
}

template <class T> INLINE T positive(T x) { return x <= 0 ? 0 : x; }
template <class T> INLINE T clamped(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

template <class T> void relu_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) {
    if (steps[0] == sizeof(T) && steps[1] == sizeof(T))
        for (int64_t i = 0, count = *n; i < count; i++)
            ((T *)arguments[1])[i] = positive(((const T *)arguments[0])[i]);
    else
        loop_of_one<T, positive<T>, T>(arguments, n, steps, data);
}

INLINE uint8_t same_bool(uint8_t x) { return x; }

// Write zeros without reading the elements.
template <int SIZE> void zeros_loop(char **arguments, const int64_t *n, const int64_t *steps, void *) {
    if (steps[1] == SIZE)
        memset(arguments[1], 0, *n * SIZE);
    else
        for (int64_t i = 0, count = *n; i < count; i++)
            memset(arguments[1] + i * steps[1], 0, SIZE);
}

// ------------------------------------------------------------------------------------------------------------- vectors

// Run the vector_function_t `data`, whose results are of type R, on contiguous elements; copy others first.
template <class T, int ARITY, class R>
void vector_function_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) {
    const vector_function_t function = (vector_function_t)data;
    T block[ARITY][BLOCK];
    R results[BLOCK];
    const void *operands[ARITY];
    char *out = arguments[ARITY];
    int64_t count = *n;
    bool numbers = ARITY > 1;
    for (int k = 1; k < ARITY; k++)
        numbers = numbers && steps[k] == 0;
    for (int k = 0; k <= ARITY; k++)
        if (steps[k] != (int64_t)(k < ARITY ? sizeof(T) : sizeof(R)) && !(numbers && 0 < k && k < ARITY) && count > BLOCK)
            count = BLOCK;
    for (int64_t done = 0; done < *n; done += count) {
        if (*n - done < count)
            count = *n - done;
        for (int k = 0; k < ARITY; k++) {
            const char *x = arguments[k] + done * steps[k];
            if (steps[k] == sizeof(T) || (numbers && k)) {
                operands[k] = x;
                continue;
            }
            operands[k] = block[k];
            if (steps[k])
                for (int64_t i = 0; i < count; i++)
                    block[k][i] = *(const T *)(x + i * steps[k]);
            else if (done == 0)
                for (int64_t i = 0; i < count; i++)
                    block[k][i] = *(const T *)x;
        }
        if (steps[ARITY] == sizeof(R)) {
            function(operands, out + done * sizeof(R), count, numbers);
            continue;
        }
        function(operands, results, count, numbers);
        for (int64_t i = 0; i < count; i++)
            *(R *)(out + (done + i) * steps[ARITY]) = results[i];
    }
}

// -------------------------------------------------------------------------------------------------------------- powers

// Compute with one exponent for all; return false if the general loop must.
template <class T> INLINE bool single_power(const powers_t *powers, const T *x, T exponent, T *out, int64_t n) {
    char *pointers[2] = {(char *)x, (char *)out};
    const int64_t steps[2] = {sizeof(T), sizeof(T)};
    if (exponent == 2)
        powers->square.loop(pointers, &n, steps, powers->square.data);
    else if (exponent == 1)
        memmove(out, x, n * sizeof(T));
    else if (exponent == 0)
        for (int64_t i = 0; i < n; i++)
            out[i] = 1;
    else
        return powers->whole(x, exponent, out, n);
    return true;
}

// Compute at most BLOCK contiguous elements, with one exponent each or (step 0) the same.
template <class T>
INLINE void general_power(const powers_t *powers, T *x, T *exponent, int64_t step, T *out, int64_t n) {
    T sizes[BLOCK];
    char *pointers[3] = {(char *)x, (char *)exponent, (char *)out};
    const int64_t size = sizeof(T), steps[3] = {size, step * size, size};
    bool negative = false;
    for (int64_t i = 0; i < n; i++)
        negative |= x[i] < 0;
    if (negative) {
        for (int64_t i = 0; i < n; i++)
            sizes[i] = (T)fabs(x[i]);
        pointers[0] = (char *)sizes;
    }
    powers->general.loop(pointers, &n, steps, powers->general.data);
    if (negative)
        powers->with_sign(x, exponent, step, out, n);
}

// x, exponent -> x ** exponent
template <class T> void pow_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) {
    const powers_t *powers = &powers_of[sizeof(T) == 8];
    T x[BLOCK], exponent[BLOCK], out[BLOCK];
    const bool one = steps[1] == 0;
    bool edges = false;
    if (one) {
        exponent[0] = *(const T *)arguments[1];
        edges = data != NULL && fabs(exponent[0]) == 0.5;
        if (!edges && steps[0] == sizeof(T) && steps[2] == sizeof(T) &&
            single_power(powers, (const T *)arguments[0], exponent[0], (T *)arguments[2], *n))
            return;
    }
    const bool direct = !edges && steps[0] == sizeof(T) && (one || steps[1] == sizeof(T)) && steps[2] == sizeof(T) &&
                        arguments[2] != arguments[0] && arguments[2] != arguments[1];
    for (int64_t done = 0, count; done < *n; done += count) {
        count = *n - done < BLOCK ? *n - done : BLOCK;
        if (direct) {
            general_power(powers, (T *)arguments[0] + done, (T *)arguments[1] + (one ? 0 : done), !one,
                          (T *)arguments[2] + done, count);
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            x[i] = at<T>(arguments, steps, 0, done + i);
        for (int64_t i = 0; i < (one ? 0 : count); i++)
            exponent[i] = at<T>(arguments, steps, 1, done + i);
        if (!(one && single_power(powers, x, exponent[0], out, count)))
            general_power(powers, x, exponent, !one, out, count);
        else if (edges)                               // where the power is no root
            for (int64_t i = 0; i < count; i++)
                if (x[i] == 0 || x[i] == -(T)INFINITY)
                    out[i] = (x[i] == 0) == (exponent[0] > 0) ? 0 : (T)INFINITY;
        for (int64_t i = 0; i < count; i++)
            at<T>(arguments, steps, 2, done + i) = out[i];
    }
}

// x, y -> x * logarithm(y), 0 where x is 0 and y is not nan. The `data` is the entry of the logarithm.
template <class T> void logarithm_product_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) {
    const entry_t *logarithm = (const entry_t *)data;
    T y[BLOCK], logarithms[BLOCK];
    const int64_t contiguous[2] = {sizeof(T), sizeof(T)};
    for (int64_t done = 0, count, different; done < *n; done += count) {
        count = *n - done < BLOCK ? *n - done : BLOCK;
        for (int64_t i = 0; i < count; i++)
            y[i] = at<T>(arguments, steps, 1, done + i);
        different = steps[1] == 0 ? 1 : count;
        char *pointers[2] = {(char *)y, (char *)logarithms};
        logarithm->loop(pointers, &different, contiguous, logarithm->data);
        for (int64_t i = different; i < count; i++)
            logarithms[i] = logarithms[0];
        for (int64_t i = 0; i < count; i++) {
            const T x = at<T>(arguments, steps, 0, done + i), product = x * logarithms[i];
            at<T>(arguments, steps, 2, done + i) = x == 0 && y[i] == y[i] ? 0 : product;
        }
    }
}

// ------------------------------------------------------------------------------------------------------------- complex

template <class T> INLINE T logistic(T z, const entry_t *exp) {
    const int64_t one = 1, steps[2] = {sizeof(T), sizeof(T)};
    z = -z;
    char *pointers[2] = {(char *)&z, (char *)&z};
    exp->loop(pointers, &one, steps, exp->data);
    return (T)1 / ((T)1 + z);
}

// The `data` of these three is the entry of exp.
template <class T> void sigmoid_loop(char **arguments, const int64_t *n, const int64_t *steps, void *exp) {
    for (int64_t i = 0; i < *n; i++)
        at<T>(arguments, steps, 1, i) = logistic(at<T>(arguments, steps, 0, i), (const entry_t *)exp);
}

template <class T> void silu_loop(char **arguments, const int64_t *n, const int64_t *steps, void *exp) {
    for (int64_t i = 0; i < *n; i++) {
        const T z = at<T>(arguments, steps, 0, i);
        at<T>(arguments, steps, 1, i) = z * logistic(z, (const entry_t *)exp);
    }
}

template <class T> void silu_backward_loop(char **arguments, const int64_t *n, const int64_t *steps, void *exp) {
    for (int64_t i = 0; i < *n; i++) {
        const T z = at<T>(arguments, steps, 1, i), s = logistic(z, (const entry_t *)exp);
        at<T>(arguments, steps, 2, i) = at<T>(arguments, steps, 0, i) * ~(s * ((T)1 + z * ((T)1 - s)));
    }
}

template <class T> INLINE T sigmoid_slope(T grad, T result) { return grad * ~(((T)1 - result) * result); }
template <class T> INLINE T tanh_slope(T grad, T result) { return grad * ~((T)1 - result * result); }

template <class T> INLINE auto real_part(T z) { return __real__ z; }
template <class T> INLINE auto imaginary_part(T z) { return __imag__ z; }

INLINE float phase(complex64_t z) { return __builtin_cargf(z); }
INLINE double phase(complex128_t z) { return __builtin_carg(z); }

// log(abs(1 + x + y * i)), accurate where the modulus is near 1: its square minus 1 is summed with errors.
INLINE double log_of_sum(double x, double y) {
    const double modulus = hypot(1 + x, y), a = 2 * x, b = x * x, c = y * y;
    if (y == 0 && x > -1)
        return log1p(x) + 0.0;            // 1 - 0.0 is 1, whose logarithm is 0.0
    if (!(0.5 < modulus && modulus < 2))
        return log(modulus);
    const double s = a + b, t = s - a, sum = s + c, u = sum - s;
    const double errors = (a - (s - t)) + (b - t) + fma(x, x, -b) + fma(y, y, -c);
    return 0.5 * log1p(sum + ((s - (sum - u)) + (c - u) + errors));
}

template <class T> INLINE T log_of_one_plus(T z) {
    const double x = __real__ z, y = __imag__ z;
    return complex_number((decltype(real_part(z)))log_of_sum(x, y), (decltype(real_part(z)))atan2(y, 1 + x));
}

// Interpolate between two numbers, from the nearer end.
template <class T> INLINE T interpolated(T x, T y, T weight) {
    return hypot((double)__real__ weight, (double)__imag__ weight) < 0.5 ? x + weight * (y - x)
                                                                         : y - (y - x) * ((T)1 - weight);
}

// Two reals -> the complex number of these parts.
template <class R> void complex_loop(char **arguments, const int64_t *n, const int64_t *steps, void *data) {
    const R *first = (const R *)arguments[0], *second = (const R *)arguments[1];
    R *out = (R *)arguments[2];
    if (steps[0] == sizeof(R) && steps[1] == sizeof(R) && steps[2] == 2 * sizeof(R))
        for (int64_t i = 0, count = *n; i < count; i++) {
            const R x = first[i], y = second[i];
            out[2 * i] = x, out[2 * i + 1] = y;
        }
    else
        loop_of_two<decltype(complex_number(*first, *second)), complex_number<R>, R>(arguments, n, steps, data);
}

// --------------------------------------------------------------------------------------------------------------- table

enum { SAME, FLOAT, SELECT };          // rules of types

template <class T>
void enter(const char *name, int arity, int cost, loop_t loop, int out = dtype_of<T>, int dtype = dtype_of<T>,
           int rule = SAME, const char *uses = NULL) {
    typed_entries[n_typed_entries++] = {name, arity, rule, cost, dtype, out, loop, uses};
}

template <class T> void enter_integer() {
    enter<T>("floor_divide", 2, 8, division_loop<FLOOR_DIVIDE, floor_quotient<T>, T>);
    enter<T>("remainder", 2, 8, division_loop<REMAINDER, modulo<T>, T>);
    enter<T>("fmod", 2, 8, division_loop<FMOD, rest<T>, T>);
    enter<T>("trunc_divide", 2, 8, division_loop<DIV, quotient<T>, T>);
    enter<T>("pow", 2, 8, loop_of_two<T, integer_power<T>, T>);
    enter<T>("signbit", 1, 1, loop_of_one<uint8_t, is_negative<T>, T>, BOOL_DTYPE);
    if (sizeof(T) == 1 || std::is_signed_v<T>) {
        enter<T>("relu", 1, 1, relu_loop<T>);
        enter<T>("clamp_between", 3, 2, loop_of_three<clamped<T>, T>);
    }
}

template <class T> void enter_complex() {
    typedef std::decay_t<decltype(real_part(T()))> R;
    const int dtype = dtype_of<T>, of_parts = dtype_of<R>;
    enter<T>("sigmoid", 1, 10, sigmoid_loop<T>, dtype, dtype, FLOAT, "exp");
    enter<T>("silu", 1, 10, silu_loop<T>, dtype, dtype, FLOAT, "exp");
    enter<T>("silu_backward", 2, 12, silu_backward_loop<T>, dtype, dtype, FLOAT, "exp");
    enter<T>("log1p", 1, 10, loop_of_one<T, log_of_one_plus<T>, T>, dtype, dtype, FLOAT);
    enter<T>("lerp", 3, 2, loop_of_three<interpolated<T>, T>, dtype, dtype, FLOAT);
    enter<T>("sigmoid_backward", 2, 2, loop_of_two<T, sigmoid_slope<T>, T>, dtype, dtype, FLOAT);
    enter<T>("tanh_backward", 2, 2, loop_of_two<T, tanh_slope<T>, T>, dtype, dtype, FLOAT);
    enter<T>("angle", 1, 1, loop_of_one<R, (R (*)(T))phase, T>, of_parts, dtype, FLOAT);
    enter<T>("real", 1, 1, loop_of_one<R, real_part<T>, T>, of_parts);
    enter<T>("imag", 1, 1, loop_of_one<R, imaginary_part<T>, T>, of_parts);
    enter<T>("complex", 2, 1, complex_loop<R>, dtype, of_parts, FLOAT);
}

template <class T> void enter_real() {
    const int dtype = dtype_of<T>;
    enter<T>("xlogy", 2, 10, logarithm_product_loop<T>, dtype, dtype, FLOAT, "log");
    enter<T>("xlog1py", 2, 12, logarithm_product_loop<T>, dtype, dtype, FLOAT, "log1p");
}

template <class T> void enter_moves(int dtype) {
    enter<T>("where", 3, 1, DISPATCH(where_loop<T>), dtype, dtype, SELECT);
    enter<T>("zeroed", 1, 1, zeros_loop<sizeof(T)>, dtype, dtype);
}

template <class T> loop_t vector_loop_of(int arity, int made) {
    switch (made * 8 + arity) {
        case 1: return vector_function_loop<T, 1, T>;
        case 2: return vector_function_loop<T, 2, T>;
        case 3: return vector_function_loop<T, 3, T>;
        case 4: return vector_function_loop<T, 4, T>;
        case 9: return vector_function_loop<T, 1, uint8_t>;
        case 10: return vector_function_loop<T, 2, uint8_t>;
        default: return vector_function_loop<T, 1, int32_t>;
    }
}

}  // namespace

typed_entry_t typed_entries[MAX_TYPED_ENTRIES];
int n_typed_entries;
void (*refuse_zero)(const char *operation);
powers_t powers_of[2];
const loop_t pow_loops[2] = {pow_loop<float>, pow_loop<double>};

loop_t vector_loop(int arity, int made, int double_precision) {
    return double_precision ? vector_loop_of<double>(arity, made) : vector_loop_of<float>(arity, made);
}

#define LOOPS_OF_ONE(target) {(short_loop_t)DISPATCH(target<float>)}, {(short_loop_t)DISPATCH(target<double>)}
#define LOOPS_OF_TWO(name, T) \
    {(short_loop_t)DISPATCH(name##_arrays<T>), (short_loop_t)DISPATCH(name##_first<T>), \
     (short_loop_t)DISPATCH(name##_second<T>)}
#define ONE(name) {#name, 1, {LOOPS_OF_ONE(name)}}
#define TWO(name) {#name, 2, {LOOPS_OF_TWO(name, float), LOOPS_OF_TWO(name, double)}}
const short_entry_t short_entries[SHORT_ENTRIES] = {
    TWO(add), TWO(sub), TWO(mul), TWO(div), ONE(neg), ONE(square), ONE(sqrt), ONE(reciprocal)};

static const bool loaded = [] {
    enter_integer<uint8_t>();
    enter_integer<int8_t>();
    enter_integer<int16_t>();
    enter_integer<int32_t>();
    enter_integer<int64_t>();
    enter_integer<uint16_t>();
    enter_integer<uint32_t>();
    enter_integer<uint64_t>();
    enter_complex<complex64_t>();
    enter_complex<complex128_t>();
    enter_real<float>();
    enter_real<double>();
    enter<uint8_t>("signbit", 1, 1, loop_of_one<uint8_t, is_negative<uint8_t>, uint8_t>, BOOL_DTYPE, BOOL_DTYPE);
    enter<uint8_t>("clamp_between", 3, 2, loop_of_three<clamped<uint8_t>, uint8_t>, BOOL_DTYPE, BOOL_DTYPE);
    for (const char *name : {"sign", "sgn"})
        enter<uint8_t>(name, 1, 1, loop_of_one<uint8_t, same_bool, uint8_t>, BOOL_DTYPE, BOOL_DTYPE);
    for (int dtype : {0, 1, 2})
        enter_moves<uint8_t>(dtype);
    for (int dtype : {3, 10, 11, 13})
        enter_moves<uint16_t>(dtype);
    for (int dtype : {4, 6, 12, 14})
        enter_moves<uint32_t>(dtype);
    for (int dtype : {5, 7, 8, 15})
        enter_moves<uint64_t>(dtype);
    enter_moves<pair_t>(dtype_of<complex128_t>);
    return true;
}();
