// The loops of small factors for the SIMD target of this processor.

#include "kernels/linalg/small_factors.h"

#define LOOPS "kernels/linalg/small_factor_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(small_getrf, small_getrf);
LOOP_TABLE(small_getrs, small_getrs);
