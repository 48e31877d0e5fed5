"""
Indexing: ``x[key]`` and ``x[key] = value``.

A key has a basic part (integers, slices, None, ...) that makes a view, and an advanced part (masks and integer tensors)
that gathers elements of that view. Outside the graph, the basic part is one view; a recorded one is a chain of the view
operators of the table, so that each step has its node and its derivative. The advanced part is the operator `index`.
"""

cimport cython
cimport numpy as cnp
from cpython.bool cimport PyBool_Check
from cpython.list cimport PyList_Check
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Check
from cpython.slice cimport PySlice_Check
from cpython.tuple cimport PyTuple_Check
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport (
    INTEGERS, MAX_DIMS, array_from_numpy, array_t, array_view, find_kernel, kernel_t, register_kernel, release,
    replace_version, retain, value_t,
)
from cygrad._core.arrays.dtype cimport (
    BOOL, FLOAT64, INT64, UINT8, dtype_name, dtype_object, is_complex, is_integral, is_short,
)
from cygrad._core.creation.creation cimport full_tensor, ndarray_over, plain_number, tensor_from
from cygrad._core.dispatch.dispatch cimport call, call_inplace, call_with_integers
from cygrad._core.elementwise.elementwise cimport copy_into, fill
from cygrad._core.graph.boxing cimport box_number, is_entry, overrides
from cygrad._core.graph.inplace cimport bump_version, check_inplace
from cygrad._core.graph.modes cimport EXCEPT_AUTOCAST, grad_enabled, thread_state, thread_state_t
from cygrad._core.graph.node cimport forget_accumulator
from cygrad._core.graph.tensor cimport (
    Tensor, adopt, any_meta, as_tensor, check_elements, describe, is_array_api, is_meta, protocol, wrap, wrap_view,
)
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.kernels.shape.slicing cimport selected
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.memory.storage cimport version_new
from cygrad._core.table.operator cimport Operator, table

import math
import numpy as np
from operator import index as python_index
from cygrad._core.graph.boxing import call_override
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------------- indexing

cnp.import_array()

cdef extern from "Python.h":
    ctypedef struct PySliceObject:
        PyObject *step
    long long PyLong_AsLongLongAndOverflow(object, int *overflow) except? -1
    int PySlice_Unpack(object, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step)

# Geometry of the view while a key is read from left to right.
cdef struct view_geometry_t:
    int ndim
    int64_t offset
    int64_t[MAX_DIMS] shape
    int64_t[MAX_DIMS] strides


# ---- the operators that keys are made of ---------------------------------------------------------

cdef Operator _select, _slice, _unsqueeze, _alias, _index, _index_put


cdef int _find_operators() except -1:
    """Look up the operators; the table is complete only after this module has been imported."""
    global _select, _slice, _unsqueeze, _alias, _index, _index_put
    _select, _slice, _unsqueeze = table["select"], table["slice"], table["unsqueeze"]
    _alias, _index, _index_put = table["alias"], table["index"], table["index_put"]
    return 0


cdef inline object _selected(Tensor self, int64_t dim, int64_t index):
    cdef int64_t[2] integers = [dim, index]
    if _select is None:
        _find_operators()
    return call_with_integers(_select, self, 2, integers, selected(self.array, <int>dim, index))


cdef object _slice_of(Tensor self, int64_t dim, int64_t start, int64_t stop, int64_t step, int64_t length):
    cdef int64_t[4] integers = [dim, start, stop, step]
    if _slice is None:
        _find_operators()
    step = step if length > 1 else 1                  # the stride of one element is never used, and might overflow
    return call_with_integers(_slice, self, 4, integers, _sliced(self.array, <int>dim, start, length, step))


cdef object _unsqueezed(Tensor self, int64_t dim):
    if _unsqueeze is None:
        _find_operators()
    return call_with_integers(_unsqueeze, self, 1, &dim, NULL)


cdef object _aliased(Tensor self):
    if _alias is None:
        _find_operators()
    return call_with_integers(_alias, self, 0, NULL, NULL)


