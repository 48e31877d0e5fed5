"""
Hand the GIL over between threads that execute compiled functions.

A small step takes a few microseconds and needs the GIL for less than one: to check guards and to make output Tensors.
A thread that blocks on the GIL sleeps, and waking it takes as long as ten steps. So threads spin here first, for about
as long as a wake-up takes, and block on the GIL only then.

A thread that executes alone keeps the GIL during short work, because releasing and acquiring it would cost more.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <Python.h>
    #if defined(__x86_64__) || defined(__i386__)
    #define cpu_pause() __builtin_ia32_pause()
    #else
    #define cpu_pause() ((void)0)
    #endif

    /* Thread state of the last thread that acquired the GIL here and has not released it here. */
    static void *holder;

    static void clear_holder(void *state) {
        __atomic_compare_exchange_n(&holder, &state, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }

    static void spin_for_holder(void *state, int rounds) {
        void *none = NULL;
        while (rounds--) {
            if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == NULL) {
                if (__atomic_compare_exchange_n(&holder, &none, state, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
                none = NULL;
            }
            cpu_pause();
        }
        __atomic_store_n(&holder, state, __ATOMIC_RELAXED);
    }
    """
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyThreadState_Get()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *) nogil
    void clear_holder(void *state)
    void spin_for_holder(void *state, int rounds) nogil

cdef enum:
    SPIN_ROUNDS = 512               # about 20 microseconds
    CONTENTION_WINDOW = 1 << 14     # executions for which the GIL is shared after another thread executed

cdef void *last_thread              # that executed a compiled function
cdef int64_t executions = 0, contended_until = 0
cdef int64_t n_released = 0


cdef void *release_gil(bint long_work) noexcept:
    global last_thread, executions, contended_until, n_released
    cdef void *thread = PyThreadState_Get()
    executions += 1
    if thread != last_thread:
        if last_thread != NULL:
            contended_until = executions + CONTENTION_WINDOW
        last_thread = thread
    if not long_work and executions >= contended_until:
        return NULL
    n_released += 1
    thread = PyEval_SaveThread()
    clear_holder(thread)
    return thread


cdef void acquire_gil(void *state) noexcept nogil:
    if state != NULL:
        spin_for_holder(state, SPIN_ROUNDS)
        PyEval_RestoreThread(<PyThreadState *>state)


def execution_counts():
    """Return the number of executions, and of those that released the GIL; for tests."""
    return executions, n_released
