/* SIMD_TARGETS: number of SIMD targets to compile for. simd_target(): that of this processor: 0 is the baseline, 1
 * AVX2 and 2 AVX-512. */
#ifndef CYGRAD_INSTRUCTION_SET_H
#define CYGRAD_INSTRUCTION_SET_H

/* Vectors are passed between inlined functions only, so their calling convention does not matter. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SIMD_TARGETS 3
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

#endif
