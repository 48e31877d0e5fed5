/* Compile the header LOOPS for float32 and float64, each for several SIMD targets; choose when it is called.
 *
 *     #define LOOPS "kernels/reduction/softmax_loops.h"
 *     #include "simd/targets.h"
 *     typedef void (*row_t)(const void *x, void *out, int64_t n);
 *     static const row_t rows[SIMD_TARGETS][2] = SIMD_VARIANTS(softmax_row);
 *     rows[simd_target()][double_precision](x, out, n);
 *
 * FLOAT_SIMD_VARIANTS is for a function that LOOPS has for float32 alone.
 *
 * LOOPS has no include guard. It uses REAL (the type), DOUBLE (0 or 1), SIMD_LEVEL (a result of simd_target()) and
 * NAME(function), which gives each variant its own name. Unlike the clones of target_clones.h, variants know at compile time whether their processor has fused
 * multiply-adds: MULTIPLY_ADD(a, b, c) is then rounded once. So processors may round differently; but on one processor
 * vector and scalar code are bit-identical, because every operation is spelled out.
 */
#ifndef CYGRAD_SIMD_TARGETS_H
#define CYGRAD_SIMD_TARGETS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "simd/target_clones.h"
#include "simd/instruction_set.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#if SIMD_TARGETS > 1
#define FLOAT_SIMD_VARIANTS(function) {{(void *)function##_float}, {(void *)function##_float_avx2}, \
                                   {(void *)function##_float_avx512}}
#define SIMD_VARIANTS(function) {{(void *)function##_float, (void *)function##_double}, \
                            {(void *)function##_float_avx2, (void *)function##_double_avx2}, \
                            {(void *)function##_float_avx512, (void *)function##_double_avx512}}
#else
#define FLOAT_SIMD_VARIANTS(function) {{(void *)function##_float}}
#define SIMD_VARIANTS(function) {{(void *)function##_float, (void *)function##_double}}
#endif

#endif

#define SIMD_LEVEL 0
#define SIMD_TARGET(function) function
#include "simd/target_dtypes.h"
#if SIMD_TARGETS > 1
BEGIN_AVX2
#define SIMD_LEVEL 1
#define SIMD_TARGET(function) function##_avx2
#include "simd/target_dtypes.h"
END_SIMD_TARGET
BEGIN_AVX512
#define SIMD_LEVEL 2
#define SIMD_TARGET(function) function##_avx512
#include "simd/target_dtypes.h"
END_SIMD_TARGET
#endif
