/* Update rules of the optimizers: the loops for the processor at hand. */
#pragma once

#include "optimizers/optimize_options.h"

#define SQRT(x) __builtin_choose_expr(DOUBLE, sqrt(x), sqrtf(x))
#define ABS(x) __builtin_choose_expr(DOUBLE, fabs(x), fabsf(x))
#define LOOPS "optimizers/optimize_loops.h"
#include "simd/each_set.h"
#undef LOOPS
#undef SQRT
#undef ABS

static void apply_rule(const update_range_t *range, const rule_t *rule) {
    typedef void (*apply_t)(const update_range_t *range, const rule_t *rule);
    /* In the order of rule_kind_t. */
    static const apply_t rules[][SETS][2] = {
        VARIANTS(sgd), VARIANTS(adam), VARIANTS(nadam), VARIANTS(radam), VARIANTS(adamax), VARIANTS(adagrad),
        VARIANTS(adadelta), VARIANTS(rmsprop), VARIANTS(rprop), VARIANTS(asgd) };
    rules[rule->kind][instruction_set()][range->double_precision != 0](range, rule);
}