cdef object _gather(Tensor self, list indices):
    cdef PyObject *arguments[2]
    arguments[0], arguments[1] = <PyObject *>self, <PyObject *>indices
    if _index is None:
        _find_operators()
    return call(_index, arguments, None)


cdef object _put(Tensor self, list indices, object values, object accumulate):
    cdef PyObject *arguments[4]
    arguments[0], arguments[1] = <PyObject *>self, <PyObject *>indices
    arguments[2], arguments[3] = <PyObject *>values, <PyObject *>accumulate
    if _index_put is None:
        _find_operators()
    return call_inplace(_index_put, arguments)


# ---- one entry of a key --------------------------------------------------------------------------

cdef int64_t _wrapped_index(object given, int64_t size, int dim) except -1:
    cdef int overflow = 0
    cdef int64_t index = PyLong_AsLongLongAndOverflow(given, &overflow)
    if overflow:
        index = size             # out of bounds in any case
    if index < -size or index >= size:
        raise IndexError(f"index {given} is out of bounds for dimension {dim} with size {size}")
    return index + size if index < 0 else index


cdef Py_ssize_t _slice_bounds(object key, int64_t size, Py_ssize_t *start, Py_ssize_t *stop,
                             Py_ssize_t *step) except -1:
    """Clip start, stop and step to 0..size; return the number of elements."""
    PySlice_Unpack(key, start, stop, step)
    return PySlice_AdjustIndices(size, start, stop, step[0])


cdef bint _is_basic(object item) noexcept:
    """Return whether the entry can be read without user code, which could change the shape of the tensor."""
    if PySlice_Check(item):
        return _is_bound(item.start) and _is_bound(item.stop) and _is_bound(item.step)
    return PyLong_CheckExact(item) or item is None or item is Ellipsis


cdef inline bint _is_bound(object bound) noexcept:
    return bound is None or PyLong_CheckExact(bound)


cdef object _plain_bound(object bound):
    if _is_bound(bound):
        return bound
    try:
        return python_index(bound)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method (got "
                        f"{type(bound).__name__})") from None


cdef object _plain_entry(object item):
    """Convert an entry to an integer, slice, None, ``...``, or a Tensor of integers or bool."""
    cdef int code
    cdef bint mask
    if _is_basic(item):
        return item
    if PySlice_Check(item):
        return slice(_plain_bound(item.start), _plain_bound(item.stop), _plain_bound(item.step))
    if isinstance(item, Tensor):
        if is_entry(item):
            return item
        code = (<Tensor>item).array.dtype
        mask = code == UINT8 and not is_array_api((<Tensor>item).array)
        if (<Tensor>item).array.ndim == 0 and is_integral(code) and not mask:
            return ndarray_over((<Tensor>item).array).item()
        if mask:
            warn_user("index: indexing with dtype uint8 is deprecated (it is taken for a mask); use bool for masks "
                      "and int64 for positions")
            return wrap(array_from_numpy(np.asarray(ndarray_over((<Tensor>item).array) != 0), False))
        if code != BOOL and not is_integral(code):
            raise IndexError(f"index: tensors used as indices must be integers or bool (got {item.dtype})")
        return item
    if PyBool_Check(item) or isinstance(item, np.bool_):
        return full_tensor((), bool(item), BOOL, False, "index")
    if cnp.PyArray_Check(item):
        if item.ndim == 0 and item.dtype.kind in "iu":
            return item.item()
        if item.dtype.kind not in "biu":
            raise IndexError(f"index: arrays used as indices must be integers or bool (got {item.dtype})")
        found = tensor_from(item, BOOL if item.dtype.kind == "b" else -1 if item.dtype == np.uint8 else INT64, "index")
        return _plain_entry(found) if item.dtype == np.uint8 else found
    if isinstance(item, (list, tuple, range)):
        found = tensor_from(item, -1, "index")
        if (<Tensor>found).array.size == 0:
            return tensor_from(item, INT64, "index")
        return _plain_entry(found)
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and integer or bool tensors are valid "
                     f"indices (got {type(item).__name__})")


