/* x where a condition holds, else y: loops that compilers vectorize. Conditions are hard to predict, so there is no
 * branch: the bits are masked. `out` may begin where an operand does, but must not overlap it otherwise: iterations
 * are independent, which compilers must be told. A step of 0 means one value for all, any other contiguous elements. */
#ifndef CYGRAD_VECTOR_CHOICE_H
#define CYGRAD_VECTOR_CHOICE_H

#include <stdint.h>
#include "simd/target_clones.h"

#define CHOICE(name, word)                                                                                         \
    TARGET_CLONES static void name(const uint8_t *condition, const word *x, const word *y, word *out, int64_t n,    \
                                  int64_t x_step, int64_t y_step) {                                                \
        int64_t i;                                                                                                 \
        word one;                                                                                                  \
        if (n <= 0)                                                                                                \
            return;                                                                                                \
        if (x_step && y_step) {                                                                                    \
            INDEPENDENT                                                                                            \
            for (i = 0; i < n; i++)                                                                                \
                out[i] = (word)(y[i] ^ ((x[i] ^ y[i]) & (word)-(word)(condition[i] != 0)));                        \
        } else if (x_step) {                                                                                       \
            one = y[0];                                                                                            \
            INDEPENDENT                                                                                            \
            for (i = 0; i < n; i++)                                                                                \
                out[i] = (word)(one ^ ((x[i] ^ one) & (word)-(word)(condition[i] != 0)));                          \
        } else {                                                                                                   \
            one = x[0];                                                                                            \
            if (!y_step) {                                                                                         \
                word other = y[0];                                                                                 \
                INDEPENDENT                                                                                        \
                for (i = 0; i < n; i++)                                                                            \
                    out[i] = (word)(other ^ ((one ^ other) & (word)-(word)(condition[i] != 0)));                   \
                return;                                                                                            \
            }                                                                                                      \
            INDEPENDENT                                                                                            \
            for (i = 0; i < n; i++)                                                                                \
                out[i] = (word)(y[i] ^ ((one ^ y[i]) & (word)-(word)(condition[i] != 0)));                         \
        }                                                                                                          \
    }

CHOICE(choose_bytes, uint8_t)
CHOICE(choose_halves, uint16_t)
CHOICE(choose_words, uint32_t)
CHOICE(choose_doubles, uint64_t)

#endif
