// The loops of tile_rows.h for the SIMD target of this processor.

#include "elementwise/tile_rows.h"
#include "simd/fetch.h"
#include "simd/shuffle.h"

#define LOOPS "elementwise/tile_row_loops.h"
#include "simd/dispatch.h"

int (*const nan_in_floats)(const float *, int64_t, int64_t) = DISPATCH(nan_in_reals<float>);
int (*const nan_in_doubles)(const double *, int64_t, int64_t) = DISPATCH(nan_in_reals<double>);
int (*const nan_in_shorts)(const uint16_t *, int64_t, int64_t, int) = DISPATCH(nan_in_halves);
int (*const repeat_rows)(char *, const char *, int64_t, int64_t, int64_t, int64_t, int64_t) = DISPATCH(rows_repeated);
