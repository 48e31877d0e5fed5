// The reduction loops as their users see them: plain C.
#pragma once

#include <stdint.h>
#include "kernels/reduction/reduce_operations.h"

#ifdef __cplusplus
extern "C" {
#endif

// An inner loop as NumPy's: pointers (inputs, then output), steps in bytes.
typedef void (*vector_loop_t)(char **arguments, const int64_t *n, const int64_t *steps, void *data);

// Parameters of the loops besides the elements.
typedef struct {
    double p;              // order of the norm
    double count;          // number of elements reduced into one result
    double correction;     // count - correction divides the sum of squares
    vector_loop_t exp;     // exponential of contiguous elements
    void *exp_data;
} parameter_t;

// Reduce `n` elements at `stride` for each of `width` neighbors at `column_stride` (in elements) into
// accumulators[width]. `columns`: go through memory neighbor by neighbor, else element by element.
typedef void (*leaf_t)(const char *data, int64_t n, int64_t stride, int64_t width, int64_t column_stride,
                       int columns, char *accumulators, const parameter_t *parameter);
// A leaf by columns in parts, bit-identical to the whole: `n` rows of `width` contiguous elements, `stride` apart, are
// added to `tile`, memory for TILE partial results. `begin`: it is uninitialized; `end`: return the accumulators. All
// parts but the last have a multiple of four rows. Not for leaves that FOLDS() says are folded.
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

// Are narrow rows without gaps taken together in a leaf by columns?
#define FOLDS(n, stride, width) ((stride) == (width) && (width) <= 32 && (n) >= 16)

// Widest tile of neighbors that one leaf takes.
enum { TILE = 1024 };

// The loops for the processor at hand.
loops_t find_loops(int operation, int dtype);

#ifdef __cplusplus
}
#endif
