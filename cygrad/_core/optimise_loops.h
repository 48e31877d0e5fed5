/* The arithmetic of the optimisers for one type and one instruction set, one pass over memory. The includer
   defines REAL, SQRT and NAME(function). Each condition of a rule is constant where the rule is inlined, so that
   every variant is a loop without branches, which the compiler turns into vector instructions. */

static inline __attribute__((always_inline)) void NAME(sgd_variant)(
        REAL *p, const REAL *g, REAL *buffer, int64_t n, const rule_t *rule,
        const int decays, const int momentum_kind) {
    const REAL rate = (REAL)-rule->rate, sign = rule->maximize ? -1 : 1, decay = (REAL)rule->weight_decay;
    const REAL momentum = (REAL)rule->momentum, fresh_part = (REAL)(1 - rule->dampening);
    for (int64_t i = 0; i < n; i++) {
        REAL direction = sign * g[i];
        if (decays)
            direction += decay * p[i];
        if (momentum_kind != WITHOUT) {
            REAL velocity = momentum_kind == FIRST || momentum_kind == FIRST_NESTEROV
                ? direction : momentum * buffer[i] + fresh_part * direction;
            buffer[i] = velocity;
            direction = momentum_kind == NESTEROV || momentum_kind == FIRST_NESTEROV
                ? direction + momentum * velocity : velocity;
        }
        p[i] += rate * direction;
    }
}

static void NAME(sgd)(const update_range_t *range, const rule_t *rule) {
    REAL *p = (REAL *)range->memory[0], *buffer = (REAL *)range->memory[2];
    const REAL *g = (const REAL *)range->memory[1];
    const int kind = rule->momentum == 0 ? WITHOUT
        : range->first ? (rule->nesterov ? FIRST_NESTEROV : FIRST) : (rule->nesterov ? NESTEROV : HEAVY_BALL);
    const int64_t n = range->n;
#define VARIANT(momentum_kind) \
    case momentum_kind: \
        if (rule->weight_decay != 0) NAME(sgd_variant)(p, g, buffer, n, rule, 1, momentum_kind); \
        else NAME(sgd_variant)(p, g, buffer, n, rule, 0, momentum_kind); \
        break;
    switch (kind) {
        VARIANT(WITHOUT) VARIANT(FIRST) VARIANT(FIRST_NESTEROV) VARIANT(HEAVY_BALL) VARIANT(NESTEROV)
    }
#undef VARIANT
}

static inline __attribute__((always_inline)) void NAME(adam_variant)(
        REAL *p, const REAL *g, REAL *mean, REAL *square, REAL *largest, int64_t n, const rule_t *rule,
        double step_size, double inverse_root, const int decay_kind, const int amsgrad) {
    const REAL sign = rule->maximize ? -1 : 1, decay = (REAL)rule->weight_decay;
    const REAL shrink = (REAL)(1 - rule->rate * rule->weight_decay);
    const REAL rate = (REAL)-step_size, second_correction = (REAL)inverse_root, eps = (REAL)rule->eps;
    const REAL weight1 = (REAL)(1 - rule->beta1), beta1 = (REAL)rule->beta1;
    const REAL weight2 = (REAL)(1 - rule->beta2), beta2 = (REAL)rule->beta2;
    /* Interpolation starts at the nearer end: less is lost to rounding. */
    const int near_mean = rule->beta1 > 0.5;
    for (int64_t i = 0; i < n; i++) {
        REAL value = p[i], direction = sign * g[i];
        if (decay_kind == DECOUPLED)
            value *= shrink;
        if (decay_kind == IN_GRADIENT)
            direction += decay * value;
        REAL m = mean[i], difference = direction - m;
        m = near_mean ? m + weight1 * difference : direction - beta1 * difference;
        REAL v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        if (amsgrad) {
            REAL before = largest[i];
            v = before > v || before != before ? before : v;      /* nan stays nan */
            largest[i] = v;
        }
        p[i] = value + rate * (m / (SQRT(v) * second_correction + eps));
    }
}

static void NAME(adam)(const update_range_t *range, const rule_t *rule) {
    REAL *p = (REAL *)range->memory[0], *mean = (REAL *)range->memory[2];
    REAL *square = (REAL *)range->memory[3], *largest = (REAL *)range->memory[4];
    const REAL *g = (const REAL *)range->memory[1];
    const int kind = rule->weight_decay == 0 ? WITHOUT_DECAY : rule->decoupled ? DECOUPLED : IN_GRADIENT;
#define VARIANT(decay_kind) \
    case decay_kind: \
        if (largest) \
            NAME(adam_variant)(p, g, mean, square, largest, range->n, rule, range->step_size, range->inverse_root, \
                               decay_kind, 1); \
        else \
            NAME(adam_variant)(p, g, mean, square, NULL, range->n, rule, range->step_size, range->inverse_root, \
                               decay_kind, 0); \
        break;
    switch (kind) {
        VARIANT(WITHOUT_DECAY) VARIANT(IN_GRADIENT) VARIANT(DECOUPLED)
    }
#undef VARIANT
}
