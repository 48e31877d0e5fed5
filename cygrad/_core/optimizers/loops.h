/* Gradient descent and the family of Adam, for one type and one instruction set, one pass over memory. The includer
   defines SQRT and ABS, simd/targets.h the rest. Each condition of a rule is constant where the rule is inlined, so that
   every variant is a loop without branches, which the compiler turns into vector instructions. */

/* The gradient with its sign and, for coupled weight decay, the decay term. */
static inline __attribute__((always_inline)) REAL NAME(direction_of)(
        REAL gradient, REAL value, REAL sign, REAL decay, const int decay_kind) {
    REAL direction = sign * gradient;
    return decay_kind == IN_GRADIENT ? direction + decay * value : direction;
}

/* The running mean with a new value of weight `weight`. Interpolation starts at the nearer end, for accuracy. */
static inline __attribute__((always_inline)) REAL NAME(mixed)(
        REAL mean, REAL value, REAL weight, REAL rest, const int near_mean) {
    REAL difference = value - mean;
    return near_mean ? mean + weight * difference : value - rest * difference;
}

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

#define MOMENT_OPTIONS \
    const REAL sign = rule->maximize ? -1 : 1, decay = (REAL)rule->weight_decay; \
    const REAL shrink = (REAL)(1 - rule->rate * rule->weight_decay), eps = (REAL)rule->eps; \
    const REAL weight1 = (REAL)(1 - rule->beta1), beta1 = (REAL)rule->beta1, beta2 = (REAL)rule->beta2; \
    const int near_mean = rule->beta1 > 0.5;

/* One function for each kind of weight decay. */
#define EACH_DECAY(function, ...) \
    switch (rule->weight_decay == 0 ? WITHOUT_DECAY : rule->decoupled ? DECOUPLED : IN_GRADIENT) { \
        case WITHOUT_DECAY: NAME(function)(__VA_ARGS__, WITHOUT_DECAY); break; \
        case IN_GRADIENT: NAME(function)(__VA_ARGS__, IN_GRADIENT); break; \
        default: NAME(function)(__VA_ARGS__, DECOUPLED); \
    }

static inline __attribute__((always_inline)) void NAME(adam_variant)(
        REAL *p, const REAL *g, REAL *mean, REAL *square, REAL *largest, int64_t n, const rule_t *rule,
        double step_size, double inverse_root, const int amsgrad, const int decay_kind) {
    MOMENT_OPTIONS
    const REAL weight2 = (REAL)(1 - rule->beta2), rate = (REAL)-step_size, second_correction = (REAL)inverse_root;
    for (int64_t i = 0; i < n; i++) {
        REAL value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        REAL direction = NAME(direction_of)(g[i], value, sign, decay, decay_kind);
        REAL m = NAME(mixed)(mean[i], direction, weight1, beta1, near_mean);
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

/* Factors: rate / first correction, 1 / root of the second. */
static void NAME(adam)(const update_range_t *range, const rule_t *rule) {
    REAL *p = (REAL *)range->memory[0], *mean = (REAL *)range->memory[2];
    REAL *square = (REAL *)range->memory[3], *largest = (REAL *)range->memory[4];
    const REAL *g = (const REAL *)range->memory[1];
    if (largest)
        EACH_DECAY(adam_variant, p, g, mean, square, largest, range->n, rule, range->factor[0], range->factor[1], 1)
    else
        EACH_DECAY(adam_variant, p, g, mean, square, NULL, range->n, rule, range->factor[0], range->factor[1], 0)
}

static inline __attribute__((always_inline)) void NAME(nadam_variant)(
        const update_range_t *range, const rule_t *rule, const int decay_kind) {
    MOMENT_OPTIONS
    REAL *p = (REAL *)range->memory[0], *mean = (REAL *)range->memory[2], *square = (REAL *)range->memory[3];
    const REAL *g = (const REAL *)range->memory[1];
    const REAL weight2 = (REAL)(1 - rule->beta2), of_gradient = (REAL)range->factor[0];
    const REAL of_mean = (REAL)range->factor[1], correction = (REAL)range->factor[2];
    for (int64_t i = 0; i < range->n; i++) {
        REAL value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        REAL direction = NAME(direction_of)(g[i], value, sign, decay, decay_kind);
        REAL m = NAME(mixed)(mean[i], direction, weight1, beta1, near_mean);
        REAL v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        REAL denominator = SQRT(v / correction) + eps;
        p[i] = value + of_gradient * (direction / denominator) + of_mean * (m / denominator);
    }
}

/* Factors: those of the gradient and of the mean, second correction. */
static void NAME(nadam)(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(nadam_variant, range, rule)
}

static inline __attribute__((always_inline)) void NAME(radam_variant)(
        const update_range_t *range, const rule_t *rule, const int rectified, const int decay_kind) {
    MOMENT_OPTIONS
    REAL *p = (REAL *)range->memory[0], *mean = (REAL *)range->memory[2], *square = (REAL *)range->memory[3];
    const REAL *g = (const REAL *)range->memory[1];
    const REAL weight2 = (REAL)(1 - rule->beta2), rate = (REAL)-range->factor[0], scale = (REAL)range->factor[1];
    for (int64_t i = 0; i < range->n; i++) {
        REAL value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        REAL direction = NAME(direction_of)(g[i], value, sign, decay, decay_kind);
        REAL m = NAME(mixed)(mean[i], direction, weight1, beta1, near_mean);
        REAL v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        p[i] = value + rate * m * (rectified ? scale / (SQRT(v) + eps) : 1);
    }
}

/* Factors: rate / first correction, and rectification times root of the second correction (0: not yet). */
static void NAME(radam)(const update_range_t *range, const rule_t *rule) {
    if (range->factor[1] != 0)
        EACH_DECAY(radam_variant, range, rule, 1)
    else
        EACH_DECAY(radam_variant, range, rule, 0)
}

static inline __attribute__((always_inline)) void NAME(adamax_variant)(
        const update_range_t *range, const rule_t *rule, const int decay_kind) {
    MOMENT_OPTIONS
    REAL *p = (REAL *)range->memory[0], *mean = (REAL *)range->memory[2], *largest = (REAL *)range->memory[3];
    const REAL *g = (const REAL *)range->memory[1];
    const REAL rate = (REAL)-range->factor[0];
    for (int64_t i = 0; i < range->n; i++) {
        REAL value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        REAL direction = NAME(direction_of)(g[i], value, sign, decay, decay_kind);
        REAL m = NAME(mixed)(mean[i], direction, weight1, beta1, near_mean);
        REAL before = beta2 * largest[i], size = ABS(direction) + eps;
        size = before > size || before != before ? before : size;      /* nan stays nan */
        mean[i] = m;
        largest[i] = size;
        p[i] = value + rate * (m / size);
    }
}

/* Factor: rate / first correction. */
static void NAME(adamax)(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adamax_variant, range, rule)
}

#undef MOMENT_OPTIONS

#include "optimizers/scales.h"
