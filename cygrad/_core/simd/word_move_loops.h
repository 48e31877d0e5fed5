/* The loops of word_moves.h. */

/* Move rows by vectors of WIDTH bytes; the last vector of a row overlaps the one before. */
template <int WIDTH>
INLINE void move_rows(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t bytes, int64_t rows) {
    for (int64_t row = 0; row < rows; row++, source += source_step, out += out_step) {
        if (WIDTH == 64 && bytes >= 256)             /* processors do not foresee a read across the gap between rows */
            fetch(source + 4 * source_step, bytes, 0);
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

/* Interleave the elements of two vectors in each half, the first half of them or the second. */
INLINE words_t interleaved(words_t x, words_t y, int second) {
    return second ? SHUFFLE(x, y, 2, 10, 3, 11, 6, 14, 7, 15) : SHUFFLE(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
}
INLINE doubles_t interleaved(doubles_t x, doubles_t y, int second) {
    return second ? SHUFFLE(x, y, 1, 5, 3, 7) : SHUFFLE(x, y, 0, 4, 2, 6);
}

/* Join the first or the second halves of two rows that lie `distance` bytes apart. */
INLINE doubles_t joined_halves(const char *row, int64_t distance, int second) {
    doubles_t x, y;
    memcpy(&x, row, sizeof x);
    memcpy(&y, row + distance, sizeof y);
    return second ? SHUFFLE(x, y, 2, 3, 6, 7) : SHUFFLE(x, y, 0, 1, 4, 5);
}

/* Transpose 8 x 8 words of 4 bytes, or 4 x 4 of 8. Rows are joined while they are loaded, and results stored as they
 * are made: in arrays of vectors they would go through memory. */
template <class word> INLINE void transpose_part(const char *source, int64_t step, char *out, int64_t out_step) {
    for (int half = 0; half < 2; half++) {
        if constexpr (sizeof(word) == 8) {
            const doubles_t a = joined_halves(source, 2 * step, half), b = joined_halves(source + step, 2 * step, half);
            const doubles_t first = interleaved(a, b, 0), second = interleaved(a, b, 1);
            memcpy(out + 2 * half * out_step, &first, sizeof first);
            memcpy(out + (2 * half + 1) * out_step, &second, sizeof second);
        } else {
            const words_t a = (words_t)joined_halves(source, 4 * step, half);
            const words_t b = (words_t)joined_halves(source + step, 4 * step, half);
            const words_t c = (words_t)joined_halves(source + 2 * step, 4 * step, half);
            const words_t d = (words_t)joined_halves(source + 3 * step, 4 * step, half);
            for (int k = 0; k < 2; k++) {
                const doubles_t x = (doubles_t)interleaved(a, b, k), y = (doubles_t)interleaved(c, d, k);
                const doubles_t first = interleaved(x, y, 0), second = interleaved(x, y, 1);
                memcpy(out + (4 * half + 2 * k) * out_step, &first, sizeof first);
                memcpy(out + (4 * half + 2 * k + 1) * out_step, &second, sizeof second);
            }
        }
    }
}

/* Tiles of 64 bytes squared fill whole cache lines. If lines of `out` would evict each other from the L1 cache, because
 * they lie a power of two apart, a tile is assembled in a buffer first. */
template <class word>
void transpose(const char *source, int64_t source_step, char *out, int64_t out_step, int64_t rows, int64_t columns) {
    enum { SIZE = sizeof(word), SIDE = 64 / SIZE, PART = SIDE / 2 };
    char buffer[64 * SIDE];
    const int64_t whole_rows = rows / PART * PART, whole_columns = columns / PART * PART;
    for (int64_t column = 0; column < whole_columns; column += SIDE)
        for (int64_t row = 0; row < whole_rows; row += SIDE) {
            const char *from = source + column * source_step + row * SIZE;
            char *const to = out + row * out_step + column * SIZE;
            const int64_t height = row + SIDE <= rows ? SIDE : PART, width = column + SIDE <= columns ? SIDE : PART;
            const bool buffered = out_step % 2048 == 0 && height + width == 2 * SIDE;
            char *const tile = buffered ? buffer : to;
            const int64_t step = buffered ? 64 : out_step;
            for (int64_t k = 0; k < height; k += PART)
                for (int64_t i = 0; i < width; i += PART)
                    transpose_part<word>(from + i * source_step + k * SIZE, source_step,
                                         tile + k * step + i * SIZE, step);
            for (int64_t k = 0; buffered && k < SIDE; k++)
                memcpy(to + k * out_step, buffer + k * 64, 64);
        }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; column++)
            ((word *)(out + row * out_step))[column] = ((const word *)(source + column * source_step))[row];
}
