/* Functions interpolated by Chebyshev polynomials, segment by segment. Such a function reduces its argument to a
 * position t in one of its segments, evaluates the polynomial of that segment, and undoes the reduction. Elements are
 * processed in blocks: where all are in one segment they are evaluated together in SIMD registers, with the same
 * operations in the same order as a single element, so that no element depends on its neighbors. All tables are
 * interpolations at Chebyshev nodes, computed with 45 digits. */
#ifndef CYGRAD_PIECEWISE_H
#define CYGRAD_PIECEWISE_H

#include <stdint.h>
#include "simd/exported.h"

#define PIECEWISE_BLOCK 64
#define TABLE(table) {table, sizeof(table) / sizeof(table[0])}

typedef struct {
    const double *coefficients;
    int n;
} table_t;

typedef struct {
    /* Return the segment, with -1 <= t <= 1 in it; or -1, with the value itself in rest. */
    int (*reduce)(double x, double *t, double *rest);
    double (*finish)(double x, double sum, double t, double rest, int segment);
    table_t tables[4];
} piecewise_t;

/* Sums of c[k] T_k(t) for each t. */
EXPORTED void (*const chebyshev_sums)(const double *c, int n, const double *t, double *sums, int count);

/* At most a block of elements; `out` may be `x`. */
static inline void piecewise_block(const piecewise_t *f, const double *x, double *out, int count) {
    double t[PIECEWISE_BLOCK], rest[PIECEWISE_BLOCK], sums[PIECEWISE_BLOCK];
    int segment[PIECEWISE_BLOCK], i, common = -1, mixed = 0;
    for (i = 0; i < count; i++) {
        t[i] = 0;
        segment[i] = f->reduce(x[i], &t[i], &rest[i]);
        if (segment[i] >= 0) {
            mixed |= common >= 0 && segment[i] != common;
            common = segment[i];
        }
    }
    if (mixed) {
        for (i = 0; i < count; i++)
            if (segment[i] >= 0)
                chebyshev_sums(f->tables[segment[i]].coefficients, f->tables[segment[i]].n, &t[i], &sums[i], 1);
    } else if (common >= 0) {
        chebyshev_sums(f->tables[common].coefficients, f->tables[common].n, t, sums, count);
    }
    for (i = 0; i < count; i++) out[i] = segment[i] < 0 ? rest[i] : f->finish(x[i], sums[i], t[i], rest[i], segment[i]);
}

static inline double piecewise_value(const piecewise_t *f, double x) {
    double value;
    piecewise_block(f, &x, &value, 1);
    return value;
}

#endif
