/* The loops of tile_rows.h. */
#include "simd/word_move_loops.h"

/* Branch-free, with several sums for instruction-level parallelism. */
template <class T> int nan_in_reals(const T *x, int64_t n, int64_t step) {
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> bits_t;
    typedef T numbers_t __attribute__((vector_size(64), aligned(4), may_alias));
    typedef bits_t mask_t __attribute__((vector_size(64)));
    enum { LANES = 64 / sizeof(T) };
    mask_t unordered[4] = {};
    int64_t i = 0;
    bits_t found = 0;
    if (step != sizeof(T)) {
        for (; i < n; i++) {
            const T value = *(const T *)((const char *)x + i * step);
            found |= value != value;
        }
        return found != 0;
    }
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const numbers_t *v = (const numbers_t *)(x + i);
        const numbers_t p = v[0], q = v[1], r = v[2], s = v[3];
        unordered[0] |= p != p;
        unordered[1] |= q != q;
        unordered[2] |= r != r;
        unordered[3] |= s != s;
    }
    unordered[0] |= unordered[1] | unordered[2] | unordered[3];
    for (int k = 0; k < LANES; k++)
        found |= unordered[0][k];
    for (; i < n; i++)
        found |= x[i] != x[i];
    return found != 0;
}

static int nan_in_halves(const uint16_t *x, int64_t n, int64_t step, int infinity) {
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= (*(const uint16_t *)((const char *)x + i * step) & 0x7fff) > infinity;
    return found;
}

/* Whole vectors, as long as those of a row that reach into the next one stay within the buffer. */
template <class T> INLINE void fill_rows(T *to, const char *data, int64_t stride, int64_t length, int64_t rows) {
    enum { LANES = 64 / sizeof(T) };
    const int64_t whole = (length + LANES - 1) / LANES * LANES;
    for (; rows > 0; rows--, to += length, data += stride) {
        const T value = *(const T *)data;
        int64_t i = 0;
        for (; rows * length >= whole && i < length; i += LANES)
            for (int k = 0; k < LANES; k++)
                to[i + k] = value;
        for (; i < length; i++)
            to[i] = value;
    }
}

static int rows_repeated(char *to, const char *data, int64_t size, int64_t step, int64_t stride, int64_t length,
                         int64_t rows) {
    if (step == size)
        copy_rows_of(data, stride, to, length * size, length * size, rows);
    else if (step == 0 && size == 4)
        fill_rows((uint32_t *)to, data, stride, length, rows);
    else if (step == 0 && size == 8)
        fill_rows((uint64_t *)to, data, stride, length, rows);
    else
        return 0;
    return 1;
}
