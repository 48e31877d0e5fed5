/* Update rules of the optimisers: their options, and the loops for the processor at hand. */
#pragma once

#include <math.h>
#include <stdint.h>

/* Options of a parameter group. */
typedef struct {
    int kind;                  /* one of rule_kind_t */
    int maximize, nesterov, decoupled;
    double rate, weight_decay, momentum, dampening, beta1, beta2, eps;
} rule_t;

typedef enum { SGD_RULE, ADAM_RULE } rule_kind_t;

/* Neighbouring elements of one parameter. */
typedef struct {
    char *memory[5];           /* parameter, gradient, then the state; NULL where there is none */
    int64_t n;
    int double_precision;
    int first;                 /* the state holds nothing yet */
    double step_size;          /* Adam: rate / bias correction */
    double inverse_root;       /* Adam: 1 / square root of the second bias correction */
} update_range_t;

enum { WITHOUT, FIRST, FIRST_NESTEROV, HEAVY_BALL, NESTEROV };      /* kinds of momentum */
enum { WITHOUT_DECAY, IN_GRADIENT, DECOUPLED };                     /* kinds of weight decay */

#define REAL float
#define SQRT sqrtf
#define NAME(function) function##_float
#include "optimise_loops.h"
#undef REAL
#undef SQRT
#undef NAME
#define REAL double
#define SQRT sqrt
#define NAME(function) function##_double
#include "optimise_loops.h"
#undef REAL
#undef SQRT
#undef NAME

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CYGRAD_OPTIMISE_AVX2
#pragma GCC push_options
#pragma GCC target("avx2")
#define REAL float
#define SQRT sqrtf
#define NAME(function) function##_float_avx2
#include "optimise_loops.h"
#undef REAL
#undef SQRT
#undef NAME
#define REAL double
#define SQRT sqrt
#define NAME(function) function##_double_avx2
#include "optimise_loops.h"
#undef REAL
#undef SQRT
#undef NAME
#pragma GCC pop_options
#endif

static void apply_rule(const update_range_t *range, const rule_t *rule) {
#ifdef CYGRAD_OPTIMISE_AVX2
    if (__builtin_cpu_supports("avx2")) {
        if (rule->kind == SGD_RULE)
            (range->double_precision ? sgd_double_avx2 : sgd_float_avx2)(range, rule);
        else
            (range->double_precision ? adam_double_avx2 : adam_float_avx2)(range, rule);
        return;
    }
#endif
    if (rule->kind == SGD_RULE)
        (range->double_precision ? sgd_double : sgd_float)(range, rule);
    else
        (range->double_precision ? adam_double : adam_float)(range, rule);
}
