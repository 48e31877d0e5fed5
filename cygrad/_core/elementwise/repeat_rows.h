/* Copy rows of a broadcast operand into a contiguous buffer. */
#ifndef CYGRAD_REPEAT_ROWS_H
#define CYGRAD_REPEAT_ROWS_H

#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"
#include "simd/word_moves.h"

/* Whole vectors, as long as those of a row that reach into the next one stay within the buffer. */
#define FILL_ROWS(type)                                                                                     \
    TARGET_CLONES static void fill_rows_##type(type *to, const char *data, int64_t stride, int64_t length,   \
                                              int64_t rows) {                                               \
        enum { LANES = 64 / sizeof(type) };                                                                 \
        const int64_t whole = (length + LANES - 1) / LANES * LANES;                                          \
        for (; rows > 0; rows--, to += length, data += stride) {                                            \
            const type value = *(const type *)data;                                                         \
            int64_t i = 0;                                                                                  \
            for (; rows * length >= whole && i < length; i += LANES)                                        \
                for (int k = 0; k < LANES; k++)                                                             \
                    to[i + k] = value;                                                                      \
            for (; i < length; i++)                                                                         \
                to[i] = value;                                                                              \
        }                                                                                                   \
    }
FILL_ROWS(uint32_t)
FILL_ROWS(uint64_t)

/* Copy `rows` rows of `length` elements of `size` bytes, `stride` bytes apart, each contiguous (`step` is `size`) or
 * of one number (0); returns 0 if it cannot. */
static inline int repeat_rows(char *to, const char *data, int64_t size, int64_t step, int64_t stride, int64_t length,
                              int64_t rows) {
    if (step == size) {
        copy_rows(data, stride, to, length * size, length * size, rows);
    } else if (step == 0 && size == 4) {
        fill_rows_uint32_t((uint32_t *)to, data, stride, length, rows);
    } else if (step == 0 && size == 8) {
        fill_rows_uint64_t((uint64_t *)to, data, stride, length, rows);
    } else {
        return 0;
    }
    return 1;
}

#endif
