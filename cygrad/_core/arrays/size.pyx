"""
`Size`: the sizes of a tensor as a tuple of its own type.

Construction and slicing are C functions in the slots of the type, so that it costs hardly more than a plain tuple, and
indexing and comparing cost the same.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from cygrad._core.arrays.array cimport array_t
from cygrad._core.arrays.dtype import library_name

cdef extern from "Python.h":
    ctypedef struct _Sequence "PySequenceMethods":
        object (*sq_repeat)(object, Py_ssize_t)
    ctypedef struct _Mapping "PyMappingMethods":
        object (*mp_subscript)(object, object)
    ctypedef struct _Type "PyTypeObject":
        object (*tp_alloc)(_Type *, Py_ssize_t)
        _Sequence *tp_as_sequence
        _Mapping *tp_as_mapping
    PyObject *_item "PyTuple_GET_ITEM"(object, Py_ssize_t)


class Size(tuple):
    """
    The sizes of the dimensions of a tensor: a tuple that knows how many elements there are.

    Parameters
    ----------
    sizes : iterable of int, optional

    Examples
    --------
    >>> import cygrad
    >>> size = cygrad.zeros(2, 3).shape
    >>> size, size.numel()
    ((2, 3), 6)
    >>> isinstance(size[1:], cygrad.Size)
    True
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        """Accept integers only."""
        whole = []
        for position, value in enumerate(sizes):
            if not hasattr(value, "__index__"):
                raise TypeError(f"Size: sizes must be integers (got {type(value).__name__} at position {position}).")
            whole.append(value.__index__())
        return tuple.__new__(cls, whole)

    def __repr__(self):
        name = library_name()
        if name == "cygrad":
            return tuple.__repr__(self)
        return f"{name}.Size([{', '.join(map(str, self))}])"

    def __reduce__(self):
        return Size, (tuple(self),)

    def __add__(self, other):
        return Size(tuple.__add__(self, other))

    def __radd__(self, other):
        return Size(tuple.__add__(other, tuple(self))) if isinstance(other, tuple) else NotImplemented

    def numel(self):
        """Return the product of the sizes."""
        count = 1
        for n in self:
            count *= n
        return count


cdef _Type *_size = <_Type *>Size
cdef _Type *_tuple = <_Type *>tuple


cdef object size_of(const array_t *array):
    cdef object made = _size.tp_alloc(_size, array.ndim)
    cdef object n
    cdef int i
    for i in range(array.ndim):
        n = array.shape[i]
        Py_INCREF(n)
        PyTuple_SET_ITEM(made, i, n)
    return made


cdef object _sized(object found):
    """Convert a plain tuple to a Size."""
    cdef Py_ssize_t i, n
    if not PyTuple_CheckExact(found):
        return found
    n = PyTuple_GET_SIZE(found)
    cdef object made = _size.tp_alloc(_size, n)
    for i in range(n):
        Py_INCREF(<object>_item(found, i))
        PyTuple_SET_ITEM(made, i, <object>_item(found, i))
    return made


cdef object _subscript(object self, object key):
    return _sized(_tuple.tp_as_mapping.mp_subscript(self, key)) if isinstance(key, slice) else \
        _tuple.tp_as_mapping.mp_subscript(self, key)


cdef object _repeat(object self, Py_ssize_t count):
    return _sized(_tuple.tp_as_sequence.sq_repeat(self, count))


_size.tp_as_mapping.mp_subscript = _subscript
_size.tp_as_sequence.sq_repeat = _repeat
