/* Compile the header LOOPS for float32 and float64, each for several instruction sets; choose when it is called.
 *
 *     #define LOOPS "kernels/reduction/softmax_loops.h"
 *     #include "simd/each_set.h"
 *     typedef void (*row_t)(const void *x, void *out, int64_t n);
 *     static const row_t rows[SETS][2] = VARIANTS(softmax_row);
 *     rows[instruction_set()][double_precision](x, out, n);
 *
 * SINGLE_VARIANTS is for a function that LOOPS has for float32 alone.
 *
 * LOOPS has no include guard. It finds REAL (the type), DOUBLE (0 or 1) and NAME(function), which makes names of their
 * own of the variants. Unlike the clones of each_cpu.h, variants see at compile time whether products and sums are fused
 * on their processors: MULTIPLY_ADD(a, b, c) is then rounded once. So different processors may round differently; but one
 * of them computes the same bits in vectors and one by one, because every operation is spelled out.
 */
#ifndef CYGRAD_EACH_SET_H
#define CYGRAD_EACH_SET_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "simd/each_cpu.h"
#include "simd/instruction_set.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#if SETS > 1
#define SINGLE_VARIANTS(function) {{(void *)function##_float}, {(void *)function##_float_avx2}, \
                                   {(void *)function##_float_avx512}}
#define VARIANTS(function) {{(void *)function##_float, (void *)function##_double}, \
                            {(void *)function##_float_avx2, (void *)function##_double_avx2}, \
                            {(void *)function##_float_avx512, (void *)function##_double_avx512}}
#else
#define SINGLE_VARIANTS(function) {{(void *)function##_float}}
#define VARIANTS(function) {{(void *)function##_float, (void *)function##_double}}
#endif

#endif

#define SET(function) function
#include "simd/each_type.h"
#undef SET
#if SETS > 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define SET(function) function##_avx2
#include "simd/each_type.h"
#undef SET
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#define SET(function) function##_avx512
#include "simd/each_type.h"
#undef SET
#pragma GCC pop_options
#endif
