/* Several of the operations of short_loops.h on the same elements, block by block.
 *
 * What an operation makes stays in registers for the next one: of a chain of them nothing lies in memory but what others
 * read. A block is as many vectors as fit next to what is read, 8 or 16, so that to find the code of an
 * operation takes little next to its work. Each result is rounded by itself, so it is the same as from short_loops.h.
 */
#ifndef CYGRAD_CHAINS_H
#define CYGRAD_CHAINS_H

#include "primitives/chain_steps.h"

#define EACH_OF_8(X, ...) \
    X(0, __VA_ARGS__) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) \
    X(4, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__) X(7, __VA_ARGS__)
#define EACH_OF_16(X, ...) \
    EACH_OF_8(X, __VA_ARGS__) \
    X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) \
    X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__) X(15, __VA_ARGS__)
#define COUNT(k, ...) 1 +
#define DECLARE(k, ...) held_##k = {0},

/* Vector k of an operand. */
#define VECTOR(memory, k) (*(NAME(chained_t) *)((memory) + (k) * WIDTH))
#define FIND_HELD(name, side)
#define FIND_ELEMENTS(name, side) const char *const name = step->side + offset;
#define FIND_NUMBER(name, side) const NAME(chained_t) name = *(const REAL *)step->side - (NAME(chained_t)){0};
#define GET_HELD(name, k) held_##k
#define GET_ELEMENTS(name, k) VECTOR(name, k)
#define GET_NUMBER(name, k) name

#define COMPUTE(k, name, one, other) held_##k = CHAINED_##name(GET_##one(first, k), GET_##other(second, k));
#define COMPUTE_ONE(k, name, one, other) held_##k = CHAINED_##name(GET_##one(first, k));
#define COMPUTE_IN_ORDER(k, name, one, other) {                                                   \
        NAME(chained_t) x = GET_##one(first, k);                                                  \
        IN_ORDER(name, x, GET_##other(second, k));                                                \
        held_##k = x;                                                                             \
    }
#define COMPUTE_SWAPPED(k, name, one, other) {                                                     \
        NAME(chained_t) x = GET_##other(second, k);                                               \
        IN_ORDER(name, x, GET_##one(first, k));                                                   \
        held_##k = x;                                                                             \
    }
#define CHAINED_add(x, y) ((x) + (y))
#define CHAINED_sub(x, y) ((x) - (y))
#define CHAINED_mul(x, y) ((x) * (y))
#define CHAINED_div(x, y) ((x) / (y))
#define CHAINED_neg(x) (-(x))
#define CHAINED_square(x) ((x) * (x))
#define CHAINED_reciprocal(x) (1 / (x))
#define CHAINED_sqrt(x) (NAME(chained_sqrt)(x))
#define KEEP(k, ...) VECTOR(out, k) = held_##k;

#define STEP(operation, name, compute, one, other)                                                \
    case CHAIN_CODE(operation, one, other, 0): {                                                  \
        FIND_##one(first, left) FIND_##other(second, right)                                       \
        EACH(compute, name, one, other)                                                           \
        break;                                                                                    \
    }                                                                                             \
    case CHAIN_CODE(operation, one, other, 1): {                                                  \
        FIND_##one(first, left) FIND_##other(second, right)                                       \
        char *const out = step->out + offset;                                                     \
        EACH(compute, name, one, other)                                                           \
        EACH(KEEP)                                                                                \
        break;                                                                                    \
    }
#define ALL_STEPS(operation, name, compute, compute_with_number)                                  \
    STEP(operation, name, compute, HELD, HELD)                                                    \
    STEP(operation, name, compute, HELD, ELEMENTS)                                                \
    STEP(operation, name, compute_with_number, HELD, NUMBER)                                      \
    STEP(operation, name, compute, ELEMENTS, HELD)                                                \
    STEP(operation, name, compute, ELEMENTS, ELEMENTS)                                            \
    STEP(operation, name, compute_with_number, ELEMENTS, NUMBER)                                  \
    STEP(operation, name, compute, NUMBER, HELD)                                                  \
    STEP(operation, name, compute, NUMBER, ELEMENTS)
#define BINARY_STEPS(operation, name) ALL_STEPS(operation, name, COMPUTE, COMPUTE)
/* The number is the first one, as compilers have it in the loops of short_loops.h. */
#define ORDERED_STEPS(operation, name) ALL_STEPS(operation, name, COMPUTE_IN_ORDER, COMPUTE_SWAPPED)
#define UNARY_STEPS(operation, name)                                                              \
    STEP(operation, name, COMPUTE_ONE, HELD, HELD)                                                \
    STEP(operation, name, COMPUTE_ONE, ELEMENTS, HELD)

#define LOOPS "primitives/chain_loops.h"
#include "simd/targets.h"
#undef LOOPS

typedef int64_t (*chain_t)(const chain_step_t *steps, int64_t count, int64_t n);
static const chain_t chain_loops[SIMD_TARGETS][2] = SIMD_VARIANTS(chain);

#undef COUNT
#undef DECLARE
#undef COMPUTE
#undef KEEP
#undef STEP
#undef VECTOR

#endif
