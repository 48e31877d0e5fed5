"""
Who of several threads that replay has the interpreter's lock.

A replay of a small step takes some microseconds, of which the lock is needed for less than one: to compare arguments,
and to make Tensors of results. Two threads could work at the same time, if only the lock passed fast from one to the
other. But who waits for it sleeps, and to be woken takes as long as ten such steps. So threads that replay wait for
each other here first, awake, for about as long as waking them would take. Only then they go to sleep as ever.

Who replays alone keeps the lock during short work, as to give it up and take it again costs more than it brings.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <Python.h>
    #if defined(__x86_64__) || defined(__i386__)
    #define wait_a_little() __builtin_ia32_pause()
    #else
    #define wait_a_little() ((void)0)
    #endif

    /* The thread state of who has taken the lock here last and has not given it up here since. */
    static void *holder;

    static void leave_turn(void *state) {
        __atomic_compare_exchange_n(&holder, &state, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }

    static void await_turn(void *state, int rounds) {
        void *nobody = NULL;
        while (rounds--) {
            if (__atomic_load_n(&holder, __ATOMIC_RELAXED) == NULL) {
                if (__atomic_compare_exchange_n(&holder, &nobody, state, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
                nobody = NULL;
            }
            wait_a_little();
        }
        __atomic_store_n(&holder, state, __ATOMIC_RELAXED);
    }
    """
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyThreadState_Get()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *) nogil
    void leave_turn(void *state)
    void await_turn(void *state, int rounds) nogil

cdef enum:
    ROUNDS = 512              # some 20 microseconds
    SHARED = 1 << 14          # replays after which a thread that was not seen again does something else

cdef void *last_thread                # that has replayed
cdef int64_t replays = 0, shared_until = 0
cdef int64_t handed_over = 0          # how often the lock was given up


cdef void *leave_interpreter(bint long_work) noexcept:
    global last_thread, replays, shared_until, handed_over
    cdef void *thread = PyThreadState_Get()
    replays += 1
    if thread != last_thread:
        if last_thread != NULL:
            shared_until = replays + SHARED
        last_thread = thread
    if not long_work and replays >= shared_until:
        return NULL
    handed_over += 1
    thread = PyEval_SaveThread()
    leave_turn(thread)
    return thread


cdef void enter_interpreter(void *left) noexcept nogil:
    if left != NULL:
        await_turn(left, ROUNDS)
        PyEval_RestoreThread(<PyThreadState *>left)


def replays_and_handovers():
    """How many replays there were, and in how many of them the lock was given up; for tests."""
    return replays, handed_over
