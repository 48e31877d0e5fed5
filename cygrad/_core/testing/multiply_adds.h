/* Fused multiply-adds of numbers in registers: the peak of this processor. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Multiply and add vectors in n rounds; return the number of elements. */
EXPORTED int64_t (*const most_multiply_adds[2])(int64_t n);
