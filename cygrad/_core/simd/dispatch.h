/* Compile the templates of the header LOOPS for each SIMD target, and choose when the library is loaded.
 *
 *     #define LOOPS "kernels/reduction/softmax_loops.h"
 *     #include "simd/dispatch.h"
 *     const softmax_rows_t softmax_rows[2] = FOR_FLOAT_AND_DOUBLE(softmax_rows_t, rows);
 *
 * LOOPS has no include guard and no namespace, is included once per file, and may test SIMD_LEVEL (a result of
 * simd_target()). What it includes of the system is included before. DISPATCH(function) is the variant of this
 * processor; the C declaration of a table is in another header, which Cython modules read. */
#ifndef CYGRAD_DISPATCH_H
#define CYGRAD_DISPATCH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <limits>
#include <type_traits>
#include "simd/instruction_set.h"
#include "simd/target_clones.h"

#define INLINE static inline __attribute__((always_inline))

#if SIMD_TARGETS > 1
#define DISPATCH(...) \
    (simd_target() == 2 ? avx512::__VA_ARGS__ : simd_target() == 1 ? avx2::__VA_ARGS__ : baseline::__VA_ARGS__)
#else
#define DISPATCH(...) (baseline::__VA_ARGS__)
#endif
#define FOR_FLOAT_AND_DOUBLE(type, function) {(type)DISPATCH(function<float>), (type)DISPATCH(function<double>)}

#endif

/* Unnamed, so that loops of one name in two files differ. */
namespace {
namespace baseline {
#define SIMD_LEVEL 0
#include LOOPS
#undef SIMD_LEVEL
}  // namespace baseline
#if SIMD_TARGETS > 1
BEGIN_AVX2
namespace avx2 {
#define SIMD_LEVEL 1
#include LOOPS
#undef SIMD_LEVEL
}  // namespace avx2
END_SIMD_TARGET
BEGIN_AVX512
namespace avx512 {
#define SIMD_LEVEL 2
#include LOOPS
#undef SIMD_LEVEL
}  // namespace avx512
END_SIMD_TARGET
#endif
}  // namespace
