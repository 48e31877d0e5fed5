/* Classical orthogonal polynomials by their recurrences (Abramowitz and Stegun, chapter 22), vectorized over
 * elements of one degree; Chebyshev polynomials from degree MOST_RECURSIONS on by trigonometric formulas. The degree
 * is truncated to an integer, and polynomials of negative degree are 0. Above MOST_TERMS, where a recurrence would
 * take too long, the others are nan. */
#ifndef CYGRAD_POLYNOMIAL_FUNCTIONS_H
#define CYGRAD_POLYNOMIAL_FUNCTIONS_H

#include <float.h>
#include <math.h>
#include "simd/target_clones.h"

#define MOST_TERMS 1e7
enum { MOST_RECURSIONS = 8, POLYNOMIAL_BLOCK = 64 };

static inline double alternating(double n) {
    return fmod(n, 2) == 0 ? 1 : -1;
}

/* cos(n theta) with cos(theta) = x; outside of [-1, 1] with hyperbolic functions */
static double chebyshev_t(double x, double n) {
    n = trunc(n);
    if (n < 0) return 0;
    if (isnan(x) || isnan(n)) return NAN;
    if (fabs(x) <= 1) {
        if (n < 4) return n == 0 ? 1 : n == 1 ? x : n == 2 ? 2 * x * x - 1 : x * (4 * x * x - 3);
        return cos(n * acos(x));
    }
    return (x < 0 ? alternating(n) : 1) * cosh(n * acosh(fabs(x)));
}

/* sin((n + 1) theta) / sin(theta) */
static double chebyshev_u(double x, double n) {
    double angle, sign = x < 0 ? alternating(trunc(n)) : 1;
    n = trunc(n);
    if (n < 0) return 0;
    if (isnan(x) || isnan(n)) return NAN;
    if (fabs(x) == 1) return sign * (n + 1);
    if (n < 3) return n == 0 ? 1 : n == 1 ? 2 * x : 4 * x * x - 1;
    angle = fabs(x) < 1 ? acos(fabs(x)) : acosh(fabs(x));
    return sign * (fabs(x) < 1 ? sin((n + 1) * angle) / sin(angle) : sinh((n + 1) * angle) / sinh(angle));
}

static double chebyshev_w(double x, double n);

/* cos((n + 1/2) theta) / cos(theta / 2); for negative x that of the fourth kind */
static double chebyshev_v(double x, double n) {
    double angle;
    n = trunc(n);
    if (n < 0) return 0;
    if (isnan(x) || isnan(n)) return NAN;
    if (x < 0) return alternating(n) * chebyshev_w(-x, n);
    if (n < 2) return n == 0 ? 1 : 2 * x - 1;
    angle = x <= 1 ? acos(x) : acosh(x);
    return x <= 1 ? cos((n + 0.5) * angle) / cos(angle / 2) : cosh((n + 0.5) * angle) / cosh(angle / 2);
}

/* sin((n + 1/2) theta) / sin(theta / 2) */
static double chebyshev_w(double x, double n) {
    double angle;
    n = trunc(n);
    if (n < 0) return 0;
    if (isnan(x) || isnan(n)) return NAN;
    if (x < 0) return alternating(n) * chebyshev_v(-x, n);
    if (x == 1) return 2 * n + 1;
    if (n < 2) return n == 0 ? 1 : 2 * x + 1;
    angle = x < 1 ? acos(x) : acosh(x);
    return x < 1 ? sin((n + 0.5) * angle) / sin(angle / 2) : sinh((n + 0.5) * angle) / sinh(angle / 2);
}

typedef enum { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE_L, LEGENDRE_P } family_t;

typedef struct {
    family_t family;
    int shifted;                            /* of 2x - 1 */
    double (*function)(double x, double n); /* Chebyshev: for high degrees, and where the recurrence overflows */
} polynomial_t;

static const polynomial_t chebyshev_polynomials[2][4] = {
    {{CHEBYSHEV_T, 0, chebyshev_t}, {CHEBYSHEV_U, 0, chebyshev_u}, {CHEBYSHEV_V, 0, chebyshev_v},
     {CHEBYSHEV_W, 0, chebyshev_w}},
    {{CHEBYSHEV_T, 1, chebyshev_t}, {CHEBYSHEV_U, 1, chebyshev_u}, {CHEBYSHEV_V, 1, chebyshev_v},
     {CHEBYSHEV_W, 1, chebyshev_w}}};
static const polynomial_t other_polynomials[4] = {{HERMITE_H}, {HERMITE_HE}, {LAGUERRE_L}, {LEGENDRE_P}};

/* next = ((a x + b) last - c before) / divisor; non-finite values stay. -> whether there is a finite one */
TARGET_CLONES static int polynomial_step(const double *x, double *before, double *last, int count, double a, double b,
                                        double c, double divisor) {
    int finite = 0;
    for (int i = 0; i < count; i++) {
        const double now = last[i], next = (a * x[i] + b) * now - c * before[i];
        const int is_finite = fabs(now) <= DBL_MAX;
        last[i] = is_finite ? next : now;
        before[i] = now;
        finite |= is_finite;
    }
    if (divisor != 1)
        for (int i = 0; i < count; i++)
            last[i] /= divisor;
    return finite;
}

/* The polynomial of degree n of at most a block of elements, in place */
static void polynomial_block(const polynomial_t *f, double n, double *x, int count) {
    double before[POLYNOMIAL_BLOCK], last[POLYNOMIAL_BLOCK], terms = trunc(n);
    const int is_chebyshev = f->function != NULL;
    if (f->shifted)
        for (int i = 0; i < count; i++) x[i] = 2 * x[i] - 1;
    if (n <= -1 || !(n < (is_chebyshev ? MOST_RECURSIONS : MOST_TERMS))) {
        for (int i = 0; i < count; i++) x[i] = n <= -1 ? 0 : is_chebyshev ? f->function(x[i], n) : NAN;
        return;
    }
    for (int i = 0; i < count; i++) {
        before[i] = 0;
        last[i] = x[i] == x[i] ? 1 : x[i];
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
    for (int i = 0; i < count; i++)
        x[i] = is_chebyshev && !isfinite(last[i]) ? f->function(x[i], n) : last[i];
}

#endif
