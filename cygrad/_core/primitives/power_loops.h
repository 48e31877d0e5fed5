/* Powers with one integral or half-integral exponent for all elements: products, a root and a reciprocal. Part of a
 * header that simd/targets.h compiles. float32 is computed in double precision; float64 in pairs of a number and its
 * rounding error, obtained by fused multiply-adds. So the error is little more than half a unit in the last place,
 * whatever the exponent. Blocks of elements go through the bits of the exponent together: each step is a loop that
 * the compiler vectorizes. */
#define POWER_BLOCK 128

#if DOUBLE
/* Near overflow and underflow the error of products cannot be represented: pow() computes such elements. */
#define SMALLEST_SAFE 0x1p-900
#define LARGEST_SAFE 0x1p900

/* high + low, where high is the nearest number. */
#define SETTLE(h, l, sum, rest) { const double settled = (sum) + (rest); l = (rest) - (settled - (sum)); h = settled; }
#endif

INLINE REAL NAME(whole_part)(REAL x) { return DOUBLE ? (REAL)floor(x) : (REAL)floorf((float)x); }
INLINE REAL NAME(with_sign)(REAL x, REAL sign) {
    return DOUBLE ? (REAL)copysign(x, sign) : (REAL)copysignf((float)x, (float)sign);
}

#if DOUBLE
/* The most frequent exponents, each in one loop. Return whether pow() must compute an element. */
#define FEW(name, value, squared) \
    static int NAME(name)(const double *x, double *out, int count) { \
        int unsafe = 0; \
        for (int i = 0; i < count; i++) { \
            const double v = x[i], p = v * v, low = fma(v, v, -p), base = squared ? p : v; \
            const double plain = p * base, rest = fma(p, base, -plain) + (squared ? 2 * v * v * low : low * v); \
            const int safe = fabs(plain) > SMALLEST_SAFE && fabs(plain) < LARGEST_SAFE; \
            out[i] = safe ? value : plain; \
            unsafe |= !(safe | (v == 0) | !(fabs(v) < INFINITY)); \
        } \
        return unsafe; \
    }
FEW(cubes, plain + rest, 0)
FEW(fourths, plain + rest, 1)
#undef FEW
#endif

static void NAME(inverses)(const REAL *x, REAL *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = 1 / x[i];
}

static void NAME(roots)(const REAL *x, REAL *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = DOUBLE ? (REAL)sqrt(x[i]) : (REAL)sqrtf((float)x[i]);
}

#if DOUBLE && !FUSED
/* pow() takes the root of -infinity as infinity. */
static void NAME(inverse_roots)(const REAL *x, REAL *out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] == 0 || fabs(x[i]) == INFINITY ? 1 / sqrt(x[i]) : pow(x[i], -0.5);
}
#endif

#if !DOUBLE
static void NAME(cubes)(const float *x, float *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)((double)x[i] * x[i] * x[i]);
}
#endif

