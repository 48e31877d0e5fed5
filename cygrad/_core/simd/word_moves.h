/* Copies of short rows, for which calls of memcpy take longer than the move, and transposed copies, by SIMD shuffles. */
#pragma once

#include <stdint.h>
#include "simd/exported.h"

/* Copy rows of `bytes`, `source_step` and `out_step` bytes apart. */
EXPORTED void (*const copy_rows)(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t bytes,
                                 int64_t rows);

/* out[i][k] = source[k][i] for i < rows and k < columns, words of 4 or 8 bytes, with contiguous rows in both; steps of
 * rows in bytes. */
EXPORTED void (*const transpose_words)(const char *source, int64_t source_step, char *out, int64_t out_step,
                                       int64_t rows, int64_t columns);
EXPORTED void (*const transpose_doubles)(const char *source, int64_t source_step, char *out, int64_t out_step,
                                         int64_t rows, int64_t columns);
