"""
Features of Tensor that Cython's extension types lack: a lazily created attribute dict, and a `__new__` that never
leaves a tensor without an array. Installed once, when this module is imported.
"""

cimport cython
from cpython.object cimport PyObject, visitproc
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_empty, array_t
from cygrad._core.arrays.dtype cimport default_float, dtype
from cygrad._core.arrays.placement cimport device
from cygrad._core.graph.borrowed_references cimport FREE_THREADED, lock_lending, make_lendable, unlock_lending
from cygrad._core.graph.node cimport gc_track_all
from cygrad._core.graph.tensor cimport Tensor
from cygrad._core.graph.tensor_identity cimport adopt
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

from cygrad._core.arrays.placement import layout, memory_format
from cygrad._core.arrays.size import Size
from cygrad._core.graph.tensor import install

cdef extern from "Python.h":
    unsigned long IMMUTABLETYPE "Py_TPFLAGS_IMMUTABLETYPE"
    ctypedef struct _Type "PyTypeObject":
        const char *tp_name
        unsigned long tp_flags
        Py_ssize_t tp_dictoffset
        int (*tp_traverse)(PyObject *, visitproc, void *) noexcept
        int (*tp_clear)(PyObject *) noexcept
        object (*tp_new)(_Type *, object, PyObject *)
        void (*tp_dealloc)(PyObject *) noexcept


# ---- user attributes

# Cython would create a dict for every tensor; most never get an attribute. So the type gets a dict slot, which CPython
# fills with the first attribute and the garbage collector visits through these two functions.

cdef void _drop_attributes(PyObject *self) noexcept:
    cdef PyObject *attributes = (<Tensor>self).attributes
    (<Tensor>self).attributes = NULL
    Py_XDECREF(attributes)


cdef int (*_tensor_traverse)(PyObject *, visitproc, void *) noexcept
cdef int (*_tensor_clear)(PyObject *) noexcept


cdef int _traverse(PyObject *self, visitproc visit, void *argument) noexcept:
    cdef int status
    if (<Tensor>self).attributes != NULL:
        status = visit((<Tensor>self).attributes, argument)
        if status:
            return status
    return _tensor_traverse(self, visit, argument)


cdef int _clear(PyObject *self) noexcept:
    _drop_attributes(self)
    return _tensor_clear(self)


def attributes_of(Tensor tensor not None):
    """Return the dict of user attributes of the tensor."""
    with cython.critical_section(tensor):        # as CPython does when it fills the slot
        if tensor.attributes == NULL:
            made = {}
            Py_INCREF(made)
            tensor.attributes = <PyObject *>made
            gc_track_all()
    return <dict>tensor.attributes


def set_attributes(Tensor tensor not None, dict attributes not None):
    """Make a dict the one of the attributes that users set on the tensor."""
    cdef PyObject *former
    Py_INCREF(attributes)
    with cython.critical_section(tensor):
        former, tensor.attributes = tensor.attributes, <PyObject *>attributes
    gc_track_all()
    Py_XDECREF(former)


# ---- deallocation

cdef void (*_tensor_dealloc)(PyObject *) noexcept


cdef void _dealloc(PyObject *self) noexcept:
    """
    Without a GIL: erase the borrowed pointer to a Tensor whose refcount is zero. This runs before Cython's deallocator,
    which raises the refcount temporarily, so that the Tensor would seem alive.
    """
    cdef array_t *array = (<Tensor>self).array
    if array != NULL:
        lock_lending(array)
        if array.tensor == <void *>self:
            array.tensor = NULL
        unlock_lending(array)
    _tensor_dealloc(self)


# ---- construction

cdef object (*_bare_new)(_Type *, object, PyObject *)


cdef object _new(_Type *cls, object arguments, PyObject *options):
    """``Tensor.__new__`` for Python code: the result has an array from the start, an empty one."""
    cdef Tensor tensor = <Tensor>_bare_new(cls, arguments, options)
    cdef int64_t nothing = 0
    tensor.array = array_empty(default_float(), 1, &nothing)
    if tensor.array == NULL:
        check(MEMORY_ERROR)
    tensor.array.tensor = <void *>tensor
    make_lendable(<PyObject *>tensor)
    if cls.tp_new is not _new and (arguments or options != NULL):      # called by the `__new__` of a subclass
        adopt(tensor, Tensor(*arguments, **({} if options == NULL else <object>options)), False)
    return tensor


def make_subclass(cls, Tensor data not None, requires_grad=False):
    """Create a tensor of the subclass `cls` over the memory of `data`, a leaf."""
    cdef Tensor tensor
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"make_subclass: expected a subclass of Tensor (got {cls!r}).")
    tensor = <Tensor>_bare_new(<_Type *>cls, (), NULL)
    adopt(tensor, data, False)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def open_type():
    """Name the type ``torch.Tensor`` and allow setting its attributes, for programs written for PyTorch."""
    cdef _Type *cls = <_Type *>Tensor
    cls.tp_name = b"torch.Tensor"
    cls.tp_flags &= ~IMMUTABLETYPE


cdef list _kept_names = []                # the memory of tp_name


cdef int _complete_type() except -1:
    cdef Tensor any_tensor = Tensor.__new__(Tensor)
    cdef _Type *cls = <_Type *>Tensor
    global _tensor_traverse, _tensor_clear, _tensor_dealloc, _bare_new
    _tensor_traverse, _tensor_clear = cls.tp_traverse, cls.tp_clear
    cls.tp_traverse, cls.tp_clear = _traverse, _clear
    _tensor_dealloc = cls.tp_dealloc
    if FREE_THREADED:
        cls.tp_dealloc = _dealloc
    for kind, name in (Tensor, b"cygrad.Tensor"), (dtype, b"cygrad.dtype"), (device, b"cygrad.device"):
        _kept_names.append(name)
        (<_Type *>kind).tp_name = <bytes>name
    for kind in (Size, layout, memory_format):
        kind.__module__ = "cygrad"
    cls.tp_dictoffset = <char *>&any_tensor.attributes - <char *><void *>any_tensor
    _bare_new, cls.tp_new = cls.tp_new, _new
    install({"__dict__": property(attributes_of, set_attributes)})


_complete_type()
