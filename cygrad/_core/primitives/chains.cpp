// The loops of chains for the SIMD target of this processor.

#include "primitives/chains.h"

#define LOOPS "primitives/chain_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(run_steps, run_steps);
