/* Return whether n numbers contain nan. Branch-free, with several sums for instruction-level parallelism. */
#ifndef CYGRAD_NAN_SCAN_H
#define CYGRAD_NAN_SCAN_H
#include <fenv.h>
#include <stdint.h>
#include "simd/target_clones.h"

#ifdef FE_INVALID
enum { CYGRAD_INVALID = FE_INVALID, has_status_flags = 1 };
#else
enum { CYGRAD_INVALID = 0, has_status_flags = 0 };
#endif

#define CYGRAD_SCAN(name, type, bits) \
    typedef type name##_numbers __attribute__((vector_size(64), aligned(4), may_alias)); \
    typedef bits name##_bits __attribute__((vector_size(64))); \
    TARGET_CLONES static int name(const type *x, int64_t n) { \
        enum { LANES = 64 / sizeof(type) }; \
        name##_bits a = {0}, b = {0}, c = {0}, d = {0}; \
        bits found = 0; \
        int64_t i = 0; \
        for (; i + 4 * LANES <= n; i += 4 * LANES) { \
            const name##_numbers *v = (const name##_numbers *)(x + i); \
            name##_numbers p = v[0], q = v[1], r = v[2], s = v[3]; \
            a |= p != p; \
            b |= q != q; \
            c |= r != r; \
            d |= s != s; \
        } \
        a |= b | c | d; \
        for (int k = 0; k < LANES; k++) found |= a[k]; \
        for (; i < n; i++) found |= x[i] != x[i]; \
        return found != 0; \
    } \
    static int name##_strided(const char *x, int64_t n, int64_t step) { \
        int found = 0; \
        for (int64_t i = 0; i < n; i++, x += step) { \
            type value = *(const type *)x; \
            found |= value != value; \
        } \
        return found; \
    }

/* 16-bit floats, with these exponent bits in inf and nan. */
static int nan_in_shorts(const char *x, int64_t n, int64_t step, int infinity) {
    int found = 0;
    for (int64_t i = 0; i < n; i++, x += step)
        found |= (*(const uint16_t *)x & 0x7fff) > infinity;
    return found;
}

CYGRAD_SCAN(nan_in_floats, float, int32_t)
CYGRAD_SCAN(nan_in_doubles, double, int64_t)
#endif
