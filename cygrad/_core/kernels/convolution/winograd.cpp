// The loops of Winograd convolution for the SIMD target of this processor.

#include "kernels/convolution/winograd.h"

#define LOOPS "kernels/convolution/winograd_loops.h"
#include "simd/dispatch.h"

typedef std::remove_reference<decltype(**cut_values)>::type cut_t;
const cut_t cut_values[2][2] = {
    {(cut_t)DISPATCH(cut_values<float, SOURCES>), (cut_t)DISPATCH(cut_values<double, SOURCES>)},
    {(cut_t)DISPATCH(cut_values<float, RESULTS>), (cut_t)DISPATCH(cut_values<double, RESULTS>)}};
LOOP_TABLE(put_results, put_results);
LOOP_TABLE(kernel_values, kernel_values);
LOOP_TABLE(put_kernels, put_kernels);
