"""
Slots of types that Cython does not fill: of Tensor, an attribute dict made when it is needed, and a `__new__` that
never leaves a tensor without an array, installed when this module is imported; of modules, fast lookup of attributes.
"""

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject, visitproc
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport array_empty, array_t, device
from cygrad._core.arrays.dtype cimport default_float, dtype, is_complex, is_floating, itemsize
from cygrad._core.graph.boxing cimport is_entry
from cygrad._core.graph.node cimport FREE_THREADED, gc_track_all, lock_lending, make_lendable, unlock_lending
from cygrad._core.graph.tensor cimport Tensor, adopt, check_elements, data_escapes, is_meta, without_elements
from cygrad._core.memory.atomic cimport atomic_load
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

import math
import threading
import weakref

from cygrad._core.arrays.array import CPU, MEMORY_FORMATS, META, STRIDED, Size, layout, memory_format as MemoryFormat
from cygrad._core.graph.argument_errors import as_integer, name_operation
from cygrad._core.graph.tensor import install


# -------------------------------------------------------------------------------------------------------------- tensors

# ---------------------------------------------------------------------------------------------------------- tensor type

cdef extern from "Python.h":
    unsigned long IMMUTABLETYPE "Py_TPFLAGS_IMMUTABLETYPE"
    ctypedef PyObject *(*_getattro_t)(PyObject *, PyObject *) except NULL
    ctypedef PyObject *(*_call_t)(PyObject *, PyObject *, PyObject *) except NULL
    ctypedef struct _Type "PyTypeObject":
        const char *tp_name
        unsigned long tp_flags
        Py_ssize_t tp_dictoffset
        int (*tp_traverse)(PyObject *, visitproc, void *) noexcept
        int (*tp_clear)(PyObject *) noexcept
        object (*tp_new)(_Type *, object, PyObject *)
        void (*tp_dealloc)(PyObject *) noexcept
        _getattro_t tp_getattro
        _call_t tp_call


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
    """Set the dict of user attributes of the tensor."""
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
    for kind in (Size, layout, MemoryFormat):
        kind.__module__ = "cygrad"
    cls.tp_dictoffset = <char *>&any_tensor.attributes - <char *><void *>any_tensor
    _bare_new, cls.tp_new = cls.tp_new, _new
    install({"__dict__": property(attributes_of, set_attributes)})


_complete_type()


# ------------------------------------------------------------------------------------------------------ tensor metadata

# Metadata of a tensor: sizes, strides, memory, version. Methods and properties of Tensor.

_contiguous = MEMORY_FORMATS["contiguous_format"]
_CHANNELS_LAST = {MEMORY_FORMATS["channels_last"]: 4, MEMORY_FORMATS["channels_last_3d"]: 5}


cdef int _dimension(Tensor tensor, object dim, str operation) except -1:
    cdef int overflow = 0
    cdef int64_t value, n = tensor.array.ndim
    if not PyLong_CheckExact(dim):
        dim = as_integer(operation, "dim", dim)
    value = PyLong_AsLongLongAndOverflow(dim, &overflow)
    if overflow:
        value = overflow * (<int64_t>1 << 62)
    if not -max(n, 1) <= value < max(n, 1) or n == 0:
        raise IndexError(f"{operation}: dimension out of range (got {dim}, expected to be in "
                         f"[{-max(n, 1)}, {max(n, 1) - 1}]).")
    return <int>(value if value >= 0 else value + n)


def size(Tensor self not None, dim=None):
    """Sizes of the dimensions as a tuple, or the size of dimension `dim`.

    Examples
    --------
    >>> cygrad.ones(2, 3).size(), cygrad.ones(2, 3).size(-1)
    ((2, 3), 3)
    """
    if dim is None:
        return self.shape
    return self.array.shape[_dimension(self, dim, "size")]


def stride(Tensor self not None, dim=None):
    """Strides in elements as a tuple, or that of dimension `dim`.

    Examples
    --------
    >>> cygrad.ones(2, 3).stride(), cygrad.ones(2, 3).stride(0)
    ((3, 1), 3)
    """
    cdef int i
    if is_meta(self.array):            # a meta tensor has the strides of an ordinary one
        strides = [math.prod([max(n, 1) for n in self.shape[i + 1:]]) for i in range(self.array.ndim)]
        return tuple(strides) if dim is None else strides[_dimension(self, dim, "stride")]
    if dim is None:
        return tuple([self.array.strides[i] for i in range(self.array.ndim)])
    return self.array.strides[_dimension(self, dim, "stride")]


def storage_offset(Tensor self not None):
    """Offset of the first element in the storage, in elements.

    Examples
    --------
    >>> cygrad.arange(4)[1:].storage_offset()
    1
    """
    return (self.array.data - self.array.storage.data) // itemsize(self.array.dtype)


def _storage_nbytes(Tensor self not None):
    """Bytes of the storage."""
    return self.array.storage.nbytes


def data_ptr(Tensor self not None):
    """Address of the first element; 0 without elements.

    Examples
    --------
    >>> x = cygrad.ones(2)
    >>> x[1:].data_ptr() - x.data_ptr()
    4
    """
    data_escapes()                          # code with the address can write there
    return 0 if is_meta(self.array) or self.array.size == 0 else <size_t>self.array.data


