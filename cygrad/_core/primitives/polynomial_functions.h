/* Classical orthogonal polynomials, by trigonometric formulas or their recurrences (Abramowitz and Stegun, chapter 22).
 *
 * The degree is a number; its fraction is cut off, and the polynomials of negative degree are 0. Above MOST_TERMS, which a
 * recurrence would take too long for, the others are nan.
 */
#ifndef CYGRAD_POLYNOMIAL_FUNCTIONS_H
#define CYGRAD_POLYNOMIAL_FUNCTIONS_H

#include <math.h>

#define MOST_TERMS 1e7

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

static double shifted_chebyshev_t(double x, double n) { return chebyshev_t(2 * x - 1, n); }
static double shifted_chebyshev_u(double x, double n) { return chebyshev_u(2 * x - 1, n); }
static double shifted_chebyshev_v(double x, double n) { return chebyshev_v(2 * x - 1, n); }
static double shifted_chebyshev_w(double x, double n) { return chebyshev_w(2 * x - 1, n); }

/* p[k + 1] = 2 x p[k] - 2 k p[k - 1] */
static double hermite_h(double x, double n) {
    double before = 0, last = 1, next, k;
    if (n <= -1) return 0;
    if (isnan(x) || !(n < MOST_TERMS)) return NAN;
    for (k = 0; k < trunc(n); k++) {
        next = 2 * (x * last - k * before);
        before = last;
        last = next;
        if (!isfinite(last)) break;
    }
    return last;
}

/* p[k + 1] = x p[k] - k p[k - 1] */
static double hermite_he(double x, double n) {
    double before = 0, last = 1, next, k;
    if (n <= -1) return 0;
    if (isnan(x) || !(n < MOST_TERMS)) return NAN;
    for (k = 0; k < trunc(n); k++) {
        next = x * last - k * before;
        before = last;
        last = next;
        if (!isfinite(last)) break;
    }
    return last;
}

/* (k + 1) p[k + 1] = (2 k + 1 - x) p[k] - k p[k - 1] */
static double laguerre_l(double x, double n) {
    double before = 0, last = 1, next, k;
    if (n <= -1) return 0;
    if (isnan(x) || !(n < MOST_TERMS)) return NAN;
    for (k = 0; k < trunc(n); k++) {
        next = ((2 * k + 1 - x) * last - k * before) / (k + 1);
        before = last;
        last = next;
        if (!isfinite(last)) break;
    }
    return last;
}

/* (k + 1) p[k + 1] = (2 k + 1) x p[k] - k p[k - 1] */
static double legendre_p(double x, double n) {
    double before = 0, last = 1, next, k;
    if (n <= -1) return 0;
    if (isnan(x) || !(n < MOST_TERMS)) return NAN;
    for (k = 0; k < trunc(n); k++) {
        next = ((2 * k + 1) * x * last - k * before) / (k + 1);
        before = last;
        last = next;
        if (!isfinite(last)) break;
    }
    return last;
}

#endif
