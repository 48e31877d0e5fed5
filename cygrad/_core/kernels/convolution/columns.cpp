// The loops of columns for the SIMD target of this processor.

#include "kernels/convolution/columns.h"

#include <complex>

#define LOOPS "kernels/convolution/column_loops.h"
#include "simd/dispatch.h"

typedef std::remove_reference<decltype(*scatter_columns)>::type scatter_t;
const scatter_t scatter_columns[5] = {
    (scatter_t)DISPATCH(scatter<float>), (scatter_t)DISPATCH(scatter<double>),
    (scatter_t)DISPATCH(scatter<std::complex<float>>), (scatter_t)DISPATCH(scatter<std::complex<double>>),
    (scatter_t)DISPATCH(scatter<uint64_t>)};

void gather_columns(const geometry_t *g, int64_t bytes, const void *image, int64_t c0, int64_t c1, int64_t p0,
                    int64_t p1, void *columns, int64_t leading) {
    typedef void (*gather_t)(const geometry_t *, const void *, int64_t, int64_t, int64_t, int64_t, void *, int64_t);
    static const gather_t loops[] = {
        (gather_t)DISPATCH(gather<uint8_t>), (gather_t)DISPATCH(gather<uint16_t>), (gather_t)DISPATCH(gather<uint32_t>),
        (gather_t)DISPATCH(gather<uint64_t>), (gather_t)DISPATCH(gather<std::complex<double>>)};
    loops[__builtin_ctzll(bytes)](g, image, c0, c1, p0, p1, columns, leading);
}
