/* Powers with one integral or half-integral exponent for all elements: products, a root and a reciprocal. Part of a
 * header that simd/dispatch.h compiles. float32 is computed in double precision; float64 in pairs of a number and its
 * rounding error, obtained by fused multiply-adds. So the error is little more than half a unit in the last place,
 * whatever the exponent. Blocks of elements go through the bits of the exponent together: each step is a loop that
 * the compiler vectorizes. */
constexpr int POWER_BLOCK = 128;
/* Near overflow and underflow the error of products cannot be represented: pow() computes such elements. */
constexpr double SMALLEST_SAFE = 0x1p-900, LARGEST_SAFE = 0x1p900;

/* Let high + low be sum + rest, where high is the nearest number. */
INLINE void settle(double &high, double &low, double sum, double rest) {
    high = sum + rest;
    low = rest - (high - sum);
}

/* The most frequent exponents, 3 and 4, each in one loop. Return whether pow() must compute an element. */
template <int EXPONENT> static int few_products(const double *x, double *out, int count) {
    int unsafe = 0;
    for (int i = 0; i < count; i++) {
        const double v = x[i], p = v * v, low = fma(v, v, -p), base = EXPONENT == 4 ? p : v;
        const double plain = p * base;
        const double rest = fma(p, base, -plain) + (EXPONENT == 4 ? 2 * v * v * low : low * v);
        const int safe = fabs(plain) > SMALLEST_SAFE && fabs(plain) < LARGEST_SAFE;
        out[i] = safe ? plain + rest : plain;
        unsafe |= !(safe | (v == 0) | !(fabs(v) < INFINITY));
    }
    return unsafe;
}

template <class T> static void inverses(const T *x, T *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = 1 / x[i];
}

template <class T> static void roots(const T *x, T *out, int64_t n) {
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = sqrt(x[i]);
}

/* pow() takes the root of -infinity as infinity. */
static void inverse_roots(const double *x, double *out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] == 0 || fabs(x[i]) == INFINITY ? 1 / sqrt(x[i]) : pow(x[i], -0.5);
}

/* In vectors of four: conversions of 64 bytes take more than twice as long on Zen 4. */
static void cubes(const float *x, float *out, int64_t n) {
    int64_t i = 0;
#if SIMD_LEVEL > 0
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k += 4) {
            const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + k));
            _mm_storeu_ps(out + i + k, _mm256_cvtpd_ps(v * v * v));
        }
#endif
    INDEPENDENT
    for (; i < n; i++)
        out[i] = (float)((double)x[i] * x[i] * x[i]);
}

/* Compute powers h of v in pairs, for an exponent of the absolute value whole + half / 2; `bit` is the highest of
 * `whole`. */
INLINE void power_of_pairs(double exponent, int whole, int half, int bit, const double *v, double *h, double *l,
                           int count) {
    const int negative = exponent < 0;
    int unsafe = 0;
    for (int i = 0; i < count; i++)
        l[i] = 0;
    for (int rest = bit / 2; rest; rest /= 2) {
        for (int i = 0; i < count; i++) {
            const double square = h[i] * h[i], error = fma(h[i], h[i], -square) + 2 * h[i] * l[i];
            settle(h[i], l[i], square, error);
        }
        if (whole & rest)
            for (int i = 0; i < count; i++) {
                const double product = h[i] * v[i], error = fma(h[i], v[i], -product) + l[i] * v[i];
                settle(h[i], l[i], product, error);
            }
    }
    if (half)
        for (int i = 0; i < count; i++) {
            const double root = sqrt(v[i]), low = fma(-root, root, v[i]) / (2 * root);
            const double product = whole ? h[i] * root : root;
            const double error = whole ? fma(h[i], root, -product) + (h[i] * low + l[i] * root) : low;
            settle(h[i], l[i], product, error);
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
}

/* The same without rounding errors. */
INLINE void power_of_numbers(int negative, int whole, int half, int bit, const double *v, double *h, int count) {
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
}

/* Return whether this function supports the exponent. `out` may be x, but must not overlap it otherwise. */
template <class T> static int power_loop(const T *x, double exponent, T *out, int64_t n) {
    const double twice = 2 * fabs(exponent);
    const int negative = exponent < 0;
    if (!(twice <= 64) || twice != floor(twice) || twice == 0)
        return 0;
    if (exponent == -1) {
        inverses<T>(x, out, n);
        return 1;
    }
    if (exponent == 0.5) {
        roots<T>(x, out, n);
        return 1;
    }
    if constexpr (!DOUBLE<T>) {
        if (exponent == 3) {
            cubes(x, out, n);
            return 1;
        }
    } else if constexpr (!FUSED) {
        if (exponent == -0.5)
            inverse_roots(x, out, n);
        return exponent == -0.5;
    }
    double h[POWER_BLOCK], l[POWER_BLOCK], v[POWER_BLOCK];
    const int whole = (int)twice >> 1, half = (int)twice & 1;
    int bit = 1;
    while (2 * bit <= whole)
        bit *= 2;
    for (int64_t done = 0; done < n; done += POWER_BLOCK) {
        const int count = n - done < POWER_BLOCK ? (int)(n - done) : POWER_BLOCK;
        const T *from = x + done;
        T *to = out + done;
        if constexpr (DOUBLE<T>)
            if (exponent == 3 || exponent == 4) {
                memcpy(v, from, count * sizeof *v);
                if ((exponent == 3 ? few_products<3> : few_products<4>)(v, to, count))
                    for (int i = 0; i < count; i++)
                        if (!(fabs(to[i]) > SMALLEST_SAFE && fabs(to[i]) < LARGEST_SAFE))
                            to[i] = pow(v[i], exponent);
                continue;
            }
        for (int i = 0; i < count; i++)
            h[i] = v[i] = half && whole && from[i] == -(T)INFINITY ? INFINITY : (double)from[i];
        if constexpr (DOUBLE<T>)
            power_of_pairs(exponent, whole, half, bit, v, h, l, count);
        else
            power_of_numbers(negative, whole, half, bit, v, h, count);
        for (int i = 0; i < count; i++)
            to[i] = (T)h[i];
    }
    return 1;
}

/* The power of |x| becomes that of x. */
template <class T> static void signed_power(const T *x, const T *exponent, int64_t step, T *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const T e = exponent[i * step], halved = e / 2;
        const int whole = e - floor(e) == 0 || e == INFINITY || e == -INFINITY;
        const int odd = whole && halved != floor(halved);
        const T power = odd ? (T)copysign(out[i], x[i]) : out[i];
        out[i] = x[i] < 0 && !whole && x[i] != -INFINITY ? NAN : power;
    }
}
