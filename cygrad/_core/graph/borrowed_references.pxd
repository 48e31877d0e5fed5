"""
Borrowed pointers to Python objects that may be dying.

An array knows its Tensor and a gradient slot its AccumulateGrad without keeping it alive. Who follows such a pointer
makes a reference of it, if the object still lives. With the GIL a glance at the count is enough. Without it the
object may be dying in another thread: so the pointer is read below a lock that the dying object takes, before its
memory goes, to erase the pointer; and the reference is taken by a step that fails if the count has reached zero.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from cygrad._core.memory.atomic cimport atomic_add, atomic_decrement, lock_inner, unlock

cdef extern from * nogil:
    """
    #ifdef Py_GIL_DISABLED
    #define FREE_THREADED 1
    #if PY_VERSION_HEX >= 0x030E0000
    #define make_lendable(object) PyUnstable_EnableTryIncRef(object)
    #define take_if_alive(object) PyUnstable_TryIncRef(object)
    #else
    /*
     * Python 3.13 has these functions for itself only. The owning thread counts apart from all others, whose count has
     * two bits of flags below it. Once the first flag is set, the owner merges its count into theirs before the object
     * dies; so a merged count of zero means death, and an unmerged one that the owner still has some.
     */
    static inline void make_lendable(PyObject *object) {
        Py_ssize_t seen = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
        while (!(seen & _Py_REF_SHARED_FLAG_MASK)
               && !__atomic_compare_exchange_n(&object->ob_ref_shared, &seen, seen | _Py_REF_MAYBE_WEAKREF, 0,
                                               __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
    }
    static inline int take_if_alive(PyObject *object) {
        Py_ssize_t seen;
        if (__atomic_load_n(&object->ob_tid, __ATOMIC_RELAXED) == _Py_ThreadId()
                || __atomic_load_n(&object->ob_ref_local, __ATOMIC_RELAXED) == _Py_IMMORTAL_REFCNT_LOCAL) {
            Py_INCREF(object);
            return 1;
        }
        seen = __atomic_load_n(&object->ob_ref_shared, __ATOMIC_RELAXED);
        while (seen != 0 && seen != _Py_REF_MERGED) {
            if (__atomic_compare_exchange_n(&object->ob_ref_shared, &seen, seen + (1 << _Py_REF_SHARED_SHIFT), 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return 1;
        }
        return 0;
    }
    #endif
    #else
    #define FREE_THREADED 0
    #define make_lendable(object) ((void)0)
    static inline int take_if_alive(PyObject *object) {
        if (Py_REFCNT(object) <= 0) return 0;
        Py_INCREF(object);
        return 1;
    }
    #endif
    """
    # A compile-time constant: code under it is removed in builds with a GIL.
    bint FREE_THREADED
    # Allow the object to be borrowed; call it before other code has a reference.
    void make_lendable(PyObject *object)
    int Py_REFCNT(PyObject *object)
    # Take a new reference (true), unless the object is dying.
    bint take_if_alive(PyObject *object)

# Without a GIL: the inner mutex for pointers to and from this address. A few are shared by all addresses.
cdef int32_t *lending_lock(const void *address) noexcept nogil

# Counts that change under the GIL only; with a GIL, no atomic operation is needed. -> the new value
cdef inline int64_t count_up(int64_t *count) noexcept:
    if FREE_THREADED:
        return atomic_add(count, 1)
    count[0] += 1
    return count[0]

cdef inline int64_t count_down(int64_t *count) noexcept:
    if FREE_THREADED:
        return atomic_decrement(count)
    count[0] -= 1
    return count[0]

cdef inline void lock_lending(const void *address) noexcept nogil:
    if FREE_THREADED:
        lock_inner(lending_lock(address))

cdef inline void unlock_lending(const void *address) noexcept nogil:
    if FREE_THREADED:
        unlock(lending_lock(address))
