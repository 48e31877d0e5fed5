/* The Airy function Ai and its derivative.
 *
 * Both solve y'' = x y, so their Taylor series around a point follows from their values there. Those are tabulated
 * (computed by mpmath with 45 digits) for the integers up to 10; from there on the asymptotic series are exact
 * (Abramowitz and Stegun, 10.4.59 to 10.4.62).
 */
#ifndef CYGRAD_AIRY_FUNCTION_H
#define CYGRAD_AIRY_FUNCTION_H

#include <math.h>

enum { AIRY_LAST = 10, AIRY_TERMS = 28, AIRY_FAR_TERMS = 14 };

/* Ai and Ai' at -10, -9, ..., 10 */
static const double airy_table[2 * AIRY_LAST + 1][2] = {
    {0.04024123848644319, 0.99626504413279}, {-0.022133721547341403, -0.9756639809263316},
    {-0.0527050503563862, 0.9355609381983065}, {0.18428083525050565, -0.7710081684101265},
    {-0.3291451736298231, 0.3459354872813429}, {0.35076100902411433, 0.32719281855444315},
    {-0.07026553294928951, -0.7906285753685813}, {-0.37881429367765806, 0.3145837692165988},
    {0.22740742820168558, 0.618259020741691}, {0.5355608832923521, -0.01016056711664521},
    {0.3550280538878172, -0.2588194037928068}, {0.13529241631288141, -0.1591474412967932},
    {0.03492413042327438, -0.05309038443365363}, {0.006591139357460719, -0.011912976705951319},
    {0.0009515638512048018, -0.001958640950204179}, {0.00010834442813607442, -0.0002474138908684625},
    {9.947694360252889e-06, -2.4765200397034955e-05}, {7.492128863997167e-07, -2.008150894738792e-06},
    {4.6922076160992316e-08, -1.3414392979067865e-07}, {2.47116843087249e-09, -7.480641389658946e-09},
    {1.1047532552898686e-10, -3.5206336767389237e-10}};

static double airy_near(double x, int derivative) {
    int n, k = (int)lrint(x);
    double h = x - k, power = 1, sum = 0, before = 0;      /* coefficients a[n-1], a[n], a[n+1] of the series */
    double now = airy_table[k + AIRY_LAST][0], next = airy_table[k + AIRY_LAST][1];
    for (n = 0; n < AIRY_TERMS; n++) {
        double after = (k * now + before) / ((n + 1.0) * (n + 2.0));
        sum += power * (derivative ? (n + 1) * next : now);
        power *= h;
        before = now;
        now = next;
        next = after;
    }
    return sum;
}

static double airy_far(double x, int derivative) {
    static const double pi = 3.14159265358979323846;
    double r = fabs(x), zeta = 2.0 / 3.0 * r * sqrt(r), root = sqrt(sqrt(r));
    double scale = (derivative ? root : 1 / root) / sqrt(pi), u = 1, even = 0, odd = 0, power = 1;
    int k;
    if (isinf(x)) return x > 0 || !derivative ? 0 : NAN;
    for (k = 0; k < AIRY_FAR_TERMS; k++) {
        double term = power * (derivative ? -u * (6 * k + 1) / (6 * k - 1) : u);
        double sign = x > 0 ? (k % 2 ? -1 : 1) : (k / 2 % 2 ? -1 : 1);
        if (k % 2) odd += sign * term;
        else even += sign * term;
        power /= zeta;
        u *= (6 * k + 5.0) * (6 * k + 3.0) * (6 * k + 1.0) / (216.0 * (k + 1) * (2 * k + 1));
    }
    if (x > 0) return (derivative ? -0.5 : 0.5) * scale * exp(-zeta) * (even + odd);
    zeta += pi / 4;
    return derivative ? -scale * (cos(zeta) * even + sin(zeta) * odd) : scale * (sin(zeta) * even - cos(zeta) * odd);
}

static double airy_ai(double x) {
    return fabs(x) < AIRY_LAST + 0.5 ? airy_near(x, 0) : airy_far(x, 0);
}

static double airy_ai_slope(double x) {
    return fabs(x) < AIRY_LAST + 0.5 ? airy_near(x, 1) : airy_far(x, 1);
}

#endif
