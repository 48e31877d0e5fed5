/* Steps of chains.h, for modules that make them. */
#ifndef CYGRAD_CHAIN_STEPS_H
#define CYGRAD_CHAIN_STEPS_H

#include <stdint.h>

/* Where an operand is found: in the registers, in an array, or it is one number for all elements. */
enum { HELD, ELEMENTS, NUMBER };

/* `operation`: as they are counted in short_loops.h. `kept`: the result is written, too. */
#define CHAIN_CODE(operation, one, other, kept) ((((operation) * 3 + (one)) * 3 + (other)) * 2 + (kept))

typedef struct {
    int64_t code;
    const char *left, *right;
    char *out;
} chain_step_t;

#endif
