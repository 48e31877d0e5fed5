// The loops of grid_sample for the SIMD target of this processor.

#include "kernels/nn/grid_sample.h"

/* Weights of the taps as polynomials of the distance from the tap at or before the position, constant term first. Cubic
   interpolation: Keys, 1981, with a = -0.75. */
static const double grid_polynomials[3][GRID_TAPS][4] = {
    {{1}},
    {{1, -1}, {0, 1}},
    {{0, -0.75, 1.5, -0.75}, {1, 0, -2.25, 1.25}, {0, 0.75, 1.5, -1.25}, {0, 0, -0.75, 0.75}},
};

#define LOOPS "kernels/nn/grid_sample_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(grid_taps, grid_taps);
LOOP_TABLE(grid_slopes, grid_slopes);
LOOP_TABLE(gather_weighted, gather_weighted);
LOOP_TABLE(scatter_weighted, scatter_weighted);
LOOP_TABLE(gather_products, gather_products);
