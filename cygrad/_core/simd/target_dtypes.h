/* Include LOOPS for float32 and float64, for the instruction set of SIMD_TARGET; see simd/targets.h. */
#if SIMD_LEVEL > 0 || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSED 1
#define IN_ONE(fma, a, b, c) fma(a, b, c)
#else
#define FUSED 0
#define IN_ONE(fma, a, b, c) ((a) * (b) + (c))
#endif

#define REAL float
#define DOUBLE 0
#define NAME(function) SIMD_TARGET(function##_float)
#define MULTIPLY_ADD(a, b, c) IN_ONE(__builtin_fmaf, a, b, c)
#include LOOPS
#undef REAL
#undef DOUBLE
#undef NAME
#undef MULTIPLY_ADD

#define REAL double
#define DOUBLE 1
#define NAME(function) SIMD_TARGET(function##_double)
#define MULTIPLY_ADD(a, b, c) IN_ONE(__builtin_fma, a, b, c)
#include LOOPS
#undef REAL
#undef DOUBLE
#undef NAME
#undef MULTIPLY_ADD
#undef FUSED
#undef IN_ONE
#undef SIMD_LEVEL
#undef SIMD_TARGET
