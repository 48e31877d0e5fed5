"""
Fast attribute lookup and calls of modules: parameters, buffers and children in their dicts, and forward.

A class with ``__getattr__`` or ``__call__`` written in Python gets slots that look those methods up each time. If a
class has the methods of `Module`, unchanged, `fill_slots` sets slots that do the same in C.
"""

import threading
import weakref
from cygrad._core.graph.argument_errors import name_operation

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

cdef extern from "Python.h":
    ctypedef PyObject *(*_getattro_t)(PyObject *, PyObject *) except NULL
    ctypedef PyObject *(*_call_t)(PyObject *, PyObject *, PyObject *) except NULL
    ctypedef struct _Type "PyTypeObject":
        _getattro_t tp_getattro
        _call_t tp_call
    PyObject *_PyObject_GenericGetAttrWithDict(PyObject *, PyObject *, PyObject *, int)
    PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *) except NULL
    PyObject *PyObject_GenericGetDict(PyObject *, void *) except NULL
    PyObject *PyDict_GetItemWithError(PyObject *, PyObject *)
    PyObject *PyErr_Occurred()
    bint PyDict_Check(PyObject *)
    Py_ssize_t PyDict_Size(PyObject *)
    _Type *Py_TYPE(PyObject *)
    PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *) noexcept
    void PyErr_Fetch(PyObject **, PyObject **, PyObject **)
    void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **)
    int PyException_SetTraceback(PyObject *, PyObject *)
    void PyErr_Restore(PyObject *, PyObject *, PyObject *)
    void Py_DECREF(PyObject *)
    void PyType_Modified(_Type *)

cdef str _parameters = "_parameters"
cdef str _buffers = "_buffers"
cdef str _modules = "_modules"
cdef str _hooks = "_hooks"
cdef str _forward = "forward"


cdef inline PyObject *_registered(PyObject *values, PyObject *kind, PyObject *name) noexcept:
    """Return `module.__dict__[kind][name]`, borrowed. NULL: missing, or an error is set."""
    cdef PyObject *part = PyDict_GetItemWithError(values, kind)
    if part == NULL or not PyDict_Check(part) or PyDict_Size(part) == 0:
        return NULL
    return PyDict_GetItemWithError(part, name)


cdef PyObject *_get(PyObject *module, PyObject *name) except NULL:
    """Return an attribute as Python does; else a parameter, buffer or child module."""
    cdef PyObject *found = _PyObject_GenericGetAttrWithDict(module, name, NULL, 1)
    cdef PyObject *values
    if found != NULL:
        return found
    if PyErr_Occurred() != NULL:
        return NULL
    values = PyObject_GenericGetDict(module, NULL)
    found = _registered(values, <PyObject *>_parameters, name)
    if found == NULL:
        found = _registered(values, <PyObject *>_modules, name)
    if found == NULL:
        found = _registered(values, <PyObject *>_buffers, name)
    if found != NULL:
        Py_INCREF(<object>found)
    Py_DECREF(values)
    if found != NULL:
        return found
    if PyErr_Occurred() != NULL:
        return NULL
    return PyObject_GenericGetAttr(module, name)           # for its error


# ---- module in which an error was raised

_located = threading.local()         # .text: the last note, .module: the outermost module of its path, weakly


cdef object _locate(object error, object module):
    """Add a note to an error with the path of the failing module; each enclosing module extends the path."""
    name_operation(error)
    if not isinstance(error, (RuntimeError, TypeError, ValueError, IndexError)):
        return
    notes = getattr(error, "__notes__", None)
    if not notes or notes[len(notes) - 1] != getattr(_located, "text", None):
        _located.kind, _located.path, _located.text = type(module).__name__, "", f"in {type(module).__name__}"
        error.add_note(_located.text)
    else:
        inner = _located.module()
        name = next((name for name, child in module.named_modules() if child is inner), "")
        _located.path = f"{name}.{_located.path}" if name and _located.path else name or _located.path
        notes[len(notes) - 1] = _located.text = f"in {_located.path} ({_located.kind})"
    _located.module = weakref.ref(module)


cdef int _locate_raised(PyObject *module) noexcept:
    """Call `_locate` for the raised error, which propagates even if adding the note fails."""
    cdef PyObject *kind = NULL
    cdef PyObject *error = NULL
    cdef PyObject *trace = NULL
    PyErr_Fetch(&kind, &error, &trace)
    PyErr_NormalizeException(&kind, &error, &trace)
    if trace != NULL:
        PyException_SetTraceback(error, trace)
    try:
        _locate(<object>error, <object>module)
    except Exception:
        pass
    PyErr_Restore(kind, error, trace)
    return 0


cdef inline PyObject *_attribute(PyObject *module, PyObject *name) except NULL:
    return (<_Type *>Py_TYPE(module)).tp_getattro(module, name)


cdef PyObject *_call(PyObject *module, PyObject *args, PyObject *kwargs) except NULL:
    """Implement ``Module.__call__``."""
    cdef PyObject *hooks = _attribute(module, <PyObject *>_hooks)
    cdef PyObject *forward
    cdef PyObject *result
    if hooks != <PyObject *>None:
        try:
            found = (<object>hooks).call(<object>module, <object>args, {} if kwargs == NULL else <object>kwargs)
        except Exception as error:
            _locate(error, <object>module)
            raise
        finally:
            Py_DECREF(hooks)
        Py_INCREF(found)
        return <PyObject *>found
    Py_DECREF(hooks)
    forward = _attribute(module, <PyObject *>_forward)
    result = PyObject_Call(forward, args, kwargs)
    Py_DECREF(forward)
    if result == NULL:
        _locate_raised(module)
    return result


def call_module(module, tuple args not None, dict kwargs not None):
    """Call a module as its slot does."""
    cdef PyObject *result = _call(<PyObject *>module, <PyObject *>args, <PyObject *>kwargs)
    made = <object>result
    Py_DECREF(result)
    return made


def fill_slots(cls, getattr, call):
    """Set the fast slots of `cls` if it has exactly these two methods."""
    cdef _Type *slots
    if not isinstance(cls, type):
        return
    slots = <_Type *>cls
    if cls.__getattr__ is getattr and cls.__getattribute__ is object.__getattribute__:
        slots.tp_getattro = _get
        PyType_Modified(slots)
    if cls.__call__ is call:
        slots.tp_call = _call
