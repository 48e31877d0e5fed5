"""
The free list of tensors.

Cython's own free list clears and reinitializes each object, and saves the current exception around `__dealloc__`. A
Tensor with nothing but an array, a node and a gradient leaves its fields as in a new one, so that freeing and creating
it costs a third.
"""

from cpython.object cimport PyObject
from cygrad._core.arrays.array cimport array_t, release
from cygrad._core.graph.borrowed_references cimport FREE_THREADED
from cygrad._core.graph.node cimport gradient_release, gradient_t, has_weak_references
from cygrad._core.graph.tensor cimport Tensor, type_of
from cygrad._core.memory.errors cimport unlikely

cdef extern from "Python.h":
    ctypedef struct _Type "PyTypeObject":
        object (*tp_new)(_Type *, object, PyObject *)
        void (*tp_dealloc)(PyObject *) noexcept
    void PyObject_GC_Track(PyObject *)
    void PyObject_GC_UnTrack(PyObject *)

cdef enum:
    SPARE_TENSORS = 512

cdef PyObject *_spare[SPARE_TENSORS]
cdef int _n_spare = 0
cdef tuple _nothing = ()

# What Cython generated for the type, before other modules replaced slots.
cdef object (*_cython_new)(_Type *, object, PyObject *)
cdef void (*_cython_dealloc)(PyObject *) noexcept
_cython_new = (<_Type *>Tensor).tp_new
_cython_dealloc = (<_Type *>Tensor).tp_dealloc


cdef Tensor bare_tensor():
    global _n_spare
    if unlikely(_n_spare == 0):
        return <Tensor>_cython_new(<_Type *>Tensor, _nothing, NULL)
    _n_spare -= 1
    PyObject_GC_Track(_spare[_n_spare])
    return <Tensor>_spare[_n_spare]              # its first reference


cdef void _dealloc(PyObject *self) noexcept:
    global _n_spare
    cdef array_t *array = (<Tensor>self).array
    cdef gradient_t *gradient = (<Tensor>self).gradient
    if unlikely(type_of(self) != <PyObject *>Tensor or _n_spare == SPARE_TENSORS or (<Tensor>self).attributes != NULL
                or (<Tensor>self).leaf_hooks is not None or (<Tensor>self).dual_level or has_weak_references(self)):
        _cython_dealloc(self)
        return
    PyObject_GC_UnTrack(self)
    if array != NULL and array.tensor == <void *>self:
        array.tensor = NULL
    # Objects that die with it may create Tensors and get this one: reset its fields before dropping any reference.
    if (<Tensor>self).node is not None:
        _node = (<Tensor>self).node
        (<Tensor>self).node = None
    if (<Tensor>self).base is not None:
        _base = (<Tensor>self).base
        (<Tensor>self).base = None
    if (<Tensor>self).grad_tensor is not None:
        _grad = (<Tensor>self).grad_tensor
        (<Tensor>self).grad_tensor = None
    (<Tensor>self).array = NULL
    (<Tensor>self).gradient = NULL
    (<Tensor>self).output_nr = (<Tensor>self).leaf_requires_grad = 0
    (<Tensor>self).view_kind = (<Tensor>self).untracked = 0
    (<Tensor>self).view_version = 0
    _spare[_n_spare] = self
    _n_spare += 1
    release(array)
    if gradient != NULL:
        gradient_release(gradient)


if not FREE_THREADED:
    (<_Type *>Tensor).tp_dealloc = _dealloc
