// The loops of powers for the SIMD target of this processor.

#include "primitives/powers.h"

#define LOOPS "primitives/power_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(power_loop, power_loop);
LOOP_TABLE(signed_power, signed_power);
