"""Atomic integers: the few compiler built-ins that the core uses, under plain names."""

from libc.stdint cimport int32_t, int64_t

cdef extern from * nogil:
    """
    #define atomic_increment(p)      __atomic_add_fetch((p), 1, __ATOMIC_RELAXED)
    #define atomic_decrement(p)      __atomic_sub_fetch((p), 1, __ATOMIC_ACQ_REL)
    #define atomic_add(p, v)         __atomic_add_fetch((p), (v), __ATOMIC_ACQ_REL)
    #define atomic_load(p)           __atomic_load_n((p), __ATOMIC_ACQUIRE)
    #define atomic_store(p, v)       __atomic_store_n((p), (v), __ATOMIC_RELEASE)
    #define atomic_exchange(p, v)    __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
    /* One less; true if that was the last. Who holds the only count need not tell anybody. */
    #define atomic_is_last(p)        (atomic_load(p) == 1 || atomic_decrement(p) == 0)
    static inline int atomic_claim(int64_t *p, int64_t expected, int64_t desired) {
        return __atomic_compare_exchange_n(p, &expected, desired, 0,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    /* A lock for a few instructions on plain C memory; never held while taking the GIL. */
    static inline void lock(int32_t *p) {
        while (__atomic_exchange_n(p, 1, __ATOMIC_ACQUIRE)) {
            while (__atomic_load_n(p, __ATOMIC_RELAXED)) {
    #if defined(__x86_64__) || defined(__i386__)
                __builtin_ia32_pause();
    #endif
            }
        }
    }
    /* The same where the holder may work for microseconds: waiters give up their turn on the core. */
    #include <sched.h>
    static inline void lock_patiently(int32_t *p) {
        while (__atomic_exchange_n(p, 1, __ATOMIC_ACQUIRE)) {
            sched_yield();
        }
    }
    static inline void unlock(int32_t *p) { __atomic_store_n(p, 0, __ATOMIC_RELEASE); }
    """
    int64_t atomic_increment(int64_t *p)
    int64_t atomic_decrement(int64_t *p)
    int64_t atomic_add(int64_t *p, int64_t value)
    bint atomic_is_last(int64_t *p)
    int64_t atomic_load(int64_t *p)
    void atomic_store(int64_t *p, int64_t value)
    int64_t atomic_exchange(int64_t *p, int64_t value)
    bint atomic_claim(int64_t *p, int64_t expected, int64_t desired)
    void lock(int32_t *p)
    void lock_patiently(int32_t *p)
    void unlock(int32_t *p)
