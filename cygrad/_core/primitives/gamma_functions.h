/* Derivatives of the logarithm of gamma, remainders of Stirling's formula, Hurwitz's zeta function, incomplete gamma
 * functions. */
#ifndef CYGRAD_GAMMA_FUNCTIONS_H
#define CYGRAD_GAMMA_FUNCTIONS_H

#include <math.h>
#include "primitives/piecewise.h"

double lgamma_r(double x, int *sign);

/* digamma(x) / (x - its root) over [1, 2] */
static const double digamma_table[] = {
    0.983570260441567, -0.2270640863346444, 0.03336889902393011, -0.005320077271596548, 0.0008788656937820505,
    -0.00014773492650606044, 2.5060543468359146e-05, -4.2721034029993324e-06, 7.302769272465923e-07,
    -1.2502886813559594e-07, 2.1425009322359472e-08, -3.673295918565179e-09, 6.299717236108931e-10,
    -1.080593028883266e-10, 1.853735192053638e-11, -3.18023536582553e-12, 5.456147570322795e-13,
    -9.360993131036438e-14, 1.606064636295075e-14, -2.7555431377438815e-15, 4.727736178601912e-16,
    -8.11148420346509e-17, 1.391707769474154e-17, -2.3877901082188625e-18};
#define DIGAMMA_ROOT 1.4616321449683622
#define DIGAMMA_ROOT_REST 9.549995429965697e-17

/* From [1, 2] by recurrence (Abramowitz and Stegun 6.3.5), large ones by Stirling's series (6.3.18), negative ones by
 * reflection (6.3.7). */
static int reduce_digamma(double x, double *t, double *rest) {
    double sum = 0, z;
    *rest = x == 0 ? copysign(INFINITY, -x) : NAN;
    if (x <= 0) {
        double nearest = nearbyint(x);
        if (x == nearest) return -1;
        sum = -M_PI / tan(M_PI * (x - nearest));
        x = 1 - x;
    }
    if (x >= 10) {
        z = 1 / (x * x);
        *rest = isinf(x) ? x : sum + (log(x) - 0.5 / x - z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
            - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12 - z * 3617.0 / 8160))))))));
        return -1;
    }
    for (; x > 2; sum += 1 / x) x -= 1;
    if (x < 1) {
        sum -= 1 / x;
        x += 1;
    }
    *t = 2 * x - 3;
    *rest = sum;
    return 0;
}

static double finish_digamma(double x, double sum, double t, double rest, int segment) {
    return rest + (((t + 3) / 2 - DIGAMMA_ROOT) - DIGAMMA_ROOT_REST) * sum;
}

static const piecewise_t digamma_function = {reduce_digamma, finish_digamma, {TABLE(digamma_table)}};

/* Sum of (q + k)^-s over k >= 0, q > 0, s > 1, by the formula of Euler and Maclaurin: terms up to a large a, an
 * integral for the rest, and corrections with the Bernoulli numbers. */
static double hurwitz_zeta(double s, double q) {
    static const double bernoulli[] = {              /* B_2j / (2j)! */
        1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0,
        1.0 / 74724249600.0, -3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0,
        -174611.0 / 802857662698291200000.0};
    double a = q, sum = 0, term, factor;
    int j, k = 0;
    if (q > 1e17) return pow(q, 1 - s) / (s - 1);
    while (k < 10 || a < s / 3) {
        term = pow(a, -s);
        sum += term;
        if (term <= 1e-17 * sum || isinf(sum)) return sum;
        a += 1;
        k++;
    }
    term = pow(a, -s);
    sum += a * term / (s - 1) + term / 2;
    factor = s * term / a;
    for (j = 0; j < 10; j++) {
        term = bernoulli[j] * factor;
        sum += term;
        if (fabs(term) <= 1e-17 * fabs(sum)) break;
        factor *= (s + 2 * j + 1) / a * ((s + 2 * j + 2) / a);
    }
    return sum;
}

