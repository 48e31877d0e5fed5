/* SIMD_TARGETS: number of SIMD targets to compile for. simd_target(): that of this processor: 0 is the baseline, 1
 * AVX2 and 2 AVX-512. Functions between BEGIN_AVX2 or BEGIN_AVX512 and END_SIMD_TARGET are compiled for that target;
 * Clang does not define macros such as __AVX2__ there. */
#ifndef CYGRAD_INSTRUCTION_SET_H
#define CYGRAD_INSTRUCTION_SET_H

#if defined(__x86_64__) && defined(__GNUC__)
#define SIMD_TARGETS 3
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define BEGIN_SIMD_TARGET(names) \
    PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define END_SIMD_TARGET PRAGMA(clang attribute pop)
#else
#define BEGIN_SIMD_TARGET(names) PRAGMA(GCC push_options) PRAGMA(GCC target(names))
#define END_SIMD_TARGET PRAGMA(GCC pop_options)
#endif
#define BEGIN_AVX2 BEGIN_SIMD_TARGET("avx2,fma")
#define BEGIN_AVX512 BEGIN_SIMD_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
static inline int simd_target(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512vl"))
        return 2;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define SIMD_TARGETS 1
static inline int simd_target(void) { return 0; }
#endif

/* Iterations of the next loop are independent, although output may alias input. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#endif
