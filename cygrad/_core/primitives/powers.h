/* Powers of contiguous elements; see power_loops.h. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Compute with one exponent; return whether the loop supports it. `out` may be x. */
typedef int (*power_loop_t)(const void *x, double exponent, void *out, int64_t n);
/* Turn the powers of |x| in `out` into those of x; `step` is that of the exponents. */
typedef void (*signed_power_t)(const void *x, const void *exponent, int64_t step, void *out, int64_t n);

EXPORTED const power_loop_t power_loop[2];
EXPORTED const signed_power_t signed_power[2];
