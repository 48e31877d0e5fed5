// The moves of words for the SIMD target of this processor.

#include "simd/word_moves.h"
#include "simd/fetch.h"
#include "simd/shuffle.h"

#define LOOPS "simd/word_move_loops.h"
#include "simd/dispatch.h"

typedef void (*transpose_t)(const char *, int64_t, char *, int64_t, int64_t, int64_t);

void (*const copy_rows)(const char *, int64_t, char *, int64_t, int64_t, int64_t) = DISPATCH(copy_rows_of);
const transpose_t transpose_words = DISPATCH(transpose<uint32_t>);
const transpose_t transpose_doubles = DISPATCH(transpose<uint64_t>);
