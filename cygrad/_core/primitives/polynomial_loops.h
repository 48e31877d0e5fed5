/* Recurrences of polynomials; see polynomial_functions.h. */

/* next = ((a x + b) last - c before) / divisor; values that are not finite stay. Return whether one is finite. */
INLINE int polynomial_step(const double *x, double *before, double *last, int64_t count, double a, double b, double c,
                           double divisor) {
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        const double now = last[i], next = (a * x[i] + b) * now - c * before[i];
        const int64_t is_finite = fabs(now) <= DBL_MAX;
        last[i] = is_finite ? next : now;
        before[i] = now;
        finite |= is_finite;
    }
    if (divisor != 1)
        for (int64_t i = 0; i < count; i++)
            last[i] /= divisor;
    return finite != 0;
}

/* The polynomial of degree n of at most a block of contiguous elements. */
template <class T> static void polynomial_block(
        const polynomial_t *f, double n, const T *given, T *out, int64_t count) {
    double x[POLYNOMIAL_BLOCK], before[POLYNOMIAL_BLOCK], last[POLYNOMIAL_BLOCK], terms = trunc(n);
    const double scale = f->shifted ? 2 : 1, shift = f->shifted ? 1 : 0;
    const int is_chebyshev = f->function != NULL;
    int64_t finite = 1;
    for (int64_t i = 0; i < count; i++) {
        x[i] = scale * given[i] - shift;
        before[i] = 0;
        last[i] = x[i] == x[i] ? 1 : x[i];
    }
    if (n <= -1 || !(n < (is_chebyshev ? MAX_RECURSIONS : MAX_TERMS))) {
        for (int64_t i = 0; i < count; i++) out[i] = (T)(n <= -1 ? 0 : is_chebyshev ? f->function(x[i], n) : NAN);
        return;
    }
    for (double k = 0; k < terms; k++) {
        double a = 2, b = 0, c = 1, divisor = 1;
        switch (f->family) {
            case CHEBYSHEV_T: a = k == 0 ? 1 : 2; break;
            case CHEBYSHEV_U: break;
            case CHEBYSHEV_V: b = k == 0 ? -1 : 0; break;
            case CHEBYSHEV_W: b = k == 0 ? 1 : 0; break;
            case HERMITE_H: c = 2 * k; break;
            case HERMITE_HE: a = 1; c = k; break;
            case LAGUERRE_L: a = -1; b = 2 * k + 1; c = k; divisor = k + 1; break;
            case LEGENDRE_P: a = 2 * k + 1; c = k; divisor = k + 1; break;
        }
        if (!polynomial_step(x, before, last, count, a, b, c, divisor))
            break;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = (T)last[i];
        finite &= fabs(last[i]) <= DBL_MAX;
    }
    for (int64_t i = 0; is_chebyshev && !finite && i < count; i++)
        if (!isfinite(last[i])) out[i] = (T)f->function(x[i], n);
}

template <class T> INLINE T &element(char *data, int64_t step, int64_t i) {
    return *(T *)(data + i * step);
}

template <class T> static void loop(
        char **arguments, const int64_t *n, const int64_t *steps, const polynomial_t *polynomial) {
    const int64_t size = sizeof(T);
    T x[POLYNOMIAL_BLOCK], results[POLYNOMIAL_BLOCK];
    for (int64_t done = 0, count; done < *n; done += count) {
        char *data = arguments[0] + done * steps[0], *degrees = arguments[1] + done * steps[1];
        char *out = arguments[2] + done * steps[2];
        count = *n - done < POLYNOMIAL_BLOCK ? *n - done : POLYNOMIAL_BLOCK;
        const T degree = element<T>(degrees, 0, 0);
        if (steps[1] && (steps[1] != size || memcmp(degrees, degrees + size, (count - 1) * size))) {
            int64_t same = 1;
            while (same < count && element<T>(degrees, steps[1], same) == degree)
                same++;
            count = same;
        }
        for (int64_t k = 0; steps[0] != size && k < count; k++)
            x[k] = element<T>(data, steps[0], k);
        polynomial_block<T>(polynomial, degree, steps[0] == size ? (T *)data : x, steps[2] == size ? (T *)out : results,
                            count);
        for (int64_t k = 0; steps[2] != size && k < count; k++)
            element<T>(out, steps[2], k) = results[k];
    }
}
