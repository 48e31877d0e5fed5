// The loops of embedding_bag for the SIMD target of this processor.

#include "kernels/indexing/embedding_bag.h"
#include "simd/fetch.h"

#define LOOPS "kernels/indexing/embedding_bag_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(bag_sum, bag_sum);
LOOP_TABLE(bag_spread, bag_spread);
LOOP_TABLE(bag_products, bag_products);
LOOP_TABLE(bag_maximum, bag_maximum);
