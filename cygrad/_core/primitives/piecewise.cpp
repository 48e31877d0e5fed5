// The sums of piecewise.h for the SIMD target of this processor.

#include "primitives/piecewise.h"

#define LOOPS "primitives/chebyshev_sums.h"
#include "simd/dispatch.h"

void (*const chebyshev_sums)(const double *, int, const double *, double *, int) = DISPATCH(chebyshev_sums_of);
