/* TARGET_CLONES: compile a function for several instruction sets; the loader chooses the best. INDEPENDENT: tell the
 * compiler that iterations of the next loop are independent, although output may alias input. */
#ifndef CYGRAD_TARGET_CLONES_H
#define CYGRAD_TARGET_CLONES_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__clang__)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

#if defined(__x86_64__) && defined(__GNUC__) && defined(__GLIBC__) && !SANITIZED
#if defined(__clang__) ? __clang_major__ >= 19 : __GNUC__ >= 12    /* x86-64-v4 has AVX512BW */
#define TARGET_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif !defined(__clang__)
#define TARGET_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#if !defined(TARGET_CLONES)
#define TARGET_CLONES
#endif

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#endif
