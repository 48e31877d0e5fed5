/* The four operations, the sign, squares, roots and reciprocals of contiguous elements. The startup of NumPy's loops
 * takes as long as these for some hundred elements, and its squares, roots and reciprocals use only SSE. Each
 * operation is correctly rounded, so both are bit-identical. */
#ifndef CYGRAD_SHORT_LOOPS_H
#define CYGRAD_SHORT_LOOPS_H

#include <stdint.h>
#include "simd/target_clones.h"

typedef void (*short_loop_t)(const void *a, const void *b, void *out, int64_t n);

/* `x` and `y`: the operands, each an element of an array or one number for all. */
#define SHORT_LOOP(name, type, x, y, expression)                                                  \
    TARGET_CLONES static void name(const void *a, const void *b, void *out, int64_t n) {           \
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
#define SQUARE(x, y) ((x) * (x))
#define RECIPROCAL(x, y) (1 / (x))
#define ROOT_float(x, y) (__builtin_sqrtf(x))
#define ROOT_double(x, y) (__builtin_sqrt(x))

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
    SHORT_LOOP(neg_##type, type, left[i], 0, NEG)                                                 \
    SHORT_LOOP(square_##type, type, left[i], 0, SQUARE)                                           \
    SHORT_LOOP(sqrt_##type, type, left[i], 0, ROOT_##type)                                        \
    SHORT_LOOP(reciprocal_##type, type, left[i], 0, RECIPROCAL)

ALL_SHORT_LOOPS(float)
ALL_SHORT_LOOPS(double)

/* By primitive: for float32 and float64, which operands are arrays. */
typedef struct {
    const char *name;
    int arity;
    short_loop_t loops[2][3];
} short_entry_t;
#define BINARY(name, type) {name##_arrays_##type, name##_first_##type, name##_second_##type}
#define TWO(name) {#name, 2, {BINARY(name, float), BINARY(name, double)}}
#define ONE(name) {#name, 1, {{name##_float, 0, 0}, {name##_double, 0, 0}}}
static const short_entry_t short_entries[] = {
    TWO(add), TWO(sub), TWO(mul), TWO(div), ONE(neg), ONE(square), ONE(sqrt), ONE(reciprocal)};
static const int SHORT_ENTRIES = sizeof(short_entries) / sizeof(short_entries[0]);
#undef BINARY
#undef TWO
#undef ONE

#endif