# ---- a whole key ---------------------------------------------------------------------------------

cdef Tensor _as_int64(Tensor index):
    if index.array.dtype == INT64:
        return index
    if is_meta(index.array):
        return operators.cast(index, dtype_object(INT64))
    return tensor_from(ndarray_over(index.array), INT64, "index")


cdef Tensor _fitting_mask(Tensor mask, Tensor self, int dim):
    """Return the mask if its shape matches; an empty mask matches dimensions of any size, as in NumPy."""
    cdef int i
    cdef bint empty = False
    for i in range(mask.array.ndim):
        if mask.array.shape[i] == 0 and self.array.shape[dim + i]:
            empty = True
        elif mask.array.shape[i] != self.array.shape[dim + i]:
            raise IndexError(f"index: the shape of the mask {tuple(mask.shape)} at index {i} does not match the "
                             f"shape of the indexed tensor {tuple(self.shape)} at index {dim + i}")
    if empty:
        return tensor_from(np.zeros(self.shape[dim:dim + mask.array.ndim], bool), BOOL, "index")
    return mask


cdef inline void _keep_dimension(view_geometry_t *view, int64_t size, int64_t stride) noexcept:
    view.shape[view.ndim] = size
    view.strides[view.ndim] = stride
    view.ndim += 1


cdef inline int64_t _new_stride(Tensor self, int dim) noexcept:
    """Return the stride of a new dimension in front of `dim`, as `unsqueeze` chooses it."""
    return self.array.shape[dim] * self.array.strides[dim] if dim < self.array.ndim else 1


