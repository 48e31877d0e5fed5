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
    /* One less; true if that was the last. The holder of the only count needs no atomic write. */
    #define atomic_is_last(p)        (atomic_load(p) == 1 || atomic_decrement(p) == 0)
    static inline int atomic_claim(int64_t *p, int64_t expected, int64_t desired) {
        return __atomic_compare_exchange_n(p, &expected, desired, 0,
                                           __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    #include <pthread.h>
    #include <sched.h>
    #include <unistd.h>
    /* A lock holds the id of the process that took it. So a lock that another thread held during a fork is free in the
       child, where that thread does not exist. */
    __attribute__((weak, visibility("hidden"))) int32_t this_process;
    static void note_process(void) { this_process = getpid(); }
    __attribute__((constructor)) static void note_first_process(void) {
        if (this_process == 0) {
            note_process();
            pthread_atfork(NULL, NULL, note_process);
        }
    }
    /* Locks of three kinds, taken in this order: lock_patiently, lock, lock_inner; one of each kind at most, and
       never the GIL below one of them. Debug builds assert that (lock_checks.h). */
    #ifdef CYGRAD_LOCK_CHECKS_H
    #define LOCK_ORDER(kind) check_lock_order(kind)
    #define LOCK_TAKEN(kind) note_lock(kind)
    #define LOCK_RETURNED() note_unlock()
    #else
    #define LOCK_ORDER(kind) ((void)0)
    #define LOCK_TAKEN(kind) ((void)0)
    #define LOCK_RETURNED() ((void)0)
    #endif
    static inline void spin_for_lock(int32_t *p) {
        int round = 0;
        while (__atomic_exchange_n(p, this_process, __ATOMIC_ACQUIRE) == this_process) {
            while (__atomic_load_n(p, __ATOMIC_RELAXED) == this_process) {
                /* The holder may have lost its core: after a while, yield ours. */
                if (++round > 256) sched_yield();
    #if defined(__x86_64__) || defined(__i386__)
                else __builtin_ia32_pause();
    #endif
            }
        }
    }
    /* A lock for a few instructions on plain C memory. */
    static inline void lock(int32_t *p) {
        LOCK_ORDER(ORDINARY_LOCK);
        spin_for_lock(p);
        LOCK_TAKEN(ORDINARY_LOCK);
    }
    /* The same for one that is taken while another is held, and below which no further one is taken. */
    static inline void lock_inner(int32_t *p) {
        LOCK_ORDER(INNER_LOCK);
        spin_for_lock(p);
        LOCK_TAKEN(INNER_LOCK);
    }
    /* The same where the holder may work for microseconds: waiters give up their turn on the core. */
    static inline void lock_patiently(int32_t *p) {
        LOCK_ORDER(PATIENT_LOCK);
        while (__atomic_exchange_n(p, this_process, __ATOMIC_ACQUIRE) == this_process) {
            sched_yield();
        }
        LOCK_TAKEN(PATIENT_LOCK);
    }
    static inline void unlock(int32_t *p) {
        LOCK_RETURNED();
        __atomic_store_n(p, 0, __ATOMIC_RELEASE);
    }
    """
    int64_t atomic_increment(int64_t *p)
    int64_t atomic_decrement(int64_t *p)
    int64_t atomic_add(int64_t *p, int64_t value)
    bint atomic_is_last(int64_t *p)
    int64_t atomic_load(int64_t *p)
    void atomic_store(int64_t *p, int64_t value)
    int32_t atomic_load32 "atomic_load"(int32_t *p)
    void atomic_store32 "atomic_store"(int32_t *p, int32_t value)
    int64_t atomic_exchange(int64_t *p, int64_t value)
    bint atomic_claim(int64_t *p, int64_t expected, int64_t desired)
    void lock(int32_t *p)
    void lock_inner(int32_t *p)
    void lock_patiently(int32_t *p)
    void unlock(int32_t *p)
