"""
Records of in-place operations, for messages that name the line.

A version counter stores the code object and bytecode offset of the last in-place operation. File name and line are
computed only when an error is reported, which may be in a thread without the GIL; a mutex keeps the code object alive
meanwhile.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XINCREF
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport strrchr
from cygrad._core.arrays.array cimport array_t, shape_text
from cygrad._core.arrays.dtype cimport dtype_name
from cygrad._core.graph.node cimport node_t
from cygrad._core.graph.source_location cimport running_code, write_place
from cygrad._core.memory.atomic cimport atomic_load, lock_inner, unlock
from cygrad._core.memory.errors cimport MESSAGE, RUNTIME_ERROR, message
from cygrad._core.memory.references cimport drop_reference
from cygrad._core.memory.storage cimport version_t

cdef extern from * nogil:
    """
    static const char *type_name(PyObject *object) { return Py_TYPE(object)->tp_name; }
    """
    const char *type_name(PyObject *object)

cdef int32_t _lock = 0             # guards every version_t.code against being dropped while it is read


cdef void remember_place(version_t *version) noexcept:
    cdef int offset = 0
    cdef PyObject *code = running_code(&offset)
    remember_code(version, code, offset)
    drop_reference(code)


cdef void remember_code(version_t *version, PyObject *code, int offset) noexcept:
    cdef void *replaced
    if <void *>code == version.code:
        version.offset = offset
        return
    Py_XINCREF(code)
    lock_inner(&_lock)
    replaced = version.code
    version.code = code
    version.offset = offset
    unlock(&_lock)
    drop_reference(replaced)


cdef const char *node_name(const node_t *node) noexcept nogil:
    cdef const char *name = type_name(node.object)
    cdef const char *dot = strrchr(name, c'.')
    return name if dot == NULL else dot + 1


cdef int version_error(const char *operation, const char *name, const array_t *array, int64_t expected,
                       const node_t *maker, int64_t output_nr) noexcept nogil:
    cdef version_t *version = array.version
    cdef int length = snprintf(
        message(), MESSAGE, b"%s: a tensor that backward needs was modified in place (got the %s tensor of shape %s "
        b"saved as '%s'", operation, dtype_name(array.dtype), shape_text(array), name)
    if maker != NULL and maker.gradient != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", a leaf,")
    elif maker != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", output %lld of %s,", <long long>output_nr,
                           node_name(maker))
    length += snprintf(message() + length, MESSAGE - length, b" at version %lld, expected version %lld). ",
                       <long long>atomic_load(&version.value), <long long>expected)
    lock_inner(&_lock)
    if version.code != NULL and version.offset >= 0:
        length += snprintf(message() + length, MESSAGE - length, b"The last change was made at ")
        length += write_place(message() + length, MESSAGE - length, <PyObject *>version.code, version.offset)
        length += snprintf(message() + length, MESSAGE - length, b". ")
    unlock(&_lock)
    length += snprintf(message() + length, MESSAGE - length,
                       b"Use an operation that makes a new tensor, or clone() before modifying it.")
    if maker != NULL and maker.gradient != NULL:
        snprintf(message() + length, MESSAGE - length,
                 b" If another thread trains the same weights, see nn.parallel.share_weights.")
    return RUNTIME_ERROR
