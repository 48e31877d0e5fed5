// The formulas of polynomials, and the loops for the SIMD target of this processor.

#include "primitives/polynomial_functions.h"

#include <float.h>
#include <math.h>

#define MAX_TERMS 1e7
enum { MAX_RECURSIONS = 8 };

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

const polynomial_t chebyshev_polynomials[2][4] = {
    {{CHEBYSHEV_T, 0, chebyshev_t}, {CHEBYSHEV_U, 0, chebyshev_u}, {CHEBYSHEV_V, 0, chebyshev_v},
     {CHEBYSHEV_W, 0, chebyshev_w}},
    {{CHEBYSHEV_T, 1, chebyshev_t}, {CHEBYSHEV_U, 1, chebyshev_u}, {CHEBYSHEV_V, 1, chebyshev_v},
     {CHEBYSHEV_W, 1, chebyshev_w}}};
const polynomial_t other_polynomials[4] = {{HERMITE_H}, {HERMITE_HE}, {LAGUERRE_L}, {LEGENDRE_P}};

#define LOOPS "primitives/polynomial_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(polynomial_loop, loop);
