// The loops of comparisons for the SIMD target of this processor.

#include "kernels/reduction/differences.h"

#define LOOPS "kernels/reduction/difference_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(numbers_differ, differ);