/* zeta(s, q); for negative q two sums, left and right of zero. */
static double zeta_function(double s, double q) {
    double first, sign;
    if (isnan(s) || isnan(q)) return s + q;
    if (s == 1) return INFINITY;
    if (s < 1) return NAN;
    if (q > 0) return hurwitz_zeta(s, q);
    if (q == floor(q)) return INFINITY;
    if (s != floor(s)) return NAN;
    first = -q - floor(-q);                          /* -q, -q - 1, ..., first */
    sign = fmod(s, 2) == 0 ? 1 : -1;
    /* Next to zero lie the largest terms on both sides, which may cancel: their difference comes first. */
    return (hurwitz_zeta(s, 1 - first) + sign * hurwitz_zeta(s, first)) - sign * hurwitz_zeta(s, 1 - q);
}

/* (-1)^(n+1) n! zeta(n + 1, x) (Abramowitz and Stegun 6.4.10); the first derivative by reflection (6.4.7) */
static double polygamma_function(double n, double x) {
    double sign = fmod(n, 2) == 0 ? -1 : 1, sum;
    int unused;
    if (n == 0) return piecewise_value(&digamma_function, x);
    if (n == 1 && x < 0 && x != floor(x)) {
        sum = M_PI / sin(M_PI * (x - nearbyint(x)));
        return sum * sum - hurwitz_zeta(2, 1 - x);
    }
    sum = zeta_function(n + 1, x);
    if (n <= 170) return sign * tgamma(n + 1) * sum;
    return sum > 0 ? sign * exp(lgamma_r(n + 1, &unused) + log(sum)) : sign * sum;
}

static double polygamma_1(double x) { return polygamma_function(1, x); }
static double polygamma_2(double x) { return polygamma_function(2, x); }
static double polygamma_3(double x) { return polygamma_function(3, x); }
static double polygamma_4(double x) { return polygamma_function(4, x); }

/* The reentrant variant: plain lgamma() writes a global. */
static double log_gamma(double x) {
    int unused;
    return lgamma_r(x, &unused);
}

/* ---- remainders of Stirling's formula */

/* The n-th derivative of lgamma(x) - x log(x) + x for x > 0. Its asymptotic series (Abramowitz and Stegun 6.1.41, 6.3.18,
 * 6.4.11) has none of the terms of x log(x) - x, so nothing cancels; below 10 it follows powers of x, x + 1, ... Beyond
 * n = 20, where sums underflow before results, nan. */
static double stirling_remainder(double n, double x) {
    static const double bernoulli[] = {              /* B_2j / (2j)! */
        1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0,
        1.0 / 74724249600.0, -3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0,
        -174611.0 / 802857662698291200000.0};
    double sign = n == 1 || (n > 2 && fmod(n, 2) != 0) ? -1 : 1, a = x, sum = 0, z, factor;
    int j;
    if (!(n >= 0 && n <= 20 && x >= 0)) return NAN;
    if (x == 0) return sign * INFINITY;
    if (n == 0 && x < 10) return log_gamma(x) - x * log(x) + x;
    if (n == 0) {
        z = 1 / (x * x);
        return 0.918938533204672741780 - 0.5 * log(x) + (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680
            - z * (1.0 / 1188 - z * (691.0 / 360360 - z * (1.0 / 156 - z * 3617.0 / 122400))))))) / x;
    }
    for (; a < 10 + n / 3; a += 1) sum += n == 1 ? 1 / a : n == 2 ? 1 / (a * a) : pow(a, -n);
    if (a != x) sum += n == 1 ? log(x / a) : (pow(a, 1 - n) - pow(x, 1 - n)) / (n - 1);
    z = 1 / a;
    factor = n == 1 ? z : n == 2 ? z * z : pow(a, -n);
    sum += factor / 2;
    factor *= n * z;
    for (j = 0; j < 10; j++) {
        double term = bernoulli[j] * factor;
        sum += term;
        if (!(fabs(term) > 1e-17 * fabs(sum))) break;
        factor *= (n + 2 * j + 1) * (n + 2 * j + 2) * (z * z);
    }
    return n > 2 ? sign * tgamma(n) * sum : sign * sum;
}

static double stirling_remainder_0(double x) { return stirling_remainder(0, x); }
static double stirling_remainder_1(double x) { return stirling_remainder(1, x); }
static double stirling_remainder_2(double x) { return stirling_remainder(2, x); }
static double stirling_remainder_3(double x) { return stirling_remainder(3, x); }
static double stirling_remainder_4(double x) { return stirling_remainder(4, x); }

