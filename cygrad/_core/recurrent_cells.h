/* Gates of recurrent cells for float32 and float64. */
#ifndef CYGRAD_RECURRENT_CELLS_H
#define CYGRAD_RECURRENT_CELLS_H

#include <stdint.h>
#include "each_cpu.h"

#define REAL float
#define NAME(function) function##_float
#include "recurrent_loops.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(function) function##_double
#include "recurrent_loops.h"
#undef REAL
#undef NAME

#endif
