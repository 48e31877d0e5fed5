// The loops of small products for the SIMD target of this processor.

#include "kernels/linalg/small_products.h"

#define LOOPS "kernels/linalg/small_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(small_product, small_product);
LOOP_TABLE(outer_product, outer_product);
