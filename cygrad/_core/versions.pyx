"""
Where memory was last changed in place, for the message that says so.

A version counter keeps the code object of the Python function that changed its memory last, and how far that function
had got: a pointer and a number. The file name and the line are worked out only when an error is reported, which may
be in a thread without the GIL; a lock then keeps the code object alive while it is read.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, strrchr
from cygrad._core.array cimport array_t, shape_text
from cygrad._core.atomic cimport atomic_load, lock, unlock
from cygrad._core.dtype cimport dtype_name
from cygrad._core.errors cimport MESSAGE, RUNTIME_ERROR, message
from cygrad._core.node cimport node_t
from cygrad._core.references cimport drop_reference
from cygrad._core.storage cimport version_t

import os

cdef extern from * nogil:
    """
    #include <string.h>
    static char package[4096];         /* the directory of this package, with a slash at its end */
    static Py_ssize_t package_length;

    static int is_ours(PyCodeObject *code) {
        Py_ssize_t length;
        const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
        if (file == NULL) PyErr_Clear();
        return file != NULL && length > package_length && package_length
               && memcmp(file, package, package_length) == 0;
    }
    /* The function that is running - the user's, if it has called one of this package's - and the offset of its current
       instruction; a new reference, or NULL. */
    static PyObject *running_code(int *offset) {
        PyFrameObject *frame = PyEval_GetFrame(), *outer;
        PyCodeObject *code;
        if (frame == NULL) return NULL;
        Py_INCREF(frame);
        code = PyFrame_GetCode(frame);
        while (is_ours(code) && (outer = PyFrame_GetBack(frame)) != NULL) {
            Py_DECREF(frame);
            Py_DECREF(code);
            frame = outer;
            code = PyFrame_GetCode(frame);
        }
        *offset = PyFrame_GetLasti(frame);
        Py_DECREF(frame);
        return (PyObject *)code;
    }
    /* Makes sure that the texts below can be read later without the GIL. */
    static void prepare_texts(PyObject *code) {
        if (PyUnicode_AsUTF8(((PyCodeObject *)code)->co_filename) == NULL
            || PyUnicode_AsUTF8(((PyCodeObject *)code)->co_qualname) == NULL) PyErr_Clear();
    }
    static int line_of(PyObject *code, int offset) { return PyCode_Addr2Line((PyCodeObject *)code, offset); }
    static const char *text_or(PyObject *text, const char *otherwise) {
        /* Its UTF-8 form is there since prepare_texts; one that has none (lone surrogates) stays unnamed. */
        if (PyUnicode_IS_COMPACT_ASCII(text)) return (const char *)PyUnicode_DATA(text);
        const char *utf8 = ((PyCompactUnicodeObject *)text)->utf8;
        return utf8 == NULL ? otherwise : utf8;
    }
    static const char *file_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_filename, "?"); }
    static const char *function_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_qualname, "?"); }
    static const char *type_name(PyObject *object) { return Py_TYPE(object)->tp_name; }
    static void give_back(void *object) { Py_DECREF((PyObject *)object); }
    """
    char *package
    Py_ssize_t package_length
    PyObject *running_code(int *offset)
    void prepare_texts(PyObject *code)
    int line_of(PyObject *code, int offset)
    const char *file_of(PyObject *code)
    const char *function_of(PyObject *code)
    const char *type_name(PyObject *object)
    void give_back(void *object)

cdef int32_t _lock = 0             # guards every version_t.code against being dropped while it is read


cdef int _set_package(bytes directory) except -1:
    global package_length
    if len(directory) < 4096:
        memcpy(package, <const char *>directory, len(directory))
        package_length = len(directory)
    return 0


_set_package(os.fsencode(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")))


cdef void remember_place(version_t *version) noexcept:
    cdef int offset = 0
    cdef void *replaced
    cdef PyObject *code = running_code(&offset)
    if <void *>code == version.code:
        version.offset = offset
        if code != NULL:
            give_back(code)
        return
    if code != NULL:
        prepare_texts(code)
    lock(&_lock)
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
        message(), MESSAGE, b"%s: a tensor that backward needs was changed in place (got the %s tensor of shape %s "
        b"saved as '%s'", operation, dtype_name(array.dtype), shape_text(array), name)
    if maker != NULL and maker.gradient != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", a leaf,")
    elif maker != NULL:
        length += snprintf(message() + length, MESSAGE - length, b", output %lld of %s,", <long long>output_nr,
                           node_name(maker))
    length += snprintf(message() + length, MESSAGE - length, b" at version %lld, expected version %lld). ",
                       <long long>atomic_load(&version.value), <long long>expected)
    lock(&_lock)
    if version.code != NULL and version.offset >= 0:
        length += snprintf(message() + length, MESSAGE - length, b"The last change was made at %.400s:%d, in %.100s. ",
                           file_of(<PyObject *>version.code), line_of(<PyObject *>version.code, version.offset),
                           function_of(<PyObject *>version.code))
    unlock(&_lock)
    snprintf(message() + length, MESSAGE - length,
             b"Use an operation that makes a new tensor, or clone() before the change.")
    return RUNTIME_ERROR
