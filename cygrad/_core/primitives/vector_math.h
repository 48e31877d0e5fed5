/* Transcendental functions as SIMD code: loops for each SIMD target (see vector_loops.h), and sin and cos of doubles,
 * which are bit-identical on all processors. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"
#include "simd/instruction_set.h"

/* From up to four operands to out, each of n neighbors, or, if `numbers`, all but the first one number; `out` may be an
 * operand, but overlap none otherwise. */
typedef void (*vector_function_t)(const void *const *operands, void *out, int64_t n, int numbers);

typedef struct {
    const char *name;                                   /* of the primitive */
    int arity, cost, made;                              /* `made`: bytes of a result that is bool or int32, else 0 */
    const vector_function_t functions[SIMD_TARGETS][2];         /* NULL: none for this type */
} vector_entry_t;

EXPORTED const vector_entry_t vector_entries[];
EXPORTED const int VECTOR_ENTRIES;

/* sin(x + quarter * pi/2) */
EXPORTED void (*const sines)(const double *x, double *out, int64_t n, int64_t quarter);
