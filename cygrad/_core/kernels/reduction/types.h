// C interface of the reduction loops.
#pragma once

#include <stdint.h>
#include "simd/exported.h"
#include "kernels/reduction/operations.h"

// Inner loop like NumPy's: pointers (inputs, then output), strides in bytes.
typedef void (*vector_loop_t)(char **arguments, const int64_t *n, const int64_t *steps, void *data);

// Parameters of the loops.
typedef struct {
    double p;              // order of the norm
    double count;          // number of elements reduced into one result
    double correction;     // count - correction divides the sum of squares
    vector_loop_t exp;     // exponential of contiguous elements
    void *exp_data;
    int far;               // the elements exceed the caches: prefetch
} parameter_t;

// Reduce `n` elements at `stride` for each of `width` columns at `column_stride` (in elements) into
// accumulators[width]. `columns`: iterate over columns in the inner loop.
typedef void (*leaf_t)(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                       int columns, char *accumulators, const parameter_t *parameter);
// Part of a leaf by columns, bit-identical to the whole: add `n` rows of `width` contiguous elements, `stride` apart,
// to `tile`, memory for TILE partial results. `begin`: initialize it; `end`: store the accumulators. All parts except
// the last have a multiple of four rows. Not for leaves with FOLDS().
typedef void (*row_leaf_t)(const char *data, int64_t n, int64_t stride, int64_t width, int begin, int end, char *tile,
                           char *accumulators, const parameter_t *parameter);
// Combine accumulators[width] of `n_left` elements each with `other`, those of the `n_right` elements after them.
typedef void (*combine_t)(char *accumulators, const char *other, int64_t width,
                          int64_t n_left, int64_t n_right);
// Results from accumulators; `second` only for reductions with two results.
typedef void (*finish_t)(const char *accumulators, int64_t width, char *result, char *second, int64_t stride,
                         const parameter_t *parameter);

typedef struct {
    leaf_t leaf;           // NULL: there is no such reduction for this dtype
    combine_t combine;
    finish_t finish;
    int64_t accumulator;   // bytes
    row_leaf_t rows;       // NULL: there is no such form
} loops_t;

// Return whether narrow contiguous rows are combined in a leaf by columns.
#define FOLDS(n, stride, width) ((stride) == (width) && (width) <= 32 && (n) >= 16)

// Elements of a run, the part of a sum that is accumulated in the type of partial results, and runs of a leaf. Only
// leaves of reductions with a row_leaf_t have several.
enum { RUN = 2048, RUNS = 16 };

// Widest tile of a leaf.
enum { TILE = 1024 };

// The loops of this processor by operation and dtype, found when the library is loaded.
enum { LOOP_DTYPES = 16 };
EXPORTED loops_t reduction_loops[OPERATIONS][LOOP_DTYPES];
