/* The four operations, the sign, squares, roots and reciprocals of contiguous elements. The startup of NumPy's loops
 * takes as long as these for some hundred elements, and its squares, roots and reciprocals use only SSE. Each
 * operation is correctly rounded, so both are bit-identical. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* The operands, the result, and the number of contiguous elements. */
typedef void (*short_loop_t)(const void *a, const void *b, void *out, int64_t n);

/* By primitive: for float32 and float64; of two operands, which are arrays: both, the second, the first. */
typedef struct {
    const char *name;
    int arity;
    short_loop_t loops[2][3];
} short_entry_t;

enum { SHORT_ENTRIES = 8 };
EXPORTED const short_entry_t short_entries[SHORT_ENTRIES];
