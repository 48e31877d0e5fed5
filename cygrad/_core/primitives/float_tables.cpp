// Tables of functions of float32, and the loop over them for the SIMD target of this processor.

#include "primitives/float_tables.h"

#include <math.h>
#include <string.h>

enum { SEGMENT_EMPTY, SEGMENT_CLAIMED, SEGMENT_REFUSED };

static double table_exact(const float_table_t *table, double x) {
    return table->function ? table->function(x) : piecewise_value(table->piecewise, x);
}

/* Evaluate a segment; `multiply_add` rounds once or twice. */
#define TABLE_VALUE(multiply_add, c, t)                                                                               \
    multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(multiply_add(                                    \
        c[6], t, c[5]), t, c[4]), t, c[3]), t, c[2]), t, c[1]), t, c[0])
#define ROUNDED_TWICE(a, b, c) ((a) * (b) + (c))

/* Interpolate between `low` and `high`; -> whether the segment is accurate. */
static int fit_segment(const float_table_t *table, double low, double high, table_segment_t *segment) {
    const double middle = (low + high) / 2, half = (high - low) / 2;
    double f_low = table_exact(table, low), f_high = table_exact(table, high), center = middle;
    double t[TABLE_TERMS], d[TABLE_TERMS];
    int zero = f_low == 0 || f_high == 0 || (f_low < 0) != (f_high < 0), terms = TABLE_TERMS - zero;
    int undefined = 0;
    for (int i = 0; i < TABLE_SAMPLES; i++)
        undefined += isnan(table_exact(table, low + (high - low) * i / (TABLE_SAMPLES - 1)));
    if (undefined == TABLE_SAMPLES) {
        segment->center = middle;
        for (int i = 0; i < TABLE_TERMS; i++)
            segment->c[i] = NAN;
        return 1;
    }
    if (!isfinite(f_low) || !isfinite(f_high))
        return 0;
    if (zero) {
        double a = low, b = high;
        center = f_low == 0 ? low : f_high == 0 ? high : middle;
        while (f_low != 0 && f_high != 0 && center > fmin(a, b) && center < fmax(a, b)) {
            *((table_exact(table, center) < 0) == (f_low < 0) ? &a : &b) = center;
            center = (a + b) / 2;
        }
    }
    for (int i = 0; i < terms; i++) {                       /* Newton's divided differences */
        const double x = middle + half * cos(M_PI * (i + 0.5) / terms);
        t[i] = x - center;
        d[i] = table_exact(table, x) / (zero ? t[i] : 1);
    }
    for (int k = 1; k < terms; k++)
        for (int i = terms - 1; i >= k; i--)
            d[i] = (d[i] - d[i - 1]) / (t[i] - t[i - k]);
    memset(segment->c, 0, sizeof segment->c);
    for (int i = terms - 1; i >= 0; i--) {                  /* their polynomial, multiplied by t if there is a zero */
        double *c = segment->c + zero;
        for (int k = terms - 1; k > 0; k--)
            c[k] = c[k - 1] - t[i] * c[k];
        c[0] = d[i] - t[i] * c[0];
    }
    segment->center = center;
    if (center == 0)
        return 0;
    for (int i = 0; i < TABLE_SAMPLES; i++) {
        const double x = low + (high - low) * i / (TABLE_SAMPLES - 1), value = table_exact(table, x);
        if (!(fabs(TABLE_VALUE(ROUNDED_TWICE, segment->c, (x - center)) - value) <= 0x1p-32 * fabs(value)))
            return 0;
    }
    return 1;
}

/* Return the segment of this index, fitted if it was not, maybe into `own`; NULL if it is refused. */
static const table_segment_t *find_segment(float_table_t *table, int index, table_segment_t *own) {
    const int sign = index & 1 ? -1 : 1, place = (index >> 1) - 1, segments = 1 << table->bits;
    const double scale = ldexp(sign, place / segments + TABLE_LOWEST - 127), low = 1 + (double)(place % segments) / segments;
    const double start = place < 0 ? 0 : scale * low, stop = place < 0 ? scale : scale * (low + 1.0 / segments);
    unsigned char state = SEGMENT_EMPTY;
    if (__atomic_load_n(&table->states[index], __ATOMIC_RELAXED) == SEGMENT_REFUSED)
        return NULL;
    if (!fit_segment(table, start, stop, own)) {
        __atomic_store_n(&table->states[index], SEGMENT_REFUSED, __ATOMIC_RELAXED);
        return NULL;
    }
    if (__atomic_compare_exchange_n(&table->states[index], &state, SEGMENT_CLAIMED, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        memcpy(table->segments[index].c, own->c, sizeof own->c);
        __atomic_store(&table->segments[index].center, &own->center, __ATOMIC_RELEASE);
    }
    return own;
}

#define LOOPS "primitives/float_table_loops.h"
#include "simd/dispatch.h"

void (*const table_loop)(float_table_t *, const char *, int64_t, char *, int64_t, int64_t) = DISPATCH(table_loop);

void (*const table_differences[2])(float_table_t *, double (*)(double, double), char **, const int64_t *, char *,
                                   int64_t) = {DISPATCH(table_difference<1>), DISPATCH(table_difference<2>)};