/* Nodes and weights of Gauss and Legendre in [0, 1]: between numbers within a quarter the integrals below are exact. */
static const double legendre_nodes[] = {
    0.0254460438286207377, 0.12923440720030278, 0.297077424311301417, 0.5, 0.702922575688698583,
    0.87076559279969722, 0.974553956171379262};
static const double legendre_weights[] = {
    0.0647424830844348466, 0.139852695744638334, 0.190915025252559472, 0.208979591836734694,
    0.190915025252559472, 0.139852695744638334, 0.0647424830844348466};

static int near_each_other(double x, double y) { return fabs(y - x) < 0.25 * fmin(x, y); }

/* r(y) - r(x) - (y - x) r'(x) with the remainder r = stirling_remainder(0, .) */
static double gamma_divergence(double x, double y) {
    double apart = y - x, sum = 0;
    int i;
    if (!near_each_other(x, y))
        return stirling_remainder(0, y) - stirling_remainder(0, x) - apart * stirling_remainder(1, x);
    if (x > 1e100) return gamma_divergence(x * 1e-80, y * 1e-80);            /* a function of y / x, its squares in range */
    for (i = 0; i < 7; i++)
        sum += legendre_weights[i] * (1 - legendre_nodes[i]) * stirling_remainder(2, x + legendre_nodes[i] * apart);
    return apart * sum * apart;
}

/* r'(y) - r'(x) */
static double digamma_divergence(double x, double y) {
    double sum = 0;
    int i;
    if (!near_each_other(x, y)) return stirling_remainder(1, y) - stirling_remainder(1, x);
    for (i = 0; i < 7; i++) sum += legendre_weights[i] * stirling_remainder(2, x + legendre_nodes[i] * (y - x));
    return (y - x) * sum;
}

/* ---- incomplete gamma functions */

/* log(gamma(a + 1)) minus Stirling's formula, and a log(a/x) + x - a without cancellation: both of Loader, "Fast and
 * accurate computation of binomial probabilities" (2000). */
static double stirling_error(double a) {
    double z = 1 / (a * a);
    int unused;
    if (a < 16) return lgamma_r(a + 1, &unused) - (a + 0.5) * log(a) + a - 0.918938533204672741780;
    return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * 691.0 / 360360))))) / a;
}

static double deviance(double a, double x) {
    double d = (a - x) / (a + x), power, sum, next;
    int j;
    if (fabs(d) >= 0.1) return a * log(a / x) + x - a;
    sum = (a - x) * d;
    power = 2 * a * d;
    for (j = 1; j < 1000; j++) {
        power *= d * d;
        next = sum + power / (2 * j + 1);
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

/* x^a exp(-x) / gamma(a + 1); for a result that is rounded to float32 the plain formula is exact enough up to a = 16 */
static double gamma_density(double a, double x, double tolerance) {
    int unused;
    if (a < (tolerance > 1e-16 ? 16 : 1)) return exp(a * log(x) - x - lgamma_r(a + 1, &unused));
    return exp(-stirling_error(a) - deviance(a, x)) / sqrt(2 * M_PI * a);
}

/* Temme's uniform expansion for large a ("The asymptotic expansion of the incomplete gamma functions", 1979): the upper
 * tail, or the lower one. Its coefficients are series in eta, which is small wherever neither is 0. */
static double large_gamma(double a, double x, int upper) {
    double half = deviance(a, x);                    /* a eta^2 / 2 */
    double side = x < a ? -1 : 1, eta = side * sqrt(2 * half / a), value;
    if (half > 750) return upper == (x < a);         /* exp(-half) is 0, and powers of eta may overflow */
    double first = -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864 + eta * (1.0 / 2835))));
    double second = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378));
    double rest = exp(-half) / sqrt(2 * M_PI * a) * (first + second / a);
    value = upper ? 0.5 * erfc(side * sqrt(half)) + rest : 0.5 * erfc(-side * sqrt(half)) - rest;
    return value < 0 ? 0 : value;
}

