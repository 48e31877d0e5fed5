/* Update rules of the optimizers, in one pass over memory; see options.h. Each condition of a rule is constant where
   the rule is inlined, so that every variant is a loop without branches, which the compiler vectorizes. */

/* The gradient with its sign and, for coupled weight decay, the decay term. */
template <class T> INLINE T direction_of(T gradient, T value, T sign, T decay, const int decay_kind) {
    T direction = sign * gradient;
    return decay_kind == IN_GRADIENT ? direction + decay * value : direction;
}

/* The running mean with a new value of weight `weight`. Interpolation starts at the nearer end, for accuracy. */
template <class T> INLINE T mixed(T mean, T value, T weight, T rest, const int near_mean) {
    T difference = value - mean;
    return near_mean ? mean + weight * difference : value - rest * difference;
}

template <class T> INLINE void sgd_variant(
        T *p, const T *g, T *buffer, int64_t n, const rule_t *rule,
        const int decays, const int momentum_kind) {
    const T rate = (T)-rule->rate, sign = rule->maximize ? -1 : 1, decay = (T)rule->weight_decay;
    const T momentum = (T)rule->momentum, fresh_part = (T)(1 - rule->dampening);
    for (int64_t i = 0; i < n; i++) {
        T direction = sign * g[i];
        if (decays)
            direction += decay * p[i];
        if (momentum_kind != WITHOUT) {
            T velocity = momentum_kind == FIRST || momentum_kind == FIRST_NESTEROV
                ? direction : momentum * buffer[i] + fresh_part * direction;
            buffer[i] = velocity;
            direction = momentum_kind == NESTEROV || momentum_kind == FIRST_NESTEROV
                ? direction + momentum * velocity : velocity;
        }
        p[i] += rate * direction;
    }
}

template <class T> static void sgd(const update_range_t *range, const rule_t *rule) {
    T *p = (T *)range->memory[0], *buffer = (T *)range->memory[2];
    const T *g = (const T *)range->memory[1];
    const int kind = rule->momentum == 0 ? WITHOUT
        : range->first ? (rule->nesterov ? FIRST_NESTEROV : FIRST) : (rule->nesterov ? NESTEROV : HEAVY_BALL);
    const int64_t n = range->n;
#define VARIANT(momentum_kind) \
    case momentum_kind: \
        if (rule->weight_decay != 0) sgd_variant<T>(p, g, buffer, n, rule, 1, momentum_kind); \
        else sgd_variant<T>(p, g, buffer, n, rule, 0, momentum_kind); \
        break;
    switch (kind) {
        VARIANT(WITHOUT) VARIANT(FIRST) VARIANT(FIRST_NESTEROV) VARIANT(HEAVY_BALL) VARIANT(NESTEROV)
    }
#undef VARIANT
}

#define MOMENT_OPTIONS \
    const T sign = rule->maximize ? -1 : 1, decay = (T)rule->weight_decay; \
    const T shrink = (T)(1 - rule->rate * rule->weight_decay), eps = (T)rule->eps; \
    const T weight1 = (T)(1 - rule->beta1), beta1 = (T)rule->beta1, beta2 = (T)rule->beta2; \
    const int near_mean = rule->beta1 > 0.5;

/* One function for each kind of weight decay. */
#define EACH_DECAY(function, ...) \
    switch (rule->weight_decay == 0 ? WITHOUT_DECAY : rule->decoupled ? DECOUPLED : IN_GRADIENT) { \
        case WITHOUT_DECAY: function<T>(__VA_ARGS__, WITHOUT_DECAY); break; \
        case IN_GRADIENT: function<T>(__VA_ARGS__, IN_GRADIENT); break; \
        default: function<T>(__VA_ARGS__, DECOUPLED); \
    }

template <class T> INLINE void adam_variant(const update_range_t *range, const rule_t *rule, const int amsgrad,
                                             const int decay_kind) {
    MOMENT_OPTIONS
    T *p = (T *)range->memory[0], *mean = (T *)range->memory[2], *square = (T *)range->memory[3];
    T *largest = (T *)range->memory[4];
    const T *g = (const T *)range->memory[1];
    const T weight2 = (T)(1 - rule->beta2), rate = (T)-range->factor[0], second_correction = (T)range->factor[1];
    for (int64_t i = 0; i < range->n; i++) {
        T value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        T direction = direction_of<T>(g[i], value, sign, decay, decay_kind);
        T m = mixed<T>(mean[i], direction, weight1, beta1, near_mean);
        T v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        if (amsgrad) {
            T before = largest[i];
            v = before > v || before != before ? before : v;      /* nan stays nan */
            largest[i] = v;
        }
        p[i] = value + rate * (m / (sqrt(v) * second_correction + eps));
    }
}

