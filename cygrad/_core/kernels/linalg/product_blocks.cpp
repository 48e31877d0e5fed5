// The loops of products in register blocks for the SIMD target of this processor.

#include "kernels/linalg/product_blocks.h"

#include "simd/word_moves.h"

#define LOOPS "kernels/linalg/product_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(correlate, correlate);
LOOP_TABLE(dots, dots);
LOOP_TABLE(multiply, multiply);
