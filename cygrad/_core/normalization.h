/* Normalisation of channels by their mean and deviation, for float32 and float64. */
#ifndef CYGRAD_NORMALIZATION_H
#define CYGRAD_NORMALIZATION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "each_cpu.h"

enum { LANES = 16, BLOCK = 4096 };

typedef struct {
    int64_t outer, channels, inner;
    int by_channel;                  /* weight and bias: one for each channel, or one for each of `inner` */
    double eps;
} channels_t;

#define REAL float
#define NAME(function) function##_float
#include "normalization_loops.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(function) function##_double
#include "normalization_loops.h"
#undef REAL
#undef NAME

#endif