cdef int _consumed_by(object item) except -1:
    """Return the number of dimensions of the tensor that an entry of the key indexes."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and (<Tensor>item).array.dtype == BOOL:
        return (<Tensor>item).array.ndim
    return 1


cdef Tensor _basic_view(Tensor self, tuple key, list indices):
    """
    Return the view of the basic part of the key; `indices` receives the advanced part.

    `indices` gets an entry for the leading dimensions of the view, in order: None for a whole dimension, a tensor of
    integers, or a mask for as many dimensions as it has. The result is `self` itself if the basic part changes nothing.
    """
    cdef view_geometry_t view
    cdef Tensor current = self
    cdef bint recorded = _is_recorded(self)
    cdef bint changed = False, ellipsis = False
    cdef int dim = 0, consumed = 0, covered = 0, skip, i
    cdef Tensor advanced
    cdef int ndim = self.array.ndim
    cdef int64_t size, index
    cdef Py_ssize_t start = 0, stop = 0, step = 0, length
    view.ndim = 0
    view.offset = 0
    for item in key:
        consumed += _consumed_by(item)
        if item is Ellipsis:
            if ellipsis:
                raise IndexError("index: an index can only have a single ellipsis (`...`)")
            ellipsis = True
    if consumed > ndim:
        if ndim == 0:
            raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a "
                             "number")
        raise IndexError(f"too many indices for tensor of dimension {ndim} (got {consumed})")
    if ndim + len(key) > MAX_DIMS:
        raise IndexError(f"index: too many dimensions (got {ndim} and a key of {len(key)} entries, expected at most "
                         f"{MAX_DIMS} together)")
    for item in key:
        if PySlice_Check(item):
            size = self.array.shape[dim]
            length = _slice_bounds(item, size, &start, &stop, &step)
            if step != 1 or length != size:
                changed = True
                if recorded:
                    current = _slice_of(current, view.ndim, start, stop, step, length)
                view.offset += start * self.array.strides[dim] if length > 0 else 0
            _keep_dimension(&view, length, self.array.strides[dim] * step)
            dim += 1
        elif item is None:
            changed = True
            if recorded:
                current = _unsqueezed(current, view.ndim)
            _keep_dimension(&view, 1, _new_stride(self, dim))
        elif item is Ellipsis:
            skip = ndim - consumed
            for i in range(skip):
                _keep_dimension(&view, self.array.shape[dim + i], self.array.strides[dim + i])
            dim += skip
        elif isinstance(item, Tensor):
            advanced = <Tensor>item
            while covered < view.ndim:
                indices.append(None)
                covered += 1
            if advanced.array.dtype == BOOL:
                advanced = _fitting_mask(advanced, self, dim)
                skip = advanced.array.ndim
            else:
                skip = 1
            if skip == 0:
                # A single bool selects everything or nothing, along a new dimension.
                changed = True
                if recorded:
                    current = _unsqueezed(current, view.ndim)
                _keep_dimension(&view, 1, _new_stride(self, dim))
                advanced = advanced.reshape(1)
            for i in range(skip):
                _keep_dimension(&view, self.array.shape[dim], self.array.strides[dim])
                dim += 1
            indices.append(_as_int64(advanced) if advanced.array.dtype != BOOL else advanced)
            covered = view.ndim
        else:
            changed = True
            index = _wrapped_index(item, self.array.shape[dim], dim)
            if recorded:
                current = _selected(current, view.ndim, index)
            view.offset += index * self.array.strides[dim]
            dim += 1
    if changed and not recorded:
        while dim < ndim:
            _keep_dimension(&view, self.array.shape[dim], self.array.strides[dim])
            dim += 1
        current = wrap_view(array_view(self.array, self.array.dtype, view.ndim, view.shape, view.strides,
                                       view.offset), self)
    return current


cdef bint _stands_for_tuple(object key):
    """Return whether it is a list that is read as a tuple, as in former NumPy versions: short, not only numbers."""
    if not PyList_Check(key) or len(key) >= 32:
        return False
    for item in <list>key:
        if item is None or item is Ellipsis or PySlice_Check(item) or PySequence_Check(item):       # Tensors are, too
            return True
    return False


cdef tuple _as_entries(object key):
    """Return the key as a tuple of plain entries."""
    cdef bint plain = True
    if _stands_for_tuple(key):
        warn_user("index: a list with sequences, slices, None, ... or Tensors is read as a tuple; in a later version "
                  "it will be read as a Tensor. Write x[tuple(key)], or "
                  "x[cygrad.tensor(key)].")
        key = tuple(key)
    if not PyTuple_Check(key):
        return (_plain_entry(key),)
    for item in key:
        plain = plain and _is_basic(item)
    return <tuple>key if plain else tuple([_plain_entry(item) for item in key])


cdef inline bint _is_backward(object item) except -1:
    """Return whether the slice has a negative step."""
    if not PySlice_Check(item) or (<PySliceObject *>item).step == <PyObject *>None:
        return False
    return item.step < 0


cdef bint _any_backward(tuple entries) except -1:
    for item in entries:
        if _is_backward(item):
            return True
    return False


cdef tuple _forward(Tensor self, tuple entries, list dims):
    """Return the entries with positive steps, for the tensor flipped in the dimensions that `dims` receives."""
    cdef int dim = 0, consumed = 0
    cdef list found = []
    for item in entries:
        consumed += _consumed_by(item)
    for item in entries:
        if item is Ellipsis:
            dim += self.array.ndim - consumed
        elif _is_backward(item) and dim < self.array.ndim:
            size = self.array.shape[dim]
            start, stop, step = item.indices(size)
            item = slice(size - 1 - start, size - 1 - stop, -step)
            dims.append(dim)
        elif _is_backward(item):
            item = slice(None)               # too many entries: raises an error later
        dim += _consumed_by(item)
        found.append(item)
    return tuple(found)


cdef inline bint _is_recorded(Tensor self) except -1:
    """Return whether its views are created by operators, to be recorded or handled by modes."""
    cdef thread_state_t *state = thread_state()
    # A view of a base that was modified in place can require grad from now on.
    return state.modes & EXCEPT_AUTOCAST or (not state.grad_disabled and takes_part(self))


cdef array_t *_sliced(array_t *array, int dim, int64_t start, int64_t length, int64_t step):
    """Return every step-th element along a dimension; NULL if memory is exhausted."""
    cdef int64_t[MAX_DIMS] shape
    cdef int64_t[MAX_DIMS] strides
    cdef int i
    for i in range(array.ndim):
        shape[i] = array.shape[i]
        strides[i] = array.strides[i]
    shape[dim] = length
    strides[dim] *= step
    return array_view(array, array.dtype, array.ndim, shape, strides, start * array.strides[dim] if length else 0)


cdef inline tuple _as_tuple(object key):
    return <tuple>key if PyTuple_Check(key) else (key,)


cdef bint _any_entry(object key) except -1:
    """Return whether the key contains a tensor on the meta device."""
    for item in _as_tuple(key):
        if is_entry(item):
            return True
    return False


cdef object getitem(Tensor self, object key):
    cdef Py_ssize_t start = 0, stop = 0, step = 0
    cdef list indices
    cdef tuple entries
    cdef Tensor view
    cdef bint recorded
    if type(self) is not Tensor and overrides(self):
        return call_override(Tensor.__getitem__, (self,), (self, key), {})
    if PyLong_CheckExact(key) and self.array.ndim > 0:
        if _is_recorded(self):
            return _selected(self, 0, _wrapped_index(key, self.array.shape[0], 0))
        return wrap_view(array_view(
            self.array, self.array.dtype, self.array.ndim - 1, self.array.shape + 1, self.array.strides + 1,
            _wrapped_index(key, self.array.shape[0], 0) * self.array.strides[0]), self)
    if PySlice_Check(key) and _is_basic(key) and self.array.ndim > 0 and not _is_backward(key):
        recorded = _is_recorded(self)
        stop = _slice_bounds(key, self.array.shape[0], &start, &stop, &step)
        if recorded:
            return _slice_of(self, 0, start, start + stop * step, step, stop)
        return wrap_view(_sliced(self.array, 0, start, stop, step), self)
    if any_meta and _any_entry(key):
        return call_override(Tensor.__getitem__, _as_tuple(key), (self, key), {})
    indices = []
    entries = _as_entries(key)
    if _any_backward(entries):                # no view: strides of a Tensor are never negative
        dims = []
        entries = _forward(self, entries, dims)
        return getitem(self.flip(tuple(dims)), entries)
    view = _basic_view(self, entries, indices)
    if indices:
        return _gather(view, indices)
    return _aliased(self) if view is self else view


# ---- assignment ----------------------------------------------------------------------------------

cdef Tensor _assigned_value(Tensor self, object value):
    """Convert the value to write to a Tensor; numbers in the dtype of `self`, which float16 rounds to infinity."""
    cdef int dtype = self.array.dtype
    if isinstance(value, Tensor):
        return <Tensor>value
    if isinstance(value, (float, int, complex, np.generic)):
        value = plain_number(value, "setitem")
        if is_short(dtype) and isinstance(value, (float, int)):
            return full_tensor((), value, FLOAT64, False, "setitem").to(dtype_object(dtype))
        return full_tensor((), value, dtype, False, "setitem")
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return tensor_from(value, self.array.dtype, "setitem")
    raise TypeError(f"setitem: cannot assign a {type(value).__name__} to elements of a tensor (expected a number, "
                    "tensor, array or sequence)")


cdef int setitem(Tensor self, object key, object value) except -1:
    cdef list indices = []
    if type(self) is not Tensor and overrides(self):
        call_override(Tensor.__setitem__, (self,), (self, key, value), {})
        return 0
    if any_meta and _any_entry(key):
        call_override(Tensor.__setitem__, _as_tuple(key), (self, key, value), {})
        return 0
    cdef Tensor source = _assigned_value(self, value)
    cdef Tensor target
    cdef tuple entries = _as_entries(key)
    cdef int i
    if _any_backward(entries):
        dims = []
        entries = _forward(self, entries, dims)
        target = self.flip(tuple(dims))
        setitem(target, entries, source)
        self.copy_(target.flip(tuple(dims)))
        return 0
    target = _basic_view(self, entries, indices)
    i = 0
    while i < source.array.ndim - (0 if indices else target.array.ndim) and source.array.shape[i] == 1:
        i += 1
    if i:
        # Drop leading dimensions of size 1: an assignment may have more of them than the target.
        source = source.reshape(tuple(source.shape)[i:])
    if indices:
        # An assignment casts like copy_, but raises an error for complex values in real tensors.
        if is_complex(source.array.dtype) and not is_complex(self.array.dtype) and self.array.dtype != BOOL \
                and not (source.array.size == 1 and source.item().imag == 0):
            raise RuntimeError(f"setitem: complex values cannot be written at masks and index tensors of a "
                               f"{describe(self)}. Use their real part.")
        if source.array.dtype != self.array.dtype:
            source = source.to(self.dtype)
        _put(target, indices, source, False)
        return 0
    target.copy_(source)
    return 0


def index_put_(Tensor input not None, indices, values, accumulate=False):
    """
    Write values in place at the positions of index tensors.

    Parameters
    ----------
    input : Tensor
        Changed.
    indices : sequence of Tensor or None
        As in ``input[indices]``: integers or masks, None for all of a dimension.
    values : Tensor
        Of the dtype of `input`; broadcast to the shape of ``input[indices]``.
    accumulate : bool, default False
        Accumulate values at repeated indices instead of overwriting.

    Returns
    -------
    Tensor
        `input` itself.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not match.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> x = cygrad.zeros(3)
    >>> x.index_put_((cygrad.tensor([0, 0, 2]),), cygrad.tensor([1., 2., 3.]), accumulate=True)
    tensor([3., 0., 3.])
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_: argument 'indices' must be a tuple of Tensors (got {type(indices).__name__}).")
    if not len(indices):
        raise RuntimeError("index_put_: expected at least one index (got none). Pass a mask, or use copy_().")
    if not isinstance(values, Tensor):
        raise TypeError(f"index_put_: argument 'values' must be a Tensor (got {type(values).__name__}).")
    if (<Tensor>values).array.dtype != input.array.dtype:
        raise RuntimeError(f"index_put_: dtypes must match (got {values.dtype}, expected {input.dtype}). Convert the "
                           "values with to().")
    return _put(input, [None if entry is None else _plain_index(entry) for entry in indices], values, bool(accumulate))


