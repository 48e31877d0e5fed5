/* Classical orthogonal polynomials by their recurrences (Abramowitz and Stegun, chapter 22), vectorized over
 * elements of one degree; Chebyshev polynomials from degree MAX_RECURSIONS on by trigonometric formulas. The degree
 * is truncated to an integer, and polynomials of negative degree are 0. Above MAX_TERMS, where a recurrence would
 * take too long, the others are nan. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

enum { POLYNOMIAL_BLOCK = 256 };

typedef enum { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE_L, LEGENDRE_P } family_t;

typedef struct {
    family_t family;
    int shifted;                            /* of 2x - 1 */
    double (*function)(double x, double n); /* Chebyshev: for high degrees, and where the recurrence overflows */
} polynomial_t;

/* Unshifted and shifted, of the first to fourth kind; and those of the other families. */
EXPORTED const polynomial_t chebyshev_polynomials[2][4];
EXPORTED const polynomial_t other_polynomials[4];

/* A loop of a primitive over elements and degrees; neighbors of one degree are computed together. */
EXPORTED void (*const polynomial_loop[2])(char **arguments, const int64_t *n, const int64_t *steps,
                                          const polynomial_t *polynomial);