/* Factors: rate / first correction, 1 / root of the second. */
template <class T> static void adam(const update_range_t *range, const rule_t *rule) {
    if (range->memory[4])
        EACH_DECAY(adam_variant, range, rule, 1)
    else
        EACH_DECAY(adam_variant, range, rule, 0)
}

template <class T> INLINE void nadam_variant(const update_range_t *range, const rule_t *rule, const int decay_kind) {
    MOMENT_OPTIONS
    T *p = (T *)range->memory[0], *mean = (T *)range->memory[2], *square = (T *)range->memory[3];
    const T *g = (const T *)range->memory[1];
    const T weight2 = (T)(1 - rule->beta2), of_gradient = (T)range->factor[0];
    const T of_mean = (T)range->factor[1], correction = (T)range->factor[2];
    for (int64_t i = 0; i < range->n; i++) {
        T value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        T direction = direction_of<T>(g[i], value, sign, decay, decay_kind);
        T m = mixed<T>(mean[i], direction, weight1, beta1, near_mean);
        T v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        T denominator = sqrt(v / correction) + eps;
        p[i] = value + of_gradient * (direction / denominator) + of_mean * (m / denominator);
    }
}

/* Factors: those of the gradient and of the mean, second correction. */
template <class T> static void nadam(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(nadam_variant, range, rule)
}

template <class T> INLINE void radam_variant(
        const update_range_t *range, const rule_t *rule, const int rectified, const int decay_kind) {
    MOMENT_OPTIONS
    T *p = (T *)range->memory[0], *mean = (T *)range->memory[2], *square = (T *)range->memory[3];
    const T *g = (const T *)range->memory[1];
    const T weight2 = (T)(1 - rule->beta2), rate = (T)-range->factor[0], scale = (T)range->factor[1];
    for (int64_t i = 0; i < range->n; i++) {
        T value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        T direction = direction_of<T>(g[i], value, sign, decay, decay_kind);
        T m = mixed<T>(mean[i], direction, weight1, beta1, near_mean);
        T v = beta2 * square[i] + weight2 * direction * direction;
        mean[i] = m;
        square[i] = v;
        p[i] = value + rate * m * (rectified ? scale / (sqrt(v) + eps) : 1);
    }
}

/* Factors: rate / first correction, and rectification times root of the second correction (0: not yet). */
template <class T> static void radam(const update_range_t *range, const rule_t *rule) {
    if (range->factor[1] != 0)
        EACH_DECAY(radam_variant, range, rule, 1)
    else
        EACH_DECAY(radam_variant, range, rule, 0)
}

template <class T> INLINE void adamax_variant(const update_range_t *range, const rule_t *rule, const int decay_kind) {
    MOMENT_OPTIONS
    T *p = (T *)range->memory[0], *mean = (T *)range->memory[2], *largest = (T *)range->memory[3];
    const T *g = (const T *)range->memory[1];
    const T rate = (T)-range->factor[0];
    for (int64_t i = 0; i < range->n; i++) {
        T value = decay_kind == DECOUPLED ? p[i] * shrink : p[i];
        T direction = direction_of<T>(g[i], value, sign, decay, decay_kind);
        T m = mixed<T>(mean[i], direction, weight1, beta1, near_mean);
        T before = beta2 * largest[i], size = fabs(direction) + eps;
        size = before > size || before != before ? before : size;      /* nan stays nan */
        mean[i] = m;
        largest[i] = size;
        p[i] = value + rate * (m / size);
    }
}

/* Factor: rate / first correction. */
template <class T> static void adamax(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adamax_variant, range, rule)
}

#undef MOMENT_OPTIONS

/* Optimizers that scale each element by its own history. */

#define SCALE_OPTIONS \
    T *p = (T *)range->memory[0]; \
    const T *g = (const T *)range->memory[1]; \
    const T sign = rule->maximize ? -1 : 1, decay = (T)rule->weight_decay;