def dim(Tensor self not None):
    """Number of dimensions.

    Examples
    --------
    >>> cygrad.ones(2, 3).dim()
    2
    """
    return self.array.ndim


def numel(Tensor self not None):
    """Number of elements.

    Examples
    --------
    >>> cygrad.ones(2, 3).numel()
    6
    """
    return self.array.size


def element_size(Tensor self not None):
    """Bytes per element.

    Examples
    --------
    >>> cygrad.ones(2).element_size()
    4
    """
    return itemsize(self.array.dtype)


def nbytes(Tensor self not None):
    """Bytes of all elements.

    Examples
    --------
    >>> cygrad.ones(2, 3).nbytes
    24
    """
    return self.array.size * itemsize(self.array.dtype)


def is_contiguous(Tensor self not None, memory_format=_contiguous):
    """Whether the tensor is contiguous, in row-major order or in a memory format.

    Examples
    --------
    >>> cygrad.ones(2, 3).t().is_contiguous()
    False
    """
    if memory_format is _contiguous:
        return bool(self.array.contiguous) or is_meta(self.array)
    if not isinstance(memory_format, str) or memory_format not in _CHANNELS_LAST:
        raise RuntimeError(f"is_contiguous: unsupported memory format (got {memory_format!r}, expected "
                           "contiguous_format, channels_last or channels_last_3d).")
    if self.array.ndim != _CHANNELS_LAST[memory_format]:
        return False
    return bool(self.detach().permute((0, *range(2, self.array.ndim), 1)).is_contiguous())


def _device(Tensor self not None):
    """The device of the tensor.

    Examples
    --------
    >>> cygrad.ones(2).device
    device(type='cpu')
    """
    return META if is_meta(self.array) else CPU


def has_no_elements(Tensor self not None):
    """Whether the tensor is on the ``meta`` device.

    Examples
    --------
    >>> cygrad.ones(2, device="meta").is_meta
    True
    """
    return bool(is_meta(self.array))


def has_elements(Tensor self not None):
    """Whether the elements are in the CPU's memory.

    Examples
    --------
    >>> cygrad.ones(2).is_cpu
    True
    """
    return not is_meta(self.array)


def placed(Tensor self not None, bint meta):
    """Return the tensor, or a meta tensor of its shape; a meta tensor cannot be copied to the CPU."""
    if not meta:
        if not is_entry(self):
            check_elements(self.array, "to")
        return self
    cdef Tensor shadow = without_elements(self)
    return shadow if shadow is self or not self.requires_grad else shadow.requires_grad_()


def is_floating_point(Tensor self not None):
    """Whether the dtype is float32 or float64.

    Examples
    --------
    >>> cygrad.ones(2).is_floating_point()
    True
    """
    return bool(is_floating(self.array.dtype))


def has_complex_elements(Tensor self not None):
    """Whether the dtype is complex64 or complex128.

    Examples
    --------
    >>> cygrad.tensor([1j]).is_complex()
    True
    """
    return bool(is_complex(self.array.dtype))


def _version(Tensor self not None):
    """The version: number of in-place operations on this memory."""
    if self.array.version == NULL:
        raise RuntimeError("_version: Inference tensors do not track version counter.")
    return atomic_load(&self.array.version.value)


def _base(Tensor self not None):
    """The tensor that this one is a view of, or None."""
    return self.base


def _is_view(Tensor self not None):
    """Whether this tensor is a view of another one."""
    return self.base is not None


def is_inference(Tensor self not None):
    """Whether the tensor was created in inference mode.

    Examples
    --------
    >>> with cygrad.inference_mode():
    ...     cygrad.ones(2).is_inference()
    True
    """
    return self.array.version == NULL


def _get_device(Tensor self not None):
    """The index of the device: -1 for the CPU.

    Examples
    --------
    >>> cygrad.ones(2).get_device()
    -1
    """
    return -1


METHODS = {
    "size": size,
    "stride": stride,
    "storage_offset": storage_offset,
    "_storage_nbytes": _storage_nbytes,
    "data_ptr": data_ptr,
    "dim": dim,
    "numel": numel,
    "itemsize": property(element_size),
    "element_size": element_size,
    "nbytes": property(nbytes),
    "is_contiguous": is_contiguous,
    "is_floating_point": is_floating_point,
    "is_complex": has_complex_elements,
    "_version": property(_version),
    "_base": property(_base),
    "_is_view": _is_view,
    "is_inference": is_inference,
    "nelement": numel,
    "device": property(_device),
    "is_meta": property(has_no_elements),
    "layout": STRIDED,
    "is_cpu": property(has_elements),
    "get_device": _get_device,
    **dict.fromkeys(("is_cuda", "is_hpu", "is_ipu", "is_maia", "is_mkldnn", "is_mps", "is_mtia", "is_nested",
                     "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"), False),
}


# -------------------------------------------------------------------------------------------------------------- modules

# Fast attribute lookup and calls of modules: parameters, buffers and children in their dicts, and forward.
#
# A class with ``__getattr__`` or ``__call__`` written in Python gets slots that look those methods up each time. If a
# class has the methods of `Module`, unchanged, `fill_slots` sets slots that do the same in C.

cdef extern from "Python.h":
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