cdef object _plain_index(object entry):
    """Convert an index tensor for the operator."""
    if not isinstance(entry, Tensor):
        raise TypeError(f"index_put_: indices must be Tensors or None (got {type(entry).__name__}).")
    entry = _plain_entry(entry)
    if not isinstance(entry, Tensor):            # without dimensions
        return full_tensor((), entry, INT64, False, "index_put_")
    return entry if (<Tensor>entry).array.dtype == BOOL else _as_int64(<Tensor>entry)


def index_put(input, indices, values, accumulate=False):
    """
    Return a copy with values written at the positions of index tensors.

    Parameters
    ----------
    input : Tensor
    indices : sequence of Tensor or None
    values : Tensor
    accumulate : bool, default False
        As in `index_put_`.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> cygrad.index_put(cygrad.zeros(3), (cygrad.tensor([1]),), cygrad.tensor(5.))
    tensor([0., 5., 0.])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"index_put: argument 'input' must be a Tensor (got {type(input).__name__}).")
    copied = input.clone()
    for other in (values, *indices) if isinstance(indices, (tuple, list)) else ():
        if any_meta and is_entry(other) and not is_entry(copied):        # one for each entry of a batch
            copied = other.new_empty(input.shape, dtype=input.dtype).copy_(input)
    return index_put_(copied, indices, values, accumulate)


protocol.getitem = getitem
protocol.setitem = setitem


# --------------------------------------------------------------------------------------------------------------- assign

# Writing into a tensor: copy_, fill_, zero_ and set_.

cdef enum:
    LARGE = 16384                 # elements from which the GIL is released


cdef int _copy_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """copy(self, src, non_blocking): src with the shape of self."""
    cdef value_t[3] expanded
    expanded[0] = arguments[1]
    expanded[1].kind = INTEGERS
    expanded[1].count = arguments[0].of.array.ndim
    expanded[1].of.integers = arguments[0].of.array.shape
    return _expand(expanded, results)


cdef kernel_t _expand = find_kernel("expand")
register_kernel("copy", _copy_kernel)


cdef object _recorded_copy(Tensor input, Tensor source):
    cdef PyObject *arguments[3]
    cdef object non_blocking = False          # a variable: the literal would be cast as the C number 0
    arguments[0] = <PyObject *>input
    arguments[1] = <PyObject *>source
    arguments[2] = <PyObject *>non_blocking
    return call_inplace(<Operator>table["copy"], arguments)


def copy_(Tensor input not None, src, non_blocking=False):
    """
    Overwrite the elements with those of `src`, cast and broadcast.

    Parameters
    ----------
    src : Tensor, ndarray or number
        Its shape must broadcast to that of the tensor.
    non_blocking : bool, default False
        Accepted and ignored.

    Returns
    -------
    Tensor
        The tensor itself.

    Notes
    -----
    Derivative: 0 for the old elements, 1 for `src`.

    Examples
    --------
    >>> cygrad.zeros(2).copy_(cygrad.tensor([1, 2]))
    tensor([1., 2.])
    """
    cdef Tensor source = as_tensor(src, "copy_")
    cdef array_t *array = input.array
    cdef array_t *held
    cdef array_t *origin
    cdef int status
    if any_meta:
        if is_entry(input) or is_entry(source):
            return call_override(copy_, (input, source), (input, source), {})
        if is_meta(array):
            return input
        check_elements(source.array, "copy_")
    if thread_state().modes & EXCEPT_AUTOCAST or (grad_enabled() and (takes_part(input) or takes_part(source))):
        return _recorded_copy(input, source)
    check_inplace(input, "copy_", False)
    if array.size < LARGE:
        status = copy_into(array, source.array)
    else:
        # Retained, because another thread may replace the arrays of the Tensors.
        held, origin = retain(array), retain(source.array)
        with nogil:
            status = copy_into(held, origin)
        release(held)
        release(origin)
    check(status)
    bump_version(input)
    return input


def fill_(input, value):
    """
    Overwrite every element with one value.

    Parameters
    ----------
    value : number or Tensor without dimensions

    Returns
    -------
    Tensor
        The tensor itself.

    Notes
    -----
    Derivative: 0 for the old elements; the sum of the gradient for `value`.

    Examples
    --------
    >>> cygrad.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    return _fill(input, value, "fill_")


