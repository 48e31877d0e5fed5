/* SETS: how many instruction sets there are to compile for. instruction_set(): which of them the processor at hand has,
 * 0 being what every processor has, 1 AVX2 and 2 AVX-512. */
#ifndef CYGRAD_INSTRUCTION_SET_H
#define CYGRAD_INSTRUCTION_SET_H

/* Vectors are passed between inlined functions only: how they would be passed elsewhere does not matter. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SETS 3
static inline int instruction_set(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512vl"))
        return 2;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define SETS 1
static inline int instruction_set(void) { return 0; }
#endif

#endif
