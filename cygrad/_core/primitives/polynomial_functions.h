/* Classical orthogonal polynomials by their recurrences (Abramowitz and Stegun, chapter 22), vectorized over
 * elements of one degree; Chebyshev polynomials from degree MAX_RECURSIONS on by trigonometric formulas. The degree
 * is truncated to an integer, and polynomials of negative degree are 0. Above MAX_TERMS, where a recurrence would
 * take too long, the others are nan. */
#ifndef CYGRAD_POLYNOMIAL_FUNCTIONS_H
#define CYGRAD_POLYNOMIAL_FUNCTIONS_H

#include <float.h>
#include <math.h>
#define MAX_TERMS 1e7
enum { MAX_RECURSIONS = 8, POLYNOMIAL_BLOCK = 256 };

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

#define LOOPS "primitives/polynomial_loops.h"
#include "simd/targets.h"
#undef LOOPS

typedef void (*polynomial_loop_t)(const polynomial_t *f, double n, const void *x, void *out, int64_t count);
static const polynomial_loop_t polynomial_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(polynomial);

/* The polynomial of degree n of at most a block of neighbors */
static void polynomial_block(const polynomial_t *f, double n, const void *x, void *out, int count, int double_precision) {
    polynomial_loops[simd_target()][double_precision](f, n, x, out, count);
}

#endif