cdef Tensor _fill(given, value, str operation):
    cdef value_t number
    cdef Tensor input
    cdef array_t *array
    cdef array_t *held
    cdef int status
    cdef bint is_number
    if not isinstance(given, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(given).__name__}).")
    input = <Tensor>given
    array = input.array
    try:
        is_number = not isinstance(value, Tensor) and box_number(value, &number)
    except OverflowError as error:
        raise OverflowError(f"{operation}: {error}") from None
    if not is_number:
        value = as_tensor(value, "fill_")
        if value.ndim:
            raise RuntimeError(f"fill_: the value must be 0-dim (got shape {tuple(value.shape)}). Use copy_.")
        return copy_(input, value)
    if isinstance(value, complex) and not is_complex(array.dtype) and array.dtype != BOOL:
        raise RuntimeError(f"fill_: a complex value cannot be cast to a real dtype (got {value}, expected one for "
                           f"{dtype_name(array.dtype).decode()}).")
    if is_meta(array):
        return call_override(fill_, (input,), (input, value), {}) if is_entry(input) else input
    if grad_enabled() and input.requires_grad or thread_state().modes & EXCEPT_AUTOCAST:
        check_inplace(input, operation, True)
        _recorded_copy(_each_element_once(input), tensor_from(value, array.dtype, "fill_"))
        return input
    check_inplace(input, operation, False)
    held = _without_repetitions(array)
    if array.size < LARGE:
        status = fill(held, &number)
    else:
        with nogil:
            status = fill(held, &number)
    release(held)
    check(status)
    bump_version(input)
    return input


