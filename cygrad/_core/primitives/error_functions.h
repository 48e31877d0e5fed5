/* Functions related to erf: scaled, and inverses. */
#ifndef CYGRAD_ERROR_FUNCTIONS_H
#define CYGRAD_ERROR_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "primitives/piecewise.h"

/* (1 + 2x) exp(x^2) erfc(x) over (x - 3.75) / (x + 3.75) for all x >= 0: Shepherd and Laframboise, "Chebyshev
 * approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < oo", Math. Comp. 36 (1981). */
static const double erfcx_table[] = {
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189, -0.026658668435305753,
    0.009074997670705265, -0.002413163540417608, 0.0004907758365258086, -6.916973302501207e-05,
    4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07, 1.076499946567091e-08,
    4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11, 2.86879501093067e-11,
    1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14, 3.3478119482868056e-14,
    -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17, 5.068148904796111e-17,
    -2.2370566594359995e-18, -2.187342944303018e-18};

/* The inverse of erf divided by its argument, over w = -log(1 - x^2) or its root s: the idea of Giles, "Approximating
 * the erfinv function" (2010). The segments are w in [0, 6.25], s in [2.5, 5], [5, 12], [12, 28]. */
static const double erfinv_center[] = {
    1.6304220989459326, 0.7315674456742257, -0.021235032142504585, -0.0065808875424494635,
    0.0019488711426908524, -0.00014158343386374536, -4.9292864636180004e-05, 1.4752887929042498e-05,
    -6.111918603258194e-07, -5.106997335480761e-07, 1.159027723297735e-07, 1.4907998843194937e-09,
    -5.244776785530681e-09, 8.51790549109762e-10, 7.917020592973908e-11, -5.0994281737154326e-11,
    5.436227530231317e-12, 1.292282189751795e-12, -4.656064719044143e-13, 2.4256976317675218e-14,
    1.6403697972051414e-14, -3.94956069090147e-15, -3.9036001761416307e-17, 1.83129083527959e-16,
    -3.03580260263594e-17, -2.8782301773959922e-18, 1.8669320251663633e-18};
static const double erfinv_middle[] = {
    3.589873468284028, 1.2581619425275905, 0.0026754912349427925, -0.001059945086856259, 0.0003398149627662873,
    -0.00011198635084359842, 3.5453759853208194e-05, -9.466529760735783e-06, 1.7602183618396285e-06,
    -6.762785767405099e-08, -9.777141218085717e-08, 4.17591053361793e-08, -8.54121750696627e-09,
    2.621949073294201e-10, 4.4048572640713687e-10, -1.5646474290437448e-10, 2.3558865287769338e-11,
    1.3841043661405717e-12, -1.6416939648926196e-12, 4.1251238960156225e-13, -4.123509003108701e-14,
    -7.199434934525332e-15, 4.037292927497676e-15, -9.093791826691453e-16, 1.0117523781898568e-16,
    1.1095483926117878e-17, -9.212667505813537e-18, 2.6546061894779694e-18};
static const double erfinv_far[] = {
    8.37816609669909, 3.525560159596656, -0.0026083311338715776, 0.00014977587764639905, 3.291805149723883e-05,
    -1.7917903169837948e-05, 5.695173381403962e-06, -1.5385299357145928e-06, 3.8362890316784026e-07,
    -9.111152867014995e-08, 2.092410407058294e-08, -4.685229073417968e-09, 1.0280464759728197e-09,
    -2.2183822541901215e-10, 4.724555030908635e-11, -9.993494349554996e-12, 2.1318903157681344e-12,
    -4.765351495946279e-13, 1.2061747450595288e-13, -3.793727316675608e-14, 1.5031362122475604e-14,
    -6.8714452011424956e-15, 3.2964471437873625e-15, -1.57231757668976e-15, 7.274164189371052e-16,
    -3.225094141372448e-16, 1.359316189189257e-16, -5.4022363560169184e-17, 2.0021951095983025e-17,
    -6.798387907318579e-18};
static const double erfinv_farthest[] = {
    19.925078201854834, 8.020180277604434, -0.0030494982026517104, 0.00047457794272801545,
    -7.371122017891508e-05, 1.115688568672662e-05, -1.5944620754892235e-06, 2.0180530704358228e-07,
    -1.8298196722728155e-08, -5.740242091404564e-10, 9.382979352665531e-10, -3.4947183623776985e-10,
    1.0193156849852368e-10, -2.676503297451799e-11, 6.628217019867557e-12, -1.5813100641077403e-12,
    3.676179088609102e-13, -8.385097074198394e-14, 1.8847955050870755e-14, -4.187587287678384e-15,
    9.215646152840853e-16, -2.0119693081978643e-16, 4.3626869600229855e-17};

/* exp(x^2): the square is taken apart, because the exponential turns its absolute error into a relative one */
static inline double exp_of_square(double x) {
    double high;
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(int64_t)0x7ffffff;                          /* 26 bits are left, so that the square is exact */
    memcpy(&high, &bits, sizeof high);
    return exp(high * high) * exp((x - high) * (x + high));
}

static int reduce_erfcx(double x, double *t, double *rest) {
    double a = fabs(x);
    *rest = x < 0 ? INFINITY : 0.5641895835477562869 / x;
    if (x < -26.7 || x > 1e17) return -1;
    *t = (a - 3.75) / (a + 3.75);
    return 0;
}

static double finish_erfcx(double x, double sum, double t, double rest, int segment) {
    double value = sum / (1 + 2 * fabs(x));
    return x < 0 ? 2 * exp_of_square(x) - value : value;
}

/* The segment of erfinv(x) / x for w = -log((1 - x)(1 + x)) */
static int reduce_inverse(double w, double *t) {
    double s;
    if (w <= 6.25) {
        *t = w / 3.125 - 1;
        return 0;
    }
    s = sqrt(w);
    *t = s <= 5 ? (s - 3.75) / 1.25 : s <= 12 ? (s - 8.5) / 3.5 : (s - 20) / 8;
    return s <= 5 ? 1 : s <= 12 ? 2 : 3;
}

/* The normal quantile: sqrt(2) erfinv(2p - 1), where 1 - (2p - 1)^2 = 4p(1 - p) loses nothing for small p */
static int reduce_ndtri(double p, double *t, double *rest) {
    double x = 2 * p - 1;
    *rest = p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    if (!(p > 0 && p < 1)) return -1;
    return reduce_inverse(fabs(x) < 0.5 ? -log1p(-x * x) : -log(p) - log(4 * (1 - p)), t);
}

static double finish_ndtri(double p, double sum, double t, double rest, int segment) {
    return 1.4142135623730950488 * (2 * p - 1) * sum;
}

static const piecewise_t scaled_erfc = {reduce_erfcx, finish_erfcx, {TABLE(erfcx_table)}};
static const piecewise_t inverse_normal = {reduce_ndtri, finish_ndtri,
    {TABLE(erfinv_center), TABLE(erfinv_middle), TABLE(erfinv_far), TABLE(erfinv_farthest)}};

#endif
