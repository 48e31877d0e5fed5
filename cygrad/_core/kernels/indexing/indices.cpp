// The loops over indices for the SIMD target of this processor.

#include "kernels/indexing/indices.h"

#define LOOPS "kernels/indexing/index_loops.h"
#include "simd/dispatch.h"

int (*const within)(const int64_t *, int64_t, int64_t, int64_t) = DISPATCH(indices_within);
int (*const scale_indices)(const int64_t *, int64_t *, int64_t, int64_t, int64_t, int64_t) = DISPATCH(indices_scaled);
