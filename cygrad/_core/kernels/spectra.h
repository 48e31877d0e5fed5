/* Loops over complex spectra along one dimension of contiguous arrays: `outer` blocks of n lines of `inner` numbers. For
 * float32 and float64 parts. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Fill the second half of the spectrum of real numbers with the conjugates of the first. The backward transform is the
 * conjugate of the forward one. */
EXPORTED void (*const complete_spectrum[2])(void *data, int64_t outer, int64_t n, int64_t inner, int forward);
/* Multiply lines 1 to `end` of each block. */
EXPORTED void (*const weigh_spectrum[2])(void *data, int64_t outer, int64_t n, int64_t inner, int64_t end, double factor);
