/* The loops of word_moves.h. */

/* Move rows by vectors of WIDTH bytes; the last vector of a row overlaps the one before. */
template <int WIDTH>
INLINE void move_rows(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t bytes, int64_t rows) {
    for (int64_t row = 0; row < rows; row++, source += source_step, out += out_step) {
        for (int64_t i = 0; i + WIDTH < bytes; i += WIDTH)
            __builtin_memcpy(out + i, source + i, WIDTH);
        __builtin_memcpy(out + bytes - WIDTH, source + bytes - WIDTH, WIDTH);
    }
}

static void copy_rows_of(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t bytes,
                         int64_t rows) {
    if (bytes > 1024)
        for (int64_t row = 0; row < rows; row++)
            memcpy(out + row * out_step, source + row * source_step, (size_t)bytes);
    else if (bytes >= 64)
        move_rows<64>(source, source_step, out, out_step, bytes, rows);
    else if (bytes >= 16)
        move_rows<16>(source, source_step, out, out_step, bytes, rows);
    else if (bytes >= 8)
        move_rows<8>(source, source_step, out, out_step, bytes, rows);
    else if (bytes >= 4)
        move_rows<4>(source, source_step, out, out_step, bytes, rows);
    else
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < bytes; i++)
                out[row * out_step + i] = source[row * source_step + i];
}

typedef uint32_t words_t __attribute__((vector_size(32)));
typedef uint64_t doubles_t __attribute__((vector_size(32)));

/* Transpose 8 x 8 words; rows of the source are `step` bytes apart, those of `out` 16 words. */
INLINE void transpose_part(const char *source, int64_t step, uint32_t *out) {
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
INLINE void transpose_part(const char *source, int64_t step, uint64_t *out) {
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

/* A tile of 64 bytes squared is assembled in a buffer, so that each cache line of both is accessed once: lines a power
 * of two apart would evict each other from the L1 cache. */
template <class word>
void transpose(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows, int64_t columns) {
    enum { SIDE = 64 / sizeof(word), PART = SIDE / 2 };
    word buffer[SIDE * SIDE];
    const int64_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;
    for (int64_t column = 0; column < whole_columns; column += SIDE)
        for (int64_t row = 0; row < whole_rows; row += SIDE) {
            const char *from = source + column * source_step + row * (int64_t)sizeof(word);
            char *to = out + row * out_step + column * (int64_t)sizeof(word);
            for (int i = 0; i < SIDE; i += PART)
                for (int k = 0; k < SIDE; k += PART)
                    transpose_part(from + i * source_step + k * sizeof(word), source_step, buffer + k * SIDE + i);
            for (int k = 0; k < SIDE; k++)
                memcpy(to + k * out_step, buffer + k * SIDE, SIDE * sizeof(word));
        }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; column++)
            ((word *)(out + row * out_step))[column] = ((const word *)(source + column * source_step))[row];
}
