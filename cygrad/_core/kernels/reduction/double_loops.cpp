// The reduction loops of double.

#include "kernels/reduction/elements.h"

#define LOOPS "kernels/reduction/loops.h"
#include "simd/dispatch.h"

loops_t double_loops(int operation) { return DISPATCH(real<double>(operation)); }