template <class T> INLINE void adagrad_variant(const update_range_t *range, const rule_t *rule, const int decay_kind) {
    SCALE_OPTIONS
    T *sum = (T *)range->memory[2];
    const T rate = (T)-range->factor[0], eps = (T)rule->eps;
    for (int64_t i = 0; i < range->n; i++) {
        T direction = direction_of<T>(g[i], p[i], sign, decay, decay_kind);
        T s = sum[i] + direction * direction;
        sum[i] = s;
        p[i] += rate * (direction / (sqrt(s) + eps));
    }
}

/* Factor: the current rate. */
template <class T> static void adagrad(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adagrad_variant, range, rule)
}

template <class T> INLINE void adadelta_variant(const update_range_t *range, const rule_t *rule, const int decay_kind) {
    SCALE_OPTIONS
    T *square = (T *)range->memory[2], *moved = (T *)range->memory[3];
    const T rate = (T)-rule->rate, eps = (T)rule->eps;
    const T keep = (T)rule->beta1, fresh = (T)(1 - rule->beta1);
    for (int64_t i = 0; i < range->n; i++) {
        T direction = direction_of<T>(g[i], p[i], sign, decay, decay_kind);
        T v = keep * square[i] + fresh * direction * direction;
        T change = sqrt(moved[i] + eps) / sqrt(v + eps) * direction;
        square[i] = v;
        moved[i] = keep * moved[i] + fresh * change * change;
        p[i] += rate * change;
    }
}

template <class T> static void adadelta(const update_range_t *range, const rule_t *rule) {
    EACH_DECAY(adadelta_variant, range, rule)
}

template <class T> INLINE void rmsprop_variant(
        const update_range_t *range, const rule_t *rule, const int centered, const int with_momentum,
        const int decay_kind) {
    SCALE_OPTIONS
    T *square = (T *)range->memory[2], *velocity = (T *)range->memory[3], *mean = (T *)range->memory[4];
    const T rate = (T)-rule->rate, eps = (T)rule->eps, momentum = (T)rule->momentum;
    const T keep = (T)rule->beta1, fresh = (T)(1 - rule->beta1);
    const int near_mean = rule->beta1 > 0.5;
    for (int64_t i = 0; i < range->n; i++) {
        T direction = direction_of<T>(g[i], p[i], sign, decay, decay_kind);
        T v = keep * square[i] + fresh * direction * direction;
        square[i] = v;
        if (centered) {
            T m = mixed<T>(mean[i], direction, fresh, keep, near_mean);
            mean[i] = m;
            v -= m * m;
        }
        T change = direction / (sqrt(v) + eps);
        if (with_momentum) {
            change += momentum * velocity[i];
            velocity[i] = change;
        }
        p[i] += rate * change;
    }
}

template <class T> static void rmsprop(const update_range_t *range, const rule_t *rule) {
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
template <class T> static void rprop(const update_range_t *range, const rule_t *rule) {
    SCALE_OPTIONS
    T *previous = (T *)range->memory[2], *step = (T *)range->memory[3];
    const T shrink = (T)rule->beta1, grow = (T)rule->beta2;
    const T least = (T)rule->dampening, most = (T)rule->momentum;
    (void)decay;
    for (int64_t i = 0; i < range->n; i++) {
        T gradient = sign * g[i], product = gradient * previous[i];
        T factor = product > 0 ? grow : product < 0 ? shrink : 1;
        T size = step[i] * factor;
        size = size < least ? least : size;                            /* nan stays nan */
        size = size > most ? most : size;
        gradient = factor == shrink ? 0 : gradient;
        T side = (T)((gradient > 0) - (gradient < 0));
        step[i] = size;
        previous[i] = gradient;
        p[i] -= side * size;
    }
}

template <class T> INLINE void asgd_variant(
        const update_range_t *range, const rule_t *rule, const int averaging, const int decay_kind) {
    SCALE_OPTIONS
    T *average = (T *)range->memory[2];
    const T eta = (T)-range->factor[0], shrink = (T)range->factor[1], share = (T)range->factor[2];
    for (int64_t i = 0; i < range->n; i++) {
        T value = p[i] * shrink + eta * direction_of<T>(g[i], p[i], sign, decay, decay_kind);
        p[i] = value;
        average[i] = averaging ? average[i] + (value - average[i]) * share : value;
    }
}

/* Factors: the current rate, what the decay term leaves, weight of the new value in the average (1: it is the
 * value). */
template <class T> static void asgd(const update_range_t *range, const rule_t *rule) {
    if (range->factor[2] != 1)
        EACH_DECAY(asgd_variant, range, rule, 1)
    else
        EACH_DECAY(asgd_variant, range, rule, 0)
}
