"""
Strong references to Python objects in C structs that are freed without the GIL.

Such a reference cannot be dropped immediately. It is added to a list, which the next thread that has the GIL empties; a
pending call asks the interpreter to do so soon.
"""

from libc.stdlib cimport free, malloc
from cpython.ref cimport Py_INCREF

cdef extern from * nogil:
    """
    #include <pthread.h>
    static pthread_mutex_t waiting_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void waiting_lock(void) { pthread_mutex_lock(&waiting_mutex); }
    static void waiting_unlock(void) { pthread_mutex_unlock(&waiting_mutex); }
    static void waiting_at_fork(void) { pthread_atfork(waiting_lock, waiting_unlock, waiting_unlock); }

    #if PY_VERSION_HEX >= 0x030D0000
    #define current_thread_state PyThreadState_GetUnchecked
    #else
    #define current_thread_state _PyThreadState_UncheckedGet
    #endif
    /* PyGILState_Check() will not do: it says yes everywhere once there are subinterpreters. */
    static int holds_gil(void) {
        PyThreadState *own = PyGILState_GetThisThreadState();
        return own != NULL && own == current_thread_state();
    }
    /* What the owner runs at its end knows nothing of an exception that is on its way meanwhile, and may clear it. */
    static void give_back(void *object) {
    #ifndef Py_GIL_DISABLED
        if (Py_REFCNT((PyObject *)object) > 1) {        /* it lives on */
            Py_DECREF((PyObject *)object);
            return;
        }
    #endif
    #if PY_VERSION_HEX >= 0x030C0000
        PyObject *raised = PyErr_GetRaisedException();
        Py_DECREF((PyObject *)object);
        PyErr_SetRaisedException(raised);
    #else
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF((PyObject *)object);
        PyErr_Restore(type, value, traceback);
    #endif
    }
    static void call_soon(int (*function)(void *)) {
        if (Py_IsInitialized()) Py_AddPendingCall(function, NULL);
    }
    """
    void waiting_lock()
    void waiting_unlock()
    void waiting_at_fork()
    bint holds_gil()
    void give_back(void *object)
    void call_soon(int (*function)(void *) noexcept)

ctypedef struct waiting_reference_t:
    void *object
    waiting_reference_t *next

cdef waiting_reference_t *waiting = NULL


cdef void *take_reference(object owner):
    Py_INCREF(owner)
    return <void *>owner


cdef void drop_reference(void *owner) noexcept nogil:
    global waiting
    cdef waiting_reference_t *link
    cdef bint first
    if owner == NULL:
        return
    if holds_gil():
        give_back(owner)
        return
    link = <waiting_reference_t *>malloc(sizeof(waiting_reference_t))
    if link == NULL:
        return                # leak one object rather than touch it without the GIL
    link.object = owner
    waiting_lock()
    first = waiting == NULL
    link.next = waiting
    waiting = link
    waiting_unlock()
    if first:
        call_soon(_release_soon)


cdef int _release_soon(void *unused) noexcept with gil:
    """Pending call: release the list."""
    release_waiting()
    return 0


cdef void release_waiting():
    """Drop the pending references. Each may run any Python code."""
    global waiting
    cdef waiting_reference_t *link
    cdef waiting_reference_t *next
    if waiting == NULL:
        return
    waiting_lock()
    link = waiting
    waiting = NULL
    waiting_unlock()
    while link != NULL:
        next = link.next
        give_back(link.object)
        free(link)
        link = next


cdef bint has_waiting() noexcept nogil:
    """Are references pending? (Read without locking.)"""
    return waiting != NULL


waiting_at_fork()
