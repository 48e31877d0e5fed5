"""
Source locations: the running Python function and its bytecode offset, converted to file and line on demand.

Storing a location takes a pointer to a code object and a number. File name and line are computed only when an error is
reported, which may be in a thread without the GIL.
"""

from cpython.object cimport PyObject
from libc.stdio cimport snprintf
from libc.string cimport memcpy

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
    static PyObject *users_code(int *offset) {
        PyFrameObject *frame = PyEval_GetFrame(), *outer;
        PyCodeObject *code;
        if (frame == NULL) { PyErr_Clear(); return NULL; }      /* no memory for an object of the frame */
        Py_INCREF(frame);
        code = PyFrame_GetCode(frame);
        while (is_ours(code) && (outer = PyFrame_GetBack(frame)) != NULL) {
            Py_DECREF(frame);
            Py_DECREF(code);
            frame = outer;
            code = PyFrame_GetCode(frame);
        }
        PyErr_Clear();                  /* of an outer frame that there was no memory for */
        *offset = PyFrame_GetLasti(frame);
        Py_DECREF(frame);
        /* Makes sure that the texts below can be read later without the GIL. */
        if (PyUnicode_AsUTF8(code->co_filename) == NULL || PyUnicode_AsUTF8(code->co_qualname) == NULL) PyErr_Clear();
        return (PyObject *)code;
    }
    static int line_of(PyObject *code, int offset) { return PyCode_Addr2Line((PyCodeObject *)code, offset); }
    static const char *text_or(PyObject *text, const char *otherwise) {
        /* Its UTF-8 form is there since users_code; one that has none (lone surrogates) stays unnamed. */
        if (PyUnicode_IS_COMPACT_ASCII(text)) return (const char *)PyUnicode_DATA(text);
        const char *utf8 = ((PyCompactUnicodeObject *)text)->utf8;
        return utf8 == NULL ? otherwise : utf8;
    }
    static const char *file_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_filename, "?"); }
    static const char *function_of(PyObject *code) { return text_or(((PyCodeObject *)code)->co_qualname, "?"); }
    """
    char *package
    Py_ssize_t package_length
    PyObject *users_code(int *offset)
    int line_of(PyObject *code, int offset)
    const char *file_of(PyObject *code)
    const char *function_of(PyObject *code)


cdef int _set_package(bytes directory) except -1:
    global package_length
    if len(directory) < 4096:
        memcpy(package, <const char *>directory, len(directory))
        package_length = len(directory)
    return 0


_set_package(os.fsencode(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")))


cdef PyObject *running_code(int *offset) noexcept:
    return users_code(offset)


cdef int write_place(char *text, int capacity, PyObject *code, int offset) noexcept nogil:
    cdef int length = snprintf(text, capacity, b"%.400s:%d, in %.100s", file_of(code), line_of(code, offset),
                               function_of(code))
    return min(length, capacity - 1)