/* Return whether this function supports the exponent. `out` may be x, but must not overlap it otherwise. */
static int NAME(power_loop)(const REAL *x, double exponent, REAL *out, int64_t n) {
    const double twice = 2 * fabs(exponent);
    const int negative = exponent < 0;
    int whole, half, bit;
    double h[POWER_BLOCK], v[POWER_BLOCK];
#if DOUBLE
    double l[POWER_BLOCK];
#endif
    if (!(twice <= 64) || twice != floor(twice) || twice == 0)
        return 0;
    if (exponent == -1) {
        NAME(inverses)(x, out, n);
        return 1;
    }
    if (exponent == 0.5) {
        NAME(roots)(x, out, n);
        return 1;
    }
#if !DOUBLE
    if (exponent == 3) {
        NAME(cubes)(x, out, n);
        return 1;
    }
#endif
#if DOUBLE && !FUSED
    if (exponent == -0.5)
        NAME(inverse_roots)(x, out, n);
    return exponent == -0.5;
#endif
    whole = (int)twice >> 1, half = (int)twice & 1;
    for (bit = 1; 2 * bit <= whole; bit *= 2)
        ;
    for (int64_t done = 0; done < n; done += POWER_BLOCK) {
        const int count = n - done < POWER_BLOCK ? (int)(n - done) : POWER_BLOCK;
        const REAL *from = x + done;
        REAL *to = out + done;
#if DOUBLE
        if (exponent == 3 || exponent == 4) {
            memcpy(v, from, count * sizeof *v);
            if ((exponent == 3 ? NAME(cubes) : NAME(fourths))(v, to, count))
                for (int i = 0; i < count; i++)
                    if (!(fabs(to[i]) > SMALLEST_SAFE && fabs(to[i]) < LARGEST_SAFE))
                        to[i] = pow(v[i], exponent);
            continue;
        }
#endif
        for (int i = 0; i < count; i++)
            h[i] = v[i] = half && whole && from[i] == -INFINITY ? INFINITY : (double)from[i];
#if DOUBLE
        int unsafe = 0;
        for (int i = 0; i < count; i++)
            l[i] = 0;
        for (int rest = bit / 2; rest; rest /= 2) {
            for (int i = 0; i < count; i++) {
                const double square = h[i] * h[i], error = fma(h[i], h[i], -square) + 2 * h[i] * l[i];
                SETTLE(h[i], l[i], square, error)
            }
            if (whole & rest)
                for (int i = 0; i < count; i++) {
                    const double product = h[i] * v[i], error = fma(h[i], v[i], -product) + l[i] * v[i];
                    SETTLE(h[i], l[i], product, error)
                }
        }
        if (half)
            for (int i = 0; i < count; i++) {
                const double root = sqrt(v[i]), low = fma(-root, root, v[i]) / (2 * root);
                const double product = whole ? h[i] * root : root;
                const double error = whole ? fma(h[i], root, -product) + (h[i] * low + l[i] * root) : low;
                SETTLE(h[i], l[i], product, error)
            }
        if (negative)
            for (int i = 0; i < count; i++) {
                const double inverse = 1 / h[i], low = fma(-h[i], inverse, 1) - l[i] * inverse;
                l[i] = h[i], h[i] = inverse + inverse * low;
            }
        else
            for (int i = 0; i < count; i++)
                l[i] = h[i];
        for (int i = 0; i < count; i++) {
            const double size = fabs(l[i]), edge = (whole & 1 && !half) || !whole ? v[i] : fabs(v[i]);
            const int special = v[i] == 0 || fabs(v[i]) == INFINITY || v[i] != v[i];
            const int impossible = half && v[i] < 0;
            h[i] = impossible ? NAN : special ? (negative ? 1 / edge : edge) : h[i];
            unsafe |= !(special | impossible | (size > SMALLEST_SAFE && size < LARGEST_SAFE));
        }
        if (unsafe)
            for (int i = 0; i < count; i++)
                if (!(fabs(l[i]) > SMALLEST_SAFE && fabs(l[i]) < LARGEST_SAFE))
                    h[i] = pow(v[i], exponent);
#else
        for (int rest = bit / 2; rest; rest /= 2) {
            for (int i = 0; i < count; i++)
                h[i] *= h[i];
            if (whole & rest)
                for (int i = 0; i < count; i++)
                    h[i] *= v[i];
        }
        if (half)
            for (int i = 0; i < count; i++)
                h[i] = whole ? h[i] * sqrt(v[i]) + 0.0 : sqrt(v[i]);      /* -0 becomes 0 in the first */
        if (negative)
            for (int i = 0; i < count; i++)
                h[i] = 1 / h[i];
#endif
        for (int i = 0; i < count; i++)
            to[i] = (REAL)h[i];
    }
    return 1;
}

/* The power of |x| becomes that of x. */
static void NAME(signed_power)(const REAL *x, const REAL *exponent, int64_t step, REAL *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const REAL e = exponent[i * step], halved = e / 2;
        const int whole = e - NAME(whole_part)(e) == 0 || e == INFINITY || e == -INFINITY, odd = whole && halved != NAME(whole_part)(halved);
        const REAL power = odd ? NAME(with_sign)(out[i], x[i]) : out[i];
        out[i] = x[i] < 0 && !whole && x[i] != -INFINITY ? NAN : power;
    }
}
#undef POWER_BLOCK
#undef SMALLEST_SAFE
#undef LARGEST_SAFE
#undef SETTLE
