/* Copies of short rows, for which calls of memcpy take longer than the move, and copies that need SIMD shuffles: rows
 * backwards, and transposed matrices. */
#ifndef CYGRAD_WORD_MOVES_H
#define CYGRAD_WORD_MOVES_H

#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"
#include "simd/shuffle.h"

/* Copy rows of `bytes`, `source_step` and `out_step` bytes apart; the last vector of a row overlaps the one before. */
#define MOVE_ROWS(width)                                                                                              \
    for (int64_t row = 0; row < rows; row++, source += source_step, out += out_step) {                               \
        for (int64_t i = 0; i + width < bytes; i += width)                                                            \
            __builtin_memcpy(out + i, source + i, width);                                                             \
        __builtin_memcpy(out + bytes - width, source + bytes - width, width);                                         \
    }
TARGET_CLONES static void copy_rows(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t bytes,
                                    int64_t rows) {
    if (bytes > 1024)
        for (int64_t row = 0; row < rows; row++)
            memcpy(out + row * out_step, source + row * source_step, (size_t)bytes);
    else if (bytes >= 64)
        MOVE_ROWS(64)
    else if (bytes >= 16)
        MOVE_ROWS(16)
    else if (bytes >= 8)
        MOVE_ROWS(8)
    else if (bytes >= 4)
        MOVE_ROWS(4)
    else
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < bytes; i++)
                out[row * out_step + i] = source[row * source_step + i];
}
#undef MOVE_ROWS

/* out[i] = last[-i] */
#define BACKWARDS(name, word)                                                          \
    TARGET_CLONES static void name(const void *last_of, void *out_of, int64_t n) {      \
        const word *last = (const word *)last_of;                                      \
        word *out = (word *)out_of;                                                    \
        INDEPENDENT                                                                    \
        for (int64_t i = 0; i < n; i++)                                                \
            out[i] = last[-i];                                                         \
    }

BACKWARDS(backwards_bytes, uint8_t)
BACKWARDS(backwards_halves, uint16_t)
BACKWARDS(backwards_words, uint32_t)
BACKWARDS(backwards_doubles, uint64_t)

#ifdef SHUFFLE
typedef uint32_t words_t __attribute__((vector_size(32)));
typedef uint64_t doubles_t __attribute__((vector_size(32)));

/* Transpose 8 x 8 words; rows of the source are `step` bytes apart, those of `out` 16 words. */
static inline __attribute__((always_inline)) void transpose_8(const char *source, int64_t step, uint32_t *out) {
    words_t a[8], b[8];
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], source + i * step, sizeof(words_t));
    for (int i = 0; i < 8; i += 2) {
        b[i] = SHUFFLE(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = SHUFFLE(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            a[i + 2 * k] = SHUFFLE(b[i + k], b[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * k + 1] = SHUFFLE(b[i + k], b[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        b[i] = SHUFFLE(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        b[i + 4] = SHUFFLE(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i++)
        memcpy(out + 16 * i, &b[i], sizeof(words_t));
}

/* Transpose 4 x 4 words of 8 bytes; rows of `out` are 8 words apart. */
static inline __attribute__((always_inline)) void transpose_4(const char *source, int64_t step, uint64_t *out) {
    doubles_t a[4], b[4];
    for (int i = 0; i < 4; i++)
        memcpy(&a[i], source + i * step, sizeof(doubles_t));
    for (int i = 0; i < 4; i += 2) {
        b[i] = SHUFFLE(a[i], a[i + 1], 0, 4, 2, 6);
        b[i + 1] = SHUFFLE(a[i], a[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        a[i] = SHUFFLE(b[i], b[i + 2], 0, 1, 4, 5);
        a[i + 2] = SHUFFLE(b[i], b[i + 2], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++)
        memcpy(out + 8 * i, &a[i], sizeof(doubles_t));
}
#endif

/* out[i][k] = source[k][i] for i < rows and k < columns, with contiguous rows in both; rows are n bytes apart. A
 * tile of 64 bytes squared is assembled in a buffer, so that each cache line of both is accessed once: lines a power
 * of two apart would evict each other from the L1 cache. */
#define TRANSPOSE(name, word, side, part, transpose_part)                                                                      \
    TARGET_CLONES static void name(const char *source, int64_t source_step, char *out, int64_t out_step,              \
                                  int64_t rows, int64_t columns) {                                                   \
        word buffer[side * side];                                                                                    \
        const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;                        \
        for (int64_t column = 0; column < whole_columns; column += side)                                             \
            for (int64_t row = 0; row < whole_rows; row += side) {                                                   \
                const char *from = source + column * source_step + row * (int64_t)sizeof(word);                      \
                char *to = out + row * out_step + column * (int64_t)sizeof(word);                                    \
                for (int i = 0; i < side; i += part)                                                                 \
                    for (int k = 0; k < side; k += part)                                                             \
                        transpose_part(from + i * source_step + k * sizeof(word), source_step, buffer + k * side + i);    \
                for (int k = 0; k < side; k++)                                                                       \
                    memcpy(to + k * out_step, buffer + k * side, side * sizeof(word));                               \
            }                                                                                                        \
        for (int64_t row = 0; row < rows; row++)                                                                     \
            for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; column++)                  \
                ((word *)(out + row * out_step))[column] = ((const word *)(source + column * source_step))[row];     \
    }

#ifdef SHUFFLE
TRANSPOSE(transpose_words, uint32_t, 16, 8, transpose_8)
TRANSPOSE(transpose_doubles, uint64_t, 8, 4, transpose_4)
#else
#define TRANSPOSE_WORD(from, step, to) (*(to) = *(const uint32_t *)(from))
#define TRANSPOSE_DOUBLE(from, step, to) (*(to) = *(const uint64_t *)(from))
TRANSPOSE(transpose_words, uint32_t, 16, 1, TRANSPOSE_WORD)
TRANSPOSE(transpose_doubles, uint64_t, 8, 1, TRANSPOSE_DOUBLE)
#endif

#endif
