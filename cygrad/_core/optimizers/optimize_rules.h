/* Update rules of the optimizers: the loops for the processor at hand. */
#pragma once

#include <math.h>
#include <stdint.h>
#include "optimizers/optimize_options.h"

#define REAL float
#define SQRT sqrtf
#define ABS fabsf
#define NAME(function) function##_float
#include "optimizers/optimize_loops.h"
#include "optimizers/optimize_scales.h"
#undef REAL
#undef SQRT
#undef ABS
#undef NAME
#define REAL double
#define SQRT sqrt
#define ABS fabs
#define NAME(function) function##_double
#include "optimizers/optimize_loops.h"
#include "optimizers/optimize_scales.h"
#undef REAL
#undef SQRT
#undef ABS
#undef NAME

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CYGRAD_OPTIMISE_AVX2
#pragma GCC push_options
#pragma GCC target("avx2")
#define REAL float
#define SQRT sqrtf
#define ABS fabsf
#define NAME(function) function##_float_avx2
#include "optimizers/optimize_loops.h"
#include "optimizers/optimize_scales.h"
#undef REAL
#undef SQRT
#undef ABS
#undef NAME
#define REAL double
#define SQRT sqrt
#define ABS fabs
#define NAME(function) function##_double_avx2
#include "optimizers/optimize_loops.h"
#include "optimizers/optimize_scales.h"
#undef REAL
#undef SQRT
#undef ABS
#undef NAME
#pragma GCC pop_options
#endif

/* The loops of all rules, in the order of rule_kind_t. */
#define ALL_RULES(suffix) { \
    sgd##suffix, adam##suffix, nadam##suffix, radam##suffix, adamax##suffix, adagrad##suffix, adadelta##suffix, \
    rmsprop##suffix, rprop##suffix, asgd##suffix }

static void apply_rule(const update_range_t *range, const rule_t *rule) {
    static void (*const plain[2][10])(const update_range_t *, const rule_t *) = {
        ALL_RULES(_float), ALL_RULES(_double) };
#ifdef CYGRAD_OPTIMISE_AVX2
    static void (*const wide[2][10])(const update_range_t *, const rule_t *) = {
        ALL_RULES(_float_avx2), ALL_RULES(_double_avx2) };
    if (__builtin_cpu_supports("avx2")) {
        wide[range->double_precision != 0][rule->kind](range, rule);
        return;
    }
#endif
    plain[range->double_precision != 0][rule->kind](range, rule);
}
