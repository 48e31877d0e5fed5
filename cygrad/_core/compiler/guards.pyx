"""
Guards on what a function reads besides its arguments.

`cygrad.compiling.guards` collects them as (kind, container, key, value). Version tags of dicts and types, where Python
has them, replace the comparisons while nothing has changed.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

cdef extern from "Python.h":
    PyObject *PyDict_GetItem(PyObject *, PyObject *)
    bint PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **)
    Py_ssize_t PyDict_Size(PyObject *)
    Py_ssize_t PyList_GET_SIZE(PyObject *)
    PyObject *PyList_GET_ITEM(PyObject *, Py_ssize_t)
    PyObject *PyTuple_GET_ITEM(PyObject *, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *)
    Py_ssize_t PyObject_Size(object) except -1
    Py_ssize_t PySet_GET_SIZE(PyObject *)
    PyObject *PyCell_GET(PyObject *)
    PyObject *PyFunction_GET_CODE(PyObject *)
    PyObject *PyFunction_GET_DEFAULTS(PyObject *)
    PyObject *PyFunction_GET_KW_DEFAULTS(PyObject *)
    bint PyFloat_CheckExact(object)
    double PyFloat_AS_DOUBLE(object)
    void Py_XDECREF(PyObject *)

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000
    #define dict_version(dict) (((PyDictObject *)(dict))->ma_version_tag)
    #else
    #define dict_version(dict) 0
    #endif
    #define type_version(type) (((PyTypeObject *)(type))->tp_version_tag)
    #define class_of(object) ((PyObject *)Py_TYPE((PyObject *)(object)))
    /* Return a new reference to the dict of an object, or NULL. */
    static PyObject *dict_of(PyObject *object) {
    #if PY_VERSION_HEX < 0x030D0000
        PyObject **slot = _PyObject_GetDictPtr(object);
        PyObject *dict = slot ? *slot : NULL;
        Py_XINCREF(dict);
    #else
        PyObject *dict = PyObject_GenericGetDict(object, NULL);
        if (!dict) PyErr_Clear();
    #endif
        return dict;
    }
    """
    uint64_t dict_version(void *dict)
    uint64_t type_version(void *type)
    PyObject *class_of(void *object)
    PyObject *dict_of(PyObject *object)

# Kinds: an item of a dict; an entry of a list; a cell; a length; all items of a dict in order; code and defaults of a
# function; class and dict of an object; members of a class and its bases; an attribute; a set.
ITEM, ENTRY, CELL, LENGTH, ITEMS, FUNCTION, OBJECT, CLASS, ATTRIBUTE, SET = range(10)

cdef enum:
    C_ITEM = 0
    C_ENTRY
    C_CELL
    C_LENGTH
    C_ITEMS
    C_FUNCTION
    C_OBJECT
    C_CLASS
    C_ATTRIBUTE
    C_SET
    C_LIST_LENGTH


cdef uint64_t version_of_dict(void *dict) noexcept:
    return dict_version(dict)


cdef bint is_same_value(object a, object b) except -1:
    cdef double x, y
    if a is b or type(a) is not type(b):
        return a is b
    if PyFloat_CheckExact(a):
        x, y = PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b)
        return memcmp(&x, &y, sizeof(double)) == 0          # distinguish -0.0 from 0.0
    if isinstance(a, complex):
        return repr(a) == repr(b)
    return type(a) in (int, str, bytes) and a == b


def function_state(function):
    """Return what a FUNCTION guard compares."""
    return function.__code__, function.__defaults__, function.__kwdefaults__


def class_state(cls):
    """Return the members of a class and its bases, which a CLASS guard compares by identity."""
    return [(base, dict(vars(base))) for base in cls.__mro__]


cdef bint _same_class(object cls, list state) except -1:
    mro = cls.__mro__
    if len(mro) != len(state):
        return False
    for base, (former, members) in zip(mro, state):
        found = vars(base)
        if base is not former or len(found) != len(members):
            return False
        for name, value in members.items():
            if found.get(name, state) is not value:
                return False
    return True


