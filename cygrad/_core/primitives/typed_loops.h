/* Loops over elements of one type, for primitives that NumPy lacks or computes differently. */
#pragma once

#include "primitives/loop_types.h"
#include "primitives/vector_math.h"
#include "simd/exported.h"

typedef struct {
    const char *name;          /* of the primitive */
    int arity, rule, cost, dtype, out_dtype;
    loop_t loop;
    const char *uses;          /* the primitive whose entry for this dtype is the `data` of the loop, or NULL */
} typed_entry_t;

enum { MAX_TYPED_ENTRIES = 160 };
EXPORTED typed_entry_t typed_entries[MAX_TYPED_ENTRIES];
EXPORTED int n_typed_entries;

/* Called by the integer loops that find a divisor of 0. */
EXPORTED void (*refuse_zero)(const char *operation);

/* The loop whose `data` is a vector_function_t, by its number of operands and the bytes of a result (0: as operands). */
EXPORTED loop_t vector_loop(int arity, int made, int double_precision);

/* For powers of float32 and float64: NumPy's loops, and cygrad's for the SIMD target. With any `data`, pow_loops compute
 * those of "pow_tensor". */
typedef struct {
    entry_t general, square;
    int (*whole)(const void *x, double exponent, void *out, int64_t n);
    void (*with_sign)(const void *x, const void *exponent, int64_t step, void *out, int64_t n);
} powers_t;

EXPORTED powers_t powers_of[2];
EXPORTED const loop_t pow_loops[2];