/* The lower tail by its power series (Abramowitz and Stegun 6.5.29), four terms for each division */
static double gamma_series(double a, double x, double tolerance) {
    double term = 1, sum = 1;
    int k;
    for (k = 1; k < 200000; k += 4) {
        double first = a + k, second = first + 1, third = first + 2, fourth = first + 3;
        double part = term / (first * second * (third * fourth));
        sum += part * (x * (second * third * fourth + x * (third * fourth + x * (fourth + x))));
        term = part * (x * x * (x * x));
        if (term <= tolerance * sum) break;
    }
    return gamma_density(a, x, tolerance) * sum;
}

/* The upper tail by its continued fraction (6.5.31): recurrences of numerators and denominators, scaled every four
 * steps. */
static double gamma_fraction(double a, double x, double tolerance) {
    double b = x + 1 - a, numerator = 1, denominator = b, numerator_before = 0, denominator_before = 1;
    double value = 0, before, scale, density = gamma_density(a, x, tolerance) * a;
    int k = 0, j;
    if (density == 0) return 0;                      /* the recurrences may overflow */
    do {
        for (j = 0; j < 4; j++) {
            double n, next;
            k++;
            n = -k * (k - a);
            b += 2;
            next = b * numerator + n * numerator_before;
            numerator_before = numerator;
            numerator = next;
            next = b * denominator + n * denominator_before;
            denominator_before = denominator;
            denominator = next;
        }
        before = value;
        scale = 1 / (denominator == 0 ? 1e-300 : denominator);
        value = numerator *= scale;
        numerator_before *= scale;
        denominator_before *= scale;
        denominator *= scale;
    } while (fabs(value - before) > 10 * tolerance * fabs(value) && k < 200000);
    return density * value;
}

/* log(gamma(1 + a)) for small a by its Taylor series: -euler_gamma a + sum of zeta(k) (-a)^k / k */
static double log_gamma_above_one(double a) {
    static const double coefficients[] = {
        -0.57721566490153286, 0.82246703342411322, -0.40068563438653143, 0.27058080842778455, -0.20738555102867398,
        0.16955717699740819, -0.14404989676884612, 0.12550966952474304, -0.11133426586956469, 0.10009945751278181,
        -0.090954017145829042, 0.083353840546109005, -0.076932516411352193, 0.071432946295361336};
    double sum = 0;
    int k;
    for (k = 13; k >= 0; k--) sum = (sum + coefficients[k]) * a;
    return sum;
}

/* The upper tail for small a and x, of the order of a: with p = x^a / gamma(1 + a), 1 - p and p times the rest of the
 * series of the lower tail (DiDonato and Morris, "Computation of the incomplete gamma function ratios", 1986) */
static double small_gamma_upper(double a, double x) {
    double logarithm = a * log(x) - log_gamma_above_one(a), sum = 0, term = 1;
    int k;
    for (k = 1; k < 100 && fabs(term) > 1e-17 * fabs(sum); k++) {
        term *= -x / k;
        sum += term / (a + k);
    }
    return -expm1(logarithm) - exp(logarithm) * a * sum;
}

static double regularized_gamma(double a, double x, int upper, double tolerance) {
    double part;
    int lower_found;
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x))) return NAN;
    if (a == 0 || isinf(x)) return upper ? 0 : 1;
    if (x == 0 || isinf(a)) return upper ? 1 : 0;
    if (a >= 1e6) return large_gamma(a, x, upper);
    lower_found = x < a + 1 || (x < 1 && a < 1);
    if (lower_found && upper && a < 0.1) return small_gamma_upper(a, x);
    part = lower_found ? gamma_series(a, x, tolerance) : gamma_fraction(a, x, tolerance);
    return lower_found == !upper ? part : 1 - part;
}

static double gamma_lower(double a, double x) { return regularized_gamma(a, x, 0, 1e-17); }
static double gamma_upper(double a, double x) { return regularized_gamma(a, x, 1, 1e-17); }
/* Of float32: terms up to a relative error of 1e-13 */
static double gamma_lower_single(double a, double x) { return regularized_gamma(a, x, 0, 1e-14); }
static double gamma_upper_single(double a, double x) { return regularized_gamma(a, x, 1, 1e-14); }

#endif
