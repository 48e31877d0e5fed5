/* Arguments of an optimizer step: options of a parameter group, and contiguous elements of a parameter. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Options of a parameter group. */
typedef struct {
    int kind;                  /* one of rule_kind_t */
    int maximize, nesterov, decoupled, amsgrad, centered;
    double rate, weight_decay, momentum, dampening, beta1, beta2, eps;
    double schedule[4];        /* computed by the function of the rule, see there */
} rule_t;

typedef enum {
    SGD_RULE, ADAM_RULE, NADAM_RULE, RADAM_RULE, ADAMAX_RULE,
    ADAGRAD_RULE, ADADELTA_RULE, RMSPROP_RULE, RPROP_RULE, ASGD_RULE
} rule_kind_t;

/* Contiguous elements of one parameter. */
typedef struct {
    char *memory[5];           /* parameter, gradient, then the state; NULL where there is none */
    int64_t n;
    int double_precision;
    int first;                 /* the state is uninitialized */
    double factor[3];          /* computed by the rule from the number of the step, see there */
} update_range_t;

enum { WITHOUT, FIRST, FIRST_NESTEROV, HEAVY_BALL, NESTEROV };      /* kinds of momentum */
enum { WITHOUT_DECAY, IN_GRADIENT, DECOUPLED };                     /* kinds of weight decay */

EXPORTED void apply_rule(const update_range_t *range, const rule_t *rule);
