/* Compile the templates of the header LOOPS for each SIMD target, and choose when the library is loaded.
 *
 *     #define LOOPS "kernels/nn/recurrent_loops.h"
 *     #include "simd/dispatch.h"
 *     LOOP_TABLE(lstm_hidden, lstm_hidden);
 *
 * LOOPS has neither include guard nor namespace, is included once per file, and may use simd/vectors.h and test
 * SIMD_LEVEL (a result of simd_target()); headers of the system are included before. DISPATCH(function) is the variant
 * for this processor, and LOOP_TABLE defines a table of those for float and double, which a header for Cython modules
 * declares:
 *
 *     EXPORTED void (*const lstm_hidden[2])(const void *activations, void *hidden, int64_t size, int64_t step);
 */
#ifndef CYGRAD_DISPATCH_H
#define CYGRAD_DISPATCH_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <limits>
#include <type_traits>
#include <utility>
#include "simd/exported.h"
#include "simd/instruction_set.h"
#include "simd/shuffle.h"

#define INLINE static inline __attribute__((always_inline))
/* Compiled once for all callers. */
#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

#if SIMD_TARGETS > 1
#include <immintrin.h>
#define DISPATCH(...) \
    (simd_target() == 2 ? avx512::__VA_ARGS__ : simd_target() == 1 ? avx2::__VA_ARGS__ : baseline::__VA_ARGS__)
#else
#define DISPATCH(...) (baseline::__VA_ARGS__)
#endif
#define FOR_FLOAT_AND_DOUBLE(type, function) {(type)DISPATCH(function<float>), (type)DISPATCH(function<double>)}
#define LOOP_TABLE(table, function) \
    const std::remove_reference<decltype(*table)>::type table[2] = \
        FOR_FLOAT_AND_DOUBLE(std::remove_reference<decltype(*table)>::type, function)

#endif

/* Unnamed, so that loops of one name in two files differ. */
namespace {
namespace baseline {
#define SIMD_LEVEL 0
#include "simd/vectors.h"
#include LOOPS
#undef SIMD_LEVEL
}  // namespace baseline
#if SIMD_TARGETS > 1
BEGIN_AVX2
namespace avx2 {
#define SIMD_LEVEL 1
#include "simd/vectors.h"
#include LOOPS
#undef SIMD_LEVEL
}  // namespace avx2
END_SIMD_TARGET
BEGIN_AVX512
namespace avx512 {
#define SIMD_LEVEL 2
#include "simd/vectors.h"
#include LOOPS
#undef SIMD_LEVEL
}  // namespace avx512
END_SIMD_TARGET
#endif
}  // namespace
