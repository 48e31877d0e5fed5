/* The loops of power_loops.h for the SIMD target. */
#ifndef CYGRAD_POWER_TABLE_H
#define CYGRAD_POWER_TABLE_H

#define LOOPS "primitives/power_loops.h"
#include "simd/targets.h"
#undef LOOPS

typedef int (*power_loop_t)(const void *x, double exponent, void *out, int64_t n);
typedef void (*signed_power_t)(const void *x, const void *exponent, int64_t step, void *out, int64_t n);
static const power_loop_t power_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(power_loop);
static const signed_power_t signed_powers[SIMD_TARGETS][2] = SIMD_VARIANTS(signed_power);

static power_loop_t power_loop_of(int double_precision) { return power_loops[simd_target()][double_precision]; }
static signed_power_t signed_power_of(int double_precision) { return signed_powers[simd_target()][double_precision]; }
#endif
