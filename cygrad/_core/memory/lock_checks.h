/* Debug builds only: assert the locking rules. A thread takes its locks in one order (PATIENT before ORDINARY before
 * INNER, at most one of each kind) and neither acquires nor releases the GIL while it holds one. The build includes
 * this file before everything else, so that the calls by which Cython acquires and releases the GIL are checked
 * everywhere. */
#ifndef CYGRAD_LOCK_CHECKS_H
#define CYGRAD_LOCK_CHECKS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATIENT_LOCK = 1, ORDINARY_LOCK = 2, INNER_LOCK = 4 };

/* The locks that a thread holds, under one key in all modules: the linker merges this symbol. */
__asm__(".pushsection .bss.cygrad_lock_key,\"awG\",%nobits,cygrad_lock_key,comdat\n"
        ".globl cygrad_lock_key\n"
        ".type cygrad_lock_key,%gnu_unique_object\n"
        ".size cygrad_lock_key,8\n"
        ".balign 8\n"
        "cygrad_lock_key: .zero 8\n"
        ".popsection");
#ifdef __cplusplus
extern "C" int64_t cygrad_lock_key;
#else
extern int64_t cygrad_lock_key;
#endif

static pthread_key_t lock_key(void) {
    int64_t known = __atomic_load_n(&cygrad_lock_key, __ATOMIC_ACQUIRE), none = 0;
    if (known == 0) {
        pthread_key_t key;
        if (pthread_key_create(&key, NULL) != 0) abort();
        known = (int64_t)key + 1;
        if (!__atomic_compare_exchange_n(&cygrad_lock_key, &none, known, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            pthread_key_delete(key);
            known = none;
        }
    }
    return (pthread_key_t)(known - 1);
}
static intptr_t locks_held(void) { return (intptr_t)pthread_getspecific(lock_key()); }

static void lock_failure(const char *what, intptr_t held) {
    fprintf(stderr, "cygrad: %s while locks are held (kinds %d)\n", what, (int)held);
    abort();
}
/* Check the order before taking a lock of this kind. */
static void check_lock_order(intptr_t kind) {
    intptr_t held = locks_held();
    if (held >= kind) lock_failure("a lock is taken out of order", held);
}
static void note_lock(intptr_t kind) { pthread_setspecific(lock_key(), (void *)(locks_held() | kind)); }
/* Check that locks are released in reverse order. */
static void note_unlock(void) {
    intptr_t held = locks_held();
    if (held == 0) lock_failure("a lock is released that is not held", held);
    held &= ~(held & INNER_LOCK ? INNER_LOCK : held & ORDINARY_LOCK ? ORDINARY_LOCK : PATIENT_LOCK);
    pthread_setspecific(lock_key(), (void *)held);
}
static void check_no_locks(const char *what) {
    intptr_t held = locks_held();
    if (held) lock_failure(what, held);
}

static PyGILState_STATE checked_ensure(void) {
    check_no_locks("the GIL is asked for");
    return PyGILState_Ensure();
}
static PyThreadState *checked_save(void) {
    check_no_locks("the GIL is given up");
    return PyEval_SaveThread();
}
static void checked_restore(PyThreadState *state) {
    check_no_locks("the GIL is taken back");
    PyEval_RestoreThread(state);
}
#define PyEval_SaveThread checked_save
#define PyEval_RestoreThread checked_restore
#define PyGILState_Ensure checked_ensure

#endif
