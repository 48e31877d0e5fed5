/* The header LOOPS for float32 and float64, for the instruction set that SET names; see each_set.h. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSED 1
#else
#define FUSED 0
#endif

#define REAL float
#define DOUBLE 0
#define NAME(function) SET(function##_float)
#if FUSED
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
#include LOOPS
#undef REAL
#undef DOUBLE
#undef NAME
#undef MULTIPLY_ADD

#define REAL double
#define DOUBLE 1
#define NAME(function) SET(function##_double)
#if FUSED
#define MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif
#include LOOPS
#undef REAL
#undef DOUBLE
#undef NAME
#undef MULTIPLY_ADD
#undef FUSED
