"""
Records of backward calls, for messages that name the call that freed a graph.

A released node has the number of the call that released it. The last calls, their place in the user's code and their
thread are in a table that forgets the oldest.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from cygrad._core.graph.node cimport node_t
from cygrad._core.graph.source_location cimport running_code, write_place
from cygrad._core.graph.version_errors cimport node_name
from cygrad._core.memory.atomic cimport atomic_add, atomic_load32, atomic_store32, lock_inner, unlock
from cygrad._core.memory.errors cimport MESSAGE, RUNTIME_ERROR, message
from cygrad._core.memory.references cimport drop_reference

import threading

cdef extern from * nogil:
    """
    #include "memory/thread_variable.h"
    enum { REMEMBERED = 1024, THREAD_NAME = 48 };
    typedef struct {
        int64_t number;                /* of the call, 0 for none */
        PyObject *code;                /* where it was made, or NULL */
        int offset;
        int64_t thread;                /* one number for each thread */
        char name[THREAD_NAME];        /* of the thread */
    } backward_call_t;
    static backward_call_t calls[REMEMBERED];
    THREAD_VARIABLE struct { int64_t call, number; char name[THREAD_NAME]; } own;
    """
    enum:
        REMEMBERED
        THREAD_NAME
    ctypedef struct backward_call_t:
        int64_t number
        PyObject *code
        int offset
        int64_t thread
        char name[48]
    backward_call_t calls[1]
    int64_t own_call "own.call"
    int64_t own_number "own.number"
    char *own_name "own.name"

cdef int64_t _threads = 0
cdef int32_t _lock = 0             # guards the table


cdef int64_t work_for(int64_t call) noexcept nogil:
    global own_call
    cdef int64_t former = own_call
    own_call = call
    return former


cdef int64_t working_for() noexcept nogil:
    return own_call


cdef int _name_thread() except -1:
    global own_number
    cdef bytes name = threading.current_thread().name.encode("utf-8", "replace")
    snprintf(own_name, THREAD_NAME, b"%s", <const char *>name)
    own_number = atomic_add(&_threads, 1)
    return 0


cdef int remember_call(int64_t call, bint keep) except -1:
    cdef backward_call_t *entry = &calls[call % REMEMBERED]
    cdef backward_call_t fresh
    cdef PyObject *replaced
    if own_number == 0:
        _name_thread()
    fresh.number = call
    fresh.thread = own_number
    fresh.code = NULL
    fresh.offset = 0
    if not keep and own_call != -1:
        fresh.code = running_code(&fresh.offset)
    lock_inner(&_lock)
    replaced = entry.code
    entry.number = call
    entry.code = fresh.code
    entry.offset = fresh.offset
    if entry.thread != fresh.thread:
        entry.thread = fresh.thread
        snprintf(entry.name, THREAD_NAME, b"%s", own_name)
    unlock(&_lock)
    drop_reference(replaced)
    return 0


cdef void note_release(node_t *node) noexcept nogil:
    atomic_store32(&node.released_by, <int32_t>own_call)     # others may just be told of the release


cdef int freed_error(const node_t *node) noexcept nogil:
    cdef int32_t number = atomic_load32(<int32_t *>&node.released_by)
    cdef const backward_call_t *entry = &calls[number % REMEMBERED if number > 0 else 0]
    cdef const backward_call_t *failing = &calls[own_call % REMEMBERED if own_call > 0 else 0]
    cdef int length = snprintf(message(), MESSAGE, b"%s: its saved tensors were freed already by an earlier backward",
                               node_name(node))
    lock_inner(&_lock)
    if number > 0 and <int32_t>entry.number == number:
        if entry.code != NULL:
            length += snprintf(message() + length, MESSAGE - length, b" at ")
            length += write_place(message() + length, MESSAGE - length, entry.code, entry.offset)
        if entry.thread != (failing.thread if own_call > 0 and failing.number == own_call else own_number):
            length += snprintf(message() + length, MESSAGE - length, b", in the thread '%s'", entry.name)
    unlock(&_lock)
    snprintf(message() + length, MESSAGE - length,
             b". Pass retain_graph=True to that call to backward through the graph a second time or to read them.")
    return RUNTIME_ERROR
