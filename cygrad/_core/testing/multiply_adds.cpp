// The loop of multiply-adds for the SIMD target of this processor.

#include "testing/multiply_adds.h"

#define LOOPS "testing/multiply_add_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(most_multiply_adds, multiply_adds);
