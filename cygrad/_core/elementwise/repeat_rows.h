/* Copy rows of a broadcast operand into a contiguous buffer. */
#ifndef CYGRAD_REPEAT_ROWS_H
#define CYGRAD_REPEAT_ROWS_H

#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"

#define FILL_ROWS(type)                                                                                     \
    TARGET_CLONES static void fill_rows_##type(type *to, const char *data, int64_t stride, int64_t length,   \
                                              int64_t rows) {                                               \
        for (int64_t row = 0; row < rows; row++, to += length) {                                            \
            type value = *(const type *)(data + row * stride);                                              \
            for (int64_t i = 0; i < length; i++)                                                            \
                to[i] = value;                                                                              \
        }                                                                                                   \
    }
FILL_ROWS(uint32_t)
FILL_ROWS(uint64_t)

/* Copy `rows` rows of `length` elements of `size` bytes, `stride` bytes apart, each contiguous (`step` is `size`) or
 * of one number (0); returns 0 if it cannot. */
static inline int repeat_rows(char *to, const char *data, int64_t size, int64_t step, int64_t stride, int64_t length,
                              int64_t rows) {
    int64_t done, count, bytes = length * size;
    if (step == size && stride == 0) {
        memcpy(to, data, bytes);
        for (done = 1; done < rows; done += count) {
            count = done < rows - done ? done : rows - done;
            memcpy(to + done * bytes, to, count * bytes);
        }
    } else if (step == size) {
        for (done = 0; done < rows; done++)
            memcpy(to + done * bytes, data + done * stride, bytes);
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
