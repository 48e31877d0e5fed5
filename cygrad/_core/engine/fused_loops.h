/* The four operations and the sign on a few hundred neighboring elements: what a fusion does most.
 *
 * NumPy's loops take as long to begin as these to end. Each result is rounded by itself, so it is the same in both.
 */
#ifndef CYGRAD_FUSED_LOOPS_H
#define CYGRAD_FUSED_LOOPS_H

#include <stdint.h>
#include <string.h>
#include "simd/each_cpu.h"

typedef void (*short_loop_t)(const void *a, const void *b, void *out, int64_t n);

/* `x` and `y`: the operands, each an element of an array or one number for all. */
#define SHORT_LOOP(name, type, x, y, expression)                                                  \
    FOR_EACH_CPU static void name(const void *a, const void *b, void *out, int64_t n) {           \
        const type *left = (const type *)a, *right = (const type *)b;                             \
        type *to = (type *)out;                                                                   \
        type first = left[0], second = right[0];                                                  \
        int64_t i;                                                                                \
        (void)first, (void)second, (void)right;                                                   \
        INDEPENDENT                                                                               \
        for (i = 0; i < n; i++)                                                                   \
            to[i] = expression(x, y);                                                             \
    }
#define ADD(x, y) ((x) + (y))
#define SUB(x, y) ((x) - (y))
#define MUL(x, y) ((x) * (y))
#define DIV(x, y) ((x) / (y))
#define NEG(x, y) (-(x))

/* Two arrays, a number and an array, an array and a number. */
#define SHORT_LOOPS(name, type, expression)                                                       \
    SHORT_LOOP(name##_arrays_##type, type, left[i], right[i], expression)                         \
    SHORT_LOOP(name##_first_##type, type, first, right[i], expression)                            \
    SHORT_LOOP(name##_second_##type, type, left[i], second, expression)

#define ALL_SHORT_LOOPS(type)                                                                     \
    SHORT_LOOPS(add, type, ADD)                                                                   \
    SHORT_LOOPS(sub, type, SUB)                                                                   \
    SHORT_LOOPS(mul, type, MUL)                                                                   \
    SHORT_LOOPS(div, type, DIV)                                                                   \
    SHORT_LOOP(neg_##type, type, left[i], 0, NEG)

ALL_SHORT_LOOPS(float)
ALL_SHORT_LOOPS(double)

/* In the order in which fused_tiles.pyx looks for them: operation, element type, which operands are arrays. */
#define VARIANTS(name, type) {name##_arrays_##type, name##_first_##type, name##_second_##type}
static const short_loop_t short_loops[][2][3] = {
    {VARIANTS(add, float), VARIANTS(add, double)}, {VARIANTS(sub, float), VARIANTS(sub, double)},
    {VARIANTS(mul, float), VARIANTS(mul, double)}, {VARIANTS(div, float), VARIANTS(div, double)},
    {{neg_float, 0, 0}, {neg_double, 0, 0}}};

/* n elements from `position` on of an operand that is broadcast: see flow_t.row. */
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