@cython.binding(False)
cdef class Guards:
    """
    Guards to check before a program runs.

    Parameters
    ----------
    entries : list of tuple
        (kind, container, key, value); a value that is this list itself means that the key must be missing.
    """

    def __cinit__(self, list entries not None):
        cdef guard_t *guard
        cdef dict by_dict = {None: []}
        self.entries = entries
        for entry in entries:
            watches = entry[0] in (ITEM, ITEMS) or (entry[0] == LENGTH and isinstance(entry[1], dict))
            by_dict.setdefault(id(entry[1]) if watches else None, []).append(entry)
        self.n_others = len(by_dict[None])
        self.guards = <guard_t *>calloc(len(entries) + 1, sizeof(guard_t))
        self.watched = <watched_t *>calloc(len(by_dict), sizeof(watched_t))
        if self.guards == NULL or self.watched == NULL:
            raise MemoryError("compile: no memory for guards")
        for number, grouped in by_dict.items():
            if number is not None:
                self.watched[self.n_watched] = watched_t(<void *>grouped[0][1], 0, self.n_guards, len(grouped))
                self.n_watched += 1
            for kind, container, key, value in grouped:
                guard = &self.guards[self.n_guards]
                guard.kind, guard.container, guard.key = kind, <void *>container, <void *>key
                guard.value = NULL if value is entries else <void *>value
                guard.number = key if kind in (ENTRY, LENGTH, SET) else 0
                if kind == LENGTH and type(container) is list:
                    guard.kind = C_LIST_LENGTH
                self.n_guards += 1

    def __dealloc__(self):
        free(self.guards)
        free(self.watched)

    cdef bint hold(self) except -1:
        cdef watched_t *watched
        cdef uint64_t version
        cdef int i
        if not self.all_hold(self.guards, self.n_others):
            return False
        for i in range(self.n_watched):
            watched = &self.watched[i]
            version = dict_version(watched.dict)
            if version == 0 or version != watched.version:
                if not self.all_hold(self.guards + watched.first, watched.n):
                    return False
                watched.version = version
        return True

    def failed(self):
        """Return a description of the first guard that fails, or None."""
        cdef int i
        for i in range(self.n_guards):
            if not self.all_hold(&self.guards[i], 1):
                return _guard_text(&self.guards[i])
        return None

    cdef bint all_hold(self, guard_t *guards, int n) except -1:
        """Check n guards."""
        cdef guard_t *guard
        cdef PyObject *found
        cdef int i
        for i in range(n):
            guard = &guards[i]
            if guard.kind == C_LIST_LENGTH:
                if PyList_GET_SIZE(<PyObject *>guard.container) != guard.number:
                    return False
                continue
            if guard.kind > C_CELL:
                if not _holds(guard):
                    return False
                continue
            if guard.kind == C_ITEM:
                found = PyDict_GetItem(<PyObject *>guard.container, <PyObject *>guard.key)
            elif guard.kind == C_CELL:
                found = PyCell_GET(<PyObject *>guard.container)
            else:
                found = (PyList_GET_ITEM(<PyObject *>guard.container, guard.number)
                         if guard.number < PyList_GET_SIZE(<PyObject *>guard.container) else NULL)
            if <void *>found != guard.value and (
                    found == NULL or guard.value == NULL or not is_same_value(<object>found, <object>guard.value)):
                return False
        return True


cdef bint _holds(guard_t *guard) except -1:
    """Check a guard of a less frequent kind."""
    cdef PyObject *container = <PyObject *>guard.container
    cdef PyObject *value = <PyObject *>guard.value
    cdef PyObject *found
    if guard.kind == C_OBJECT:
        if class_of(guard.container) != <PyObject *>guard.key:
            return False
        found = dict_of(container)
        Py_XDECREF(found)
        return found == value
    if guard.kind == C_FUNCTION:
        return (PyFunction_GET_CODE(container) == PyTuple_GET_ITEM(value, 0)
                and _is_or_none(PyFunction_GET_DEFAULTS(container), PyTuple_GET_ITEM(value, 1))
                and _is_or_none(PyFunction_GET_KW_DEFAULTS(container), PyTuple_GET_ITEM(value, 2)))
    if guard.kind == C_CLASS:
        if guard.number and type_version(guard.container) == <uint64_t>guard.number:
            return True
        if not _same_class(<object>container, <list>guard.value):
            return False
        getattr(<object>container, "__dict__")               # a lookup assigns a version tag
        guard.number = type_version(guard.container)
        return True
    if guard.kind == C_ITEMS:
        return _same_items(container, <PyObject *>guard.key, value)
    if guard.kind == C_LENGTH:
        return PyObject_Size(<object>container) == guard.number
    if guard.kind == C_ATTRIBUTE:
        now = attribute(<object>container, <object>guard.key, _missing)
        return (now is _missing) == (value == NULL) and (value == NULL or is_same_value(now, <object>guard.value))
    if PySet_GET_SIZE(container) != guard.number:
        return False
    return guard.number == 0 or <object>container == <object>guard.value


_missing = object()


def attribute(owner, slot, default):
    """Read a slot through its descriptor; return `default` if it is empty."""
    try:
        return slot.__get__(owner)
    except AttributeError:
        return default


cdef inline bint _is_or_none(PyObject *found, PyObject *value) noexcept:
    return found == value or (found == NULL and value == <PyObject *>None)


ANY = object()            # stands for an item that a program reads and sets itself


cdef bint _same_items(PyObject *dict, PyObject *keys, PyObject *values) except -1:
    """Compare all items, including their order."""
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t position = 0, i = 0
    if PyDict_Size(dict) != PyTuple_GET_SIZE(keys):
        return False
    while PyDict_Next(dict, &position, &key, &value):
        if key != PyTuple_GET_ITEM(keys, i) and not is_same_value(<object>key, <object>PyTuple_GET_ITEM(keys, i)):
            return False
        if value != PyTuple_GET_ITEM(values, i) and <void *>PyTuple_GET_ITEM(values, i) != <void *>ANY and (
                not is_same_value(<object>value, <object>PyTuple_GET_ITEM(values, i))):
            return False
        i += 1
    return True


cdef object _guard_text(const guard_t *guard):
    """Describe a guard."""
    container = <object>guard.container
    if guard.kind == C_ITEMS:
        for key, value in zip(<object>guard.key, <object>guard.value):
            if key not in container or (value is not ANY and not is_same_value(container[key], value)):
                return repr(key)
        return f"the keys of a {type(container).__name__}"
    if guard.kind == C_LENGTH or guard.kind == C_LIST_LENGTH:
        return f"a {type(container).__name__} of {guard.number} entries"
    if guard.kind == C_FUNCTION or guard.kind == C_CLASS:
        return container.__qualname__
    if guard.kind == C_OBJECT or guard.kind == C_SET:
        return f"a {type(container).__name__}"
    return repr(<object>guard.key)
