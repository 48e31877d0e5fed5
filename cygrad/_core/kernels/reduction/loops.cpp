// The reduction loops for the SIMD target of this processor.

#include "kernels/reduction/elements.h"

#define LOOPS "kernels/reduction/loops.h"
#include "simd/dispatch.h"

// The wider sets only for the usual types: it pays little for the others, and compiling takes its time.
static loops_t find_loops(int operation, int dtype) {
    switch (dtype) {
        case 0: case 1: return baseline::integral<uint8_t>(operation);
        case 2: return baseline::integral<int8_t>(operation);
        case 3: return baseline::integral<int16_t>(operation);
        case 4: return baseline::integral<int32_t>(operation);
        case 8: return baseline::floating<complex_t<float>, complex_t<double>, float>(operation);
        case 9: return baseline::floating<complex_t<double>, complex_t<double>, double>(operation);
    }
    return dtype == 5   ? DISPATCH(integral<int64_t>(operation))
           : dtype == 6 ? float_loops(operation)
                        : double_loops(operation);
}

loops_t reduction_loops[OPERATIONS][LOOP_DTYPES];

static const bool loaded = [] {
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int dtype = 0; dtype < LOOP_DTYPES; dtype++)
            reduction_loops[operation][dtype] = find_loops(operation, dtype);
    return true;
}();
