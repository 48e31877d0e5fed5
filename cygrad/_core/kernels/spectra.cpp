// The loops of spectra.h for the SIMD target of this processor.

#include "kernels/spectra.h"

#define LOOPS "kernels/spectrum_loops.h"
#include "simd/dispatch.h"

LOOP_TABLE(complete_spectrum, complete);
LOOP_TABLE(weigh_spectrum, weigh);
