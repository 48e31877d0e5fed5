/* Gradients of elements that share memory. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Divide each of n floating or complex numbers by the number of elements that share its memory, if it is more than 1. */
EXPORTED void divide_by_counts(int dtype, void *values, const int64_t *counts, int64_t n);
