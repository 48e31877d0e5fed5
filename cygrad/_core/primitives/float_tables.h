/* Functions of one float32, interpolated in double precision by polynomials of degree 6.
 *
 * Each octave of |x| has 16 or 64 segments of each sign, and what is smaller one segment. A segment is fitted to the function
 * of doubles when its first element is computed, and compared with that function between the nodes: where the relative
 * error exceeds 2^-32 (poles, fast oscillation) its elements are computed by the function itself, as are those beyond
 * the octaves. A segment with a zero of the function is fitted around the zero, so that its error is relative too. Results
 * are the function of doubles rounded to within 0.6 units in the last place, whatever was computed before and by
 * whichever thread.
 */
#pragma once

#include <stdint.h>
#include "primitives/piecewise.h"
#include "simd/exported.h"

enum { TABLE_OCTAVES = 20, TABLE_LOWEST = 127 - 12, TABLE_TERMS = 7, TABLE_SAMPLES = 17 };

typedef struct {
    double c[TABLE_TERMS];                  /* coefficients of the powers of x - center */
    double center;                          /* 0 until the segment is fitted */
} table_segment_t;

typedef struct {
    double (*function)(double);             /* or, if NULL, */
    const piecewise_t *piecewise;
    int bits;                               /* 4 or 6: of the mantissa, which number the segments of an octave */
    unsigned char states[2 * (64 * TABLE_OCTAVES + 1)];
#if defined(__GNUC__)
    __attribute__((aligned(64)))            /* one cache line each */
#endif
    table_segment_t segments[2 * (64 * TABLE_OCTAVES + 1)];
} float_table_t;

/* Compute n elements; steps in bytes. */
EXPORTED void (*const table_loop)(float_table_t *table, const char *x, int64_t x_step, char *out, int64_t out_step,
                                  int64_t n);

/* Compute f(y) - f(x), or f(y) - f(x) - (y - x) f'(x), of the function f of a table and n elements of two operands. */
EXPORTED void (*const table_differences[2])(float_table_t *table, double (*exact)(double, double),
                                            char **operands, const int64_t *steps, char *out, int64_t n);