cdef array_t *_without_repetitions(array_t *array) except NULL:
    """Return the array, retained; for an expanded one a view without repeated elements."""
    cdef int64_t[MAX_DIMS] shape
    cdef int d
    cdef bint repeats = False
    for d in range(array.ndim):
        repeats = repeats or (array.strides[d] == 0 and array.shape[d] > 1)
        shape[d] = 1 if array.strides[d] == 0 and array.shape[d] > 1 else array.shape[d]
    if not repeats:
        return retain(array)
    array = array_view(array, array.dtype, array.ndim, shape, array.strides, 0)
    if array == NULL:
        check(MEMORY_ERROR)
    return array


cdef Tensor _each_element_once(Tensor input):
    """Record the assignment as an operation on tensors."""
    cdef int d
    for d in range(input.array.ndim):
        if input.array.strides[d] == 0 and input.array.shape[d] > 1:
            input = operators.narrow(input, d, 0, 1)
    return input


def zero_(input):
    """
    Overwrite every element with zero.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> cygrad.ones(2).zero_()
    tensor([0., 0.])
    """
    return _fill(input, 0, "zero_")


def set_(Tensor input not None, source=None, storage_offset=0, size=None, stride=None):
    """
    Make this tensor use the memory of another one, with its shape and strides.

    Nothing is copied; the tensor is treated as modified in place.

    Parameters
    ----------
    source : Tensor, optional
        Of the same dtype. Default: an empty tensor.
    storage_offset : int, default 0
        Offset of the first element in the memory of `source`; only with `size`.
    size, stride : sequence of int, optional
        Shape and strides in the memory of `source`. Default: those of `source`; without `stride`, row-major.

    Returns
    -------
    Tensor
        The tensor itself.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or a tensor requires grad: ``set_`` is not differentiable.

    Examples
    --------
    >>> x = cygrad.zeros(2)
    >>> x.set_(cygrad.arange(6.0), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    # A storage (of cygrad.compatibility) wraps a one-dimensional tensor.
    if source is not None and not isinstance(source, Tensor) and not hasattr(source, "_elements"):
        raise TypeError(f"set_: the source must be a Tensor or a storage (got {type(source).__name__}). Convert it to "
                        "a Tensor with cygrad.asarray().")
    cdef Tensor given = (tensor_from([], input.array.dtype, "set_") if source is None
                         else source if isinstance(source, Tensor) else source._elements_as(input.dtype, "set_"))
    if size is not None and stride is None:
        stride = [math.prod(size[place + 1:]) for place in range(len(size))]
    with cython.critical_section(input):             # memory, base and version change one after the other
        _set(input, given, storage_offset, size, stride)
    return input


cdef int _set(Tensor input, Tensor given, storage_offset, size, stride) except -1:
    cdef int64_t version = 0
    if given.array.dtype != input.array.dtype:
        raise RuntimeError(f"set_: the dtypes differ (got {dtype_name(given.array.dtype).decode()} for a "
                           f"{dtype_name(input.array.dtype).decode()} tensor).")
    check_inplace(input, "set_", False)
    if grad_enabled() and (input.requires_grad or given.requires_grad):
        raise RuntimeError("set_: not differentiable (got a tensor that requires grad). Call it under no_grad(), "
                           "or use copy_.")
    if size is not None:
        given = operators.as_strided(given, size, stride, storage_offset)
    bump_version(input)
    if input.array.version != NULL:
        version = input.array.version.value
    adopt(input, given, False)
    input.base = None
    if input.gradient != NULL:               # nodes recorded with the former memory refer to a separate node
        forget_accumulator(input.gradient)
    if input.array.version != NULL:
        if replace_version(input.array, version_new()) != OK:
            raise MemoryError("set_: no memory for a version counter")
        input.array.version.value = version
    return 0


METHODS = {"copy_": copy_, "fill_": fill_, "set_": set_, "zero_": zero_}
