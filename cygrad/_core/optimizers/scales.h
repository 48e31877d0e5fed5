/* Optimizers that scale each element by its own history, for one type and one instruction set; part of
   loops.h. */

#define SCALE_OPTIONS \
    REAL *p = (REAL *)range->memory[0]; \
    const REAL *g = (const REAL *)range->memory[1]; \
    const REAL sign = rule->maximize ? -1 : 1, decay = (REAL)rule->weight_decay;

static inline __attribute__((always_inline)) void NAME(adagrad_variant)(
        const update_range_t *range, const rule_t *rule, const int decay_kind) {
    SCALE_OPTIONS
    REAL *sum = (REAL *)range->memory[2];
    const REAL rate = (REAL)-range->factor[0], eps = (REAL)rule->eps;
    for (int64_t i = 0; i < range->n; i++) {
        REAL direction = NAME(direction_of)(g[i], p[i], sign, decay, decay_kind);
        REAL s = sum[i] + direction * direction;
        sum[i] = s;
        p[i] += rate * (direction / (SQRT(s) + eps));
    }
}

/* Factor: the current rate. */
static void NAME(adagrad)(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adagrad_variant, range, rule)
}

static inline __attribute__((always_inline)) void NAME(adadelta_variant)(
        const update_range_t *range, const rule_t *rule, const int decay_kind) {
    SCALE_OPTIONS
    REAL *square = (REAL *)range->memory[2], *moved = (REAL *)range->memory[3];
    const REAL rate = (REAL)-rule->rate, eps = (REAL)rule->eps;
    const REAL keep = (REAL)rule->beta1, fresh = (REAL)(1 - rule->beta1);
    for (int64_t i = 0; i < range->n; i++) {
        REAL direction = NAME(direction_of)(g[i], p[i], sign, decay, decay_kind);
        REAL v = keep * square[i] + fresh * direction * direction;
        REAL change = SQRT(moved[i] + eps) / SQRT(v + eps) * direction;
        square[i] = v;
        moved[i] = keep * moved[i] + fresh * change * change;
        p[i] += rate * change;
    }
}

static void NAME(adadelta)(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adadelta_variant, range, rule)
}

static inline __attribute__((always_inline)) void NAME(rmsprop_variant)(
        const update_range_t *range, const rule_t *rule, const int centered, const int with_momentum,
        const int decay_kind) {
    SCALE_OPTIONS
    REAL *square = (REAL *)range->memory[2], *velocity = (REAL *)range->memory[3], *mean = (REAL *)range->memory[4];
    const REAL rate = (REAL)-rule->rate, eps = (REAL)rule->eps, momentum = (REAL)rule->momentum;
    const REAL keep = (REAL)rule->beta1, fresh = (REAL)(1 - rule->beta1);
    const int near_mean = rule->beta1 > 0.5;
    for (int64_t i = 0; i < range->n; i++) {
        REAL direction = NAME(direction_of)(g[i], p[i], sign, decay, decay_kind);
        REAL v = keep * square[i] + fresh * direction * direction;
        square[i] = v;
        if (centered) {
            REAL m = NAME(mixed)(mean[i], direction, fresh, keep, near_mean);
            mean[i] = m;
            v -= m * m;
        }
        REAL change = direction / (SQRT(v) + eps);
        if (with_momentum) {
            change += momentum * velocity[i];
            velocity[i] = change;
        }
        p[i] += rate * change;
    }
}

static void NAME(rmsprop)(const update_range_t *range, const rule_t *rule) {
    const int centered = range->memory[4] != NULL, with_momentum = range->memory[3] != NULL;
    if (centered && with_momentum)
        EACH_DECAY(rmsprop_variant, range, rule, 1, 1)
    else if (centered)
        EACH_DECAY(rmsprop_variant, range, rule, 1, 0)
    else if (with_momentum)
        EACH_DECAY(rmsprop_variant, range, rule, 0, 1)
    else
        EACH_DECAY(rmsprop_variant, range, rule, 0, 0)
}

/* beta1 and beta2 are the factors by which a step shrinks and grows, dampening and momentum its bounds. */
static void NAME(rprop)(const update_range_t *range, const rule_t *rule) {
    SCALE_OPTIONS
    REAL *previous = (REAL *)range->memory[2], *step = (REAL *)range->memory[3];
    const REAL shrink = (REAL)rule->beta1, grow = (REAL)rule->beta2;
    const REAL least = (REAL)rule->dampening, most = (REAL)rule->momentum;
    (void)decay;
    for (int64_t i = 0; i < range->n; i++) {
        REAL gradient = sign * g[i], product = gradient * previous[i];
        REAL factor = product > 0 ? grow : product < 0 ? shrink : 1;
        REAL size = step[i] * factor;
        size = size < least ? least : size;                            /* nan stays nan */
        size = size > most ? most : size;
        gradient = factor == shrink ? 0 : gradient;
        REAL side = (REAL)((gradient > 0) - (gradient < 0));
        step[i] = size;
        previous[i] = gradient;
        p[i] -= side * size;
    }
}

static inline __attribute__((always_inline)) void NAME(asgd_variant)(
        const update_range_t *range, const rule_t *rule, const int averaging, const int decay_kind) {
    SCALE_OPTIONS
    REAL *average = (REAL *)range->memory[2];
    const REAL eta = (REAL)-range->factor[0], shrink = (REAL)range->factor[1], share = (REAL)range->factor[2];
    for (int64_t i = 0; i < range->n; i++) {
        REAL value = p[i] * shrink + eta * NAME(direction_of)(g[i], p[i], sign, decay, decay_kind);
        p[i] = value;
        average[i] = averaging ? average[i] + (value - average[i]) * share : value;
    }
}

/* Factors: the current rate, what the decay term leaves, weight of the new value in the average (1: it is the
 * value). */
static void NAME(asgd)(const update_range_t *range, const rule_t *rule) {
    if (range->factor[2] != 1)
        EACH_DECAY(asgd_variant, range, rule, 1)
    else
        EACH_DECAY(asgd_variant, range, rule, 0)
}

#undef SCALE_OPTIONS
#undef EACH_DECAY
