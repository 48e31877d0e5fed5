/* Expansion of a broadcast operand over a tile of a fused loop. */
#ifndef CYGRAD_SPREAD_H
#define CYGRAD_SPREAD_H

#include <stdint.h>
#include <string.h>

/* Copy n elements from `position` on of a broadcast operand: see fused_operand_t.row. */
#define SPREAD(type)                                                                              \
    static void spread_##type(type *to, const char *data, int64_t step, int64_t row,              \
                              int64_t position, int64_t n) {                                      \
        while (n > 0) {                                                                           \
            int64_t length = row > 0 ? row : -row, first = position % length, i;                  \
            int64_t count = n < length - first ? n : length - first;                              \
            if (row > 0) {                                                                        \
                type value = *(const type *)(data + position / length * step);                    \
                for (i = 0; i < count; i++)                                                       \
                    to[i] = value;                                                                \
            } else {                                                                              \
                memcpy(to, data + first * step, count * sizeof(type));                            \
            }                                                                                     \
            to += count, position += count, n -= count;                                           \
        }                                                                                         \
    }
SPREAD(uint8_t)
SPREAD(uint16_t)
SPREAD(uint32_t)
SPREAD(uint64_t)

static void spread(void *to, const char *data, int64_t size, int64_t step, int64_t row, int64_t position, int64_t n) {
    switch (size) {
    case 1: spread_uint8_t((uint8_t *)to, data, step, row, position, n); break;
    case 2: spread_uint16_t((uint16_t *)to, data, step, row, position, n); break;
    case 4: spread_uint32_t((uint32_t *)to, data, step, row, position, n); break;
    default: spread_uint64_t((uint64_t *)to, data, step, row, position, n);
    }
}

#endif
