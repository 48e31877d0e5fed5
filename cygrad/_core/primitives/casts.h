/* Casts between any two dtypes, as inner loops: cast_table[from][to]; on the diagonal they copy.
 *
 * The floating types of 16 bits go by way of float: numbers are rounded to it first, then to 16 bits, as PyTorch does.
 * Complex to real keeps the real part, floating to integer cuts off the fraction, by way of int64, so that it wraps
 * around, and anything to bool asks "!= 0". */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

EXPORTED void (*cast_table[16][16])(char **arguments, const int64_t *n, const int64_t *steps, void *data);
