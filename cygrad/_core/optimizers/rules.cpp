// Update rules of the optimizers for the SIMD target of this processor.

#include "optimizers/options.h"

#define LOOPS "optimizers/loops.h"
#include "simd/dispatch.h"

typedef void (*rule_loop_t)(const update_range_t *range, const rule_t *rule);

#define RULE(function) FOR_FLOAT_AND_DOUBLE(rule_loop_t, function)

// In the order of rule_kind_t.
static const rule_loop_t rules[][2] = {RULE(sgd), RULE(adam), RULE(nadam), RULE(radam), RULE(adamax), RULE(adagrad),
                                       RULE(adadelta), RULE(rmsprop), RULE(rprop), RULE(asgd)};

void apply_rule(const update_range_t *range, const rule_t *rule) {
    rules[rule->kind][range->double_precision != 0](range, rule);
}
