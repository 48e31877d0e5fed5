// The reduction loops of float.

#include "kernels/reduction/elements.h"

#define LOOPS "kernels/reduction/loops.h"
#include "simd/dispatch.h"

loops_t float_loops(int operation) { return DISPATCH(real<float>(operation)); }
