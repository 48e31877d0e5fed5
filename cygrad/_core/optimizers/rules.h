/* Update rules of the optimizers, dispatched on the SIMD target. */
#pragma once

#include "optimizers/options.h"

#define SQRT(x) __builtin_choose_expr(DOUBLE, sqrt(x), sqrtf(x))
#define ABS(x) ((REAL)fabs(x))
#define LOOPS "optimizers/loops.h"
#include "simd/targets.h"
#undef LOOPS
#undef SQRT
#undef ABS

static void apply_rule(const update_range_t *range, const rule_t *rule) {
    typedef void (*apply_t)(const update_range_t *range, const rule_t *rule);
    /* In the order of rule_kind_t. */
    static const apply_t rules[][SIMD_TARGETS][2] = {
        SIMD_VARIANTS(sgd), SIMD_VARIANTS(adam), SIMD_VARIANTS(nadam), SIMD_VARIANTS(radam), SIMD_VARIANTS(adamax), SIMD_VARIANTS(adagrad),
        SIMD_VARIANTS(adadelta), SIMD_VARIANTS(rmsprop), SIMD_VARIANTS(rprop), SIMD_VARIANTS(asgd) };
    rules[rule->kind][simd_target()][range->double_precision != 0](range, rule);
}
