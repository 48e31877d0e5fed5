/* Several of the operations of short_loops.h on the same elements, block by block.
 *
 * Results stay in registers for the next step: only what is needed elsewhere is written. A block is as many vectors as
 * fit next to an operand, 8 or 16, so that the dispatch on the code of a step is little next to its work. Each result
 * is rounded, so it is bit-identical to that of short_loops.h. */
#pragma once

#include "primitives/chain_steps.h"
#include "simd/exported.h"

/* Compute whole blocks of n elements; return the number of their elements. */
EXPORTED int64_t (*const run_steps[2])(const chain_step_t *steps, int64_t count, int64_t n);
