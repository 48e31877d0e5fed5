// The loops of distances for the SIMD target of this processor.

#include "kernels/linalg/distances.h"

#define LOOPS "kernels/linalg/distance_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(distances_of, distances_of);
LOOP_TABLE(distance_gradient, distance_gradient);
LOOP_TABLE(mirror_triangle, mirror);
