"""
Guards on what a function reads besides its arguments.

`cygrad.compiling.guards` collects them as (kind, container, key, value). Version tags of dicts and types, where Python
has them, replace the comparisons while nothing has changed.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp
from cygrad._core.arrays.array cimport ARRAY, array_t, release, share_memory, value_t
from cygrad._core.graph.node cimport gradient_t
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.optimizers.optimize cimport update_t
from cygrad._core.program.executor cimport LIST_SPACE, TEMPORARY_SPACE


# --------------------------------------------------------------------------------------------------------------- frames

# Working memory of one execution of a program.

cdef run_frame_t *new_frame(int n_slots, int n_lists, int n_entries, int n_updates, int n_tensors,
                            int n_outgoing) noexcept:
    cdef run_frame_t *frame = <run_frame_t *>calloc(1, sizeof(run_frame_t) + (
        n_slots * (sizeof(value_t) + sizeof(int64_t)) + n_lists * sizeof(value_t) + n_updates * sizeof(update_t)
        + (n_entries + 3 * n_tensors + n_outgoing) * sizeof(void *)))
    if frame == NULL:
        return NULL
    frame.table = <value_t *>(frame + 1)
    frame.lists = frame.table + n_slots
    frame.updates = <update_t *>(frame.lists + n_lists)
    frame.pending_uses = <int64_t *>(frame.updates + n_updates)
    frame.entries = <array_t **>(frame.pending_uses + n_slots)
    frame.tensors = <void **>(frame.entries + n_entries)
    frame.targets = <gradient_t **>(frame.tensors + n_tensors)
    frame.gradients = <array_t **>(frame.targets + n_tensors)
    frame.outgoing = frame.gradients + n_tensors
    frame.values.spaces[TEMPORARY_SPACE], frame.values.spaces[LIST_SPACE] = frame.table, frame.lists
    return frame


cdef void free_frame(run_frame_t *frame, int n_slots, const char *is_view) noexcept:
    cdef array_t *view
    cdef int i
    for i in range(n_slots):
        if is_view[i] and frame.table[i].kind == ARRAY:
            view = frame.table[i].of.array
            view.storage = NULL
            view.version = NULL
            release(view)
    free(frame)


# --------------------------------------------------------------------------------------------------------------- guards

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
    /* The location of the dict of an object, NULL if it has none or Python may move it. */
    #if PY_VERSION_HEX < 0x030D0000
    #define dict_slot(object) ((void *)_PyObject_GetDictPtr((PyObject *)(object)))
    #else
    #define dict_slot(object) NULL
    #endif
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
    void *dict_slot(void *object)
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
    C_EMPTY_SET


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
            if name not in found or not is_same_value(found[name], value):
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
                elif kind == OBJECT and value is not entries:
                    guard.number = <int64_t>dict_slot(<void *>container)
                elif kind == SET and not value:
                    guard.kind = C_EMPTY_SET
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
            if guard.kind == C_OBJECT and guard.number:
                if class_of(guard.container) != <PyObject *>guard.key or (
                        (<void **>guard.number)[0] != guard.value):
                    return False
                continue
            if guard.kind == C_EMPTY_SET:
                if PySet_GET_SIZE(<PyObject *>guard.container):
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
    for now, former in zip(<object>container, <list>guard.value):          # the order depends on the set's history
        if not is_same_value(now, former):
            return False
    return True


_missing = object()


def attribute(owner, slot, default):
    """Read a slot through its descriptor; return `default` if it is empty."""
    try:
        return slot.__get__(owner)
    except AttributeError:
        return default


cdef inline bint _is_or_none(PyObject *found, PyObject *value) noexcept:
    return found == value or (found == NULL and value == <PyObject *>None)


ANY = object()            # placeholder of an item that a program reads and sets itself


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
    if guard.kind == C_OBJECT or guard.kind == C_SET or guard.kind == C_EMPTY_SET:
        return f"a {type(container).__name__}"
    return repr(<object>guard.key)


# --------------------------------------------------------------------------------------------------------- alias guards

# Guards on memory that arguments, constants and gradients share.
#
# A program may be valid only for one pattern of aliasing. Constants are fixed arrays, so only arguments and gradients
# are looked up: among the preceding ones and in the table of constants.

cdef enum:
    MAX_INLINE = 32           # arguments whose storages are compared on the stack


cdef int index_constants(aliases_t *aliases, const tensor_guard_t *layouts, int n_own, int n_tensors) except -1:
    cdef int size = 4, i, slot
    while size < 4 * (n_tensors - n_own):
        size *= 2
    aliases.layouts, aliases.n_own, aliases.n_tensors, aliases.n_storages = layouts, n_own, n_tensors, size
    aliases.storages = <void **>calloc(size, sizeof(void *))
    aliases.owners = <int32_t *>calloc(size, sizeof(int32_t))
    if aliases.storages == NULL or aliases.owners == NULL:
        raise MemoryError("compile: no memory for guards")
    for i in range(n_own, n_tensors):
        slot = _find(aliases.storages, size, layouts[i].array.storage)
        if aliases.storages[slot] == NULL:
            aliases.storages[slot], aliases.owners[slot] = layouts[i].array.storage, i
    return 0


cdef void free_aliases(aliases_t *aliases) noexcept:
    free(aliases.storages)
    free(aliases.owners)


cdef inline int _find(void **storages, int size, const void *storage) noexcept:
    """Return the slot of a storage in the table, or the free slot for it."""
    cdef int slot = (<size_t>storage >> 6) * 0x9E3779B1u & (size - 1)
    while storages[slot] != NULL and storages[slot] != storage:
        slot = (slot + 1) & (size - 1)
    return slot


cdef inline array_t *_array(run_frame_t *frame, int number) noexcept:
    return (<Tensor><PyObject *>frame.tensors[number]).array


cdef inline int _constant_with(const aliases_t *aliases, const void *storage) noexcept:
    """Return the first constant with this storage, or -1."""
    cdef int slot = _find(aliases.storages, aliases.n_storages, storage)
    return -1 if aliases.storages[slot] == NULL else aliases.owners[slot]


cdef inline int _first_with(const aliases_t *aliases, run_frame_t *frame, const void *storage, int stop) noexcept:
    """Return the first of the arguments before `stop` with this storage, else the first such constant, else -1."""
    cdef int i
    for i in range(stop):
        if _array(frame, i).storage == storage:
            return i
    return _constant_with(aliases, storage)


cdef bint same_aliases(const aliases_t *aliases, run_frame_t *frame, bint sees_gradients,
                       bint any_written) noexcept:
    cdef const tensor_guard_t *layout
    cdef int i, k, found
    cdef int own = min(aliases.n_own, MAX_INLINE)
    cdef void *storages[MAX_INLINE]
    for i in range(own):
        storages[i] = _array(frame, i).storage
    for i in range(aliases.n_own):
        layout = &aliases.layouts[i]
        if i < MAX_INLINE:
            found = -1
            for k in range(i):
                if storages[k] == storages[i]:
                    found = k
                    break
            if found < 0 and aliases.n_own < aliases.n_tensors:
                found = _constant_with(aliases, storages[i])
        else:
            found = _first_with(aliases, frame, _array(frame, i).storage, i)
        if found != layout.same_as:
            return False
        if found < 0:
            continue
        if _array(frame, i).data - _array(frame, found).data != layout.offset or (
                _array(frame, i).version != _array(frame, found).version):
            return False
        for k in range(aliases.n_tensors):
            if (frame.tensors[k] == frame.tensors[i]) != (
                    aliases.layouts[k].identity == layout.identity):
                return False
    if sees_gradients and not _same_gradients(aliases, frame):
        return False
    return not any_written or _foreign_memory_is_disjoint(aliases, frame)


cdef bint _same_gradients(const aliases_t *aliases, run_frame_t *frame) noexcept:
    """Check the aliasing of gradients that the program reads."""
    cdef const tensor_guard_t *layout
    cdef array_t *array
    cdef array_t *other
    cdef int i, k, found
    for i in range(aliases.n_tensors):
        layout = &aliases.layouts[i]
        array = frame.gradients[i]
        if layout.gradient != 1 or array == NULL:
            continue
        found = _first_with(aliases, frame, array.storage, aliases.n_own)
        other = array if found < 0 else _array(frame, found)
        for k in range(i if found < 0 else 0):
            if aliases.layouts[k].gradient == 1 and frame.gradients[k] != NULL and (
                    frame.gradients[k].storage == array.storage):
                found, other = aliases.n_tensors + k, frame.gradients[k]
                break
        if found != layout.gradient_same_as or array.version != other.version or (
                found >= 0 and array.data - other.data != layout.gradient_offset):
            return False
    return True


cdef bint _foreign_memory_is_disjoint(const aliases_t *aliases, run_frame_t *frame) noexcept:
    """Check that memory owned by another library does not overlap other tensors."""
    cdef array_t *array
    cdef array_t *other
    cdef int i, k
    for i in range(aliases.n_tensors):
        array = _array(frame, i)
        if array.storage.owner == NULL:
            continue
        for k in range(aliases.n_tensors):
            other = _array(frame, k)
            if other.storage != array.storage and share_memory(array, other):
                return False
    return True
