"""Writing into a tensor: copy_, fill_, zero_ and set_."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from cygrad._core.arrays.array cimport MAX_DIMS, array_t, array_view, release, replace_version, retain
from cygrad._core.arrays.dtype cimport BOOL, dtype_name, is_complex
from cygrad._core.arrays.value cimport INTEGERS, find_kernel, kernel_t, register_kernel, value_t
from cygrad._core.creation.creation cimport tensor_from
from cygrad._core.dispatch.dispatch cimport call_inplace
from cygrad._core.elementwise.elementwise cimport copy_into, fill
from cygrad._core.graph.accumulate cimport forget_accumulator
from cygrad._core.graph.boxing cimport box_number
from cygrad._core.graph.inplace cimport bump_version, check_inplace
from cygrad._core.graph.meta cimport any_meta, check_elements, is_meta
from cygrad._core.graph.modes cimport EXCEPT_AUTOCAST, grad_enabled, thread_state
from cygrad._core.graph.override cimport is_entry
from cygrad._core.graph.tensor cimport Tensor, as_tensor
from cygrad._core.graph.tensor_identity cimport adopt
from cygrad._core.graph.view_requirement cimport takes_part
from cygrad._core.memory.errors cimport MEMORY_ERROR, OK, check
from cygrad._core.memory.storage cimport version_new
from cygrad._core.table.operator cimport Operator, table

from cygrad._core.graph.override import call_override
from cygrad._core.table.operator import operators
import math

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
        Has no effect on a CPU.

    Returns
    -------
    Tensor
        The tensor itself.

    Notes
    -----
    Derivative: 0 for the old elements, 1 for `src`.

    Examples
    --------
    >>> import cygrad
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


def fill_(Tensor input not None, value):
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
    >>> import cygrad
    >>> cygrad.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    cdef value_t number
    cdef array_t *array = input.array
    cdef array_t *held
    cdef int status
    if isinstance(value, Tensor) or not box_number(value, &number):
        value = as_tensor(value, "fill_")
        if value.ndim:
            raise RuntimeError(f"fill_: the value must have no dimensions (got shape {tuple(value.shape)}). Use copy_.")
        return copy_(input, value)
    if isinstance(value, complex) and not is_complex(array.dtype) and array.dtype != BOOL:
        raise RuntimeError(f"fill_: a complex value does not fit (got {value}, expected one for "
                           f"{dtype_name(array.dtype).decode()}).")
    if is_meta(array):
        return call_override(fill_, (input,), (input, value), {}) if is_entry(input) else input
    if grad_enabled() and input.requires_grad:
        return _recorded_copy(input, tensor_from(value, array.dtype, "fill_"))
    if thread_state().modes & EXCEPT_AUTOCAST:
        _recorded_copy(_each_element_once(input), tensor_from(value, array.dtype, "fill_"))
        return input
    check_inplace(input, "fill_", False)
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
    """Return the array, retained; for an expanded one a view that has each element once."""
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
    """Record the same as an operation on tensors."""
    cdef int d
    for d in range(input.array.ndim):
        if input.array.strides[d] == 0 and input.array.shape[d] > 1:
            input = operators.narrow(input, d, 0, 1)
    return input


def zero_(Tensor input not None):
    """
    Overwrite every element with zero.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.ones(2).zero_()
    tensor([0., 0.])
    """
    return fill_(input, 0)


@cython.critical_section             # memory, base and version change one after the other
def set_(Tensor input not None, source=None, storage_offset=0, size=None, stride=None):
    """
    Make this tensor use the memory of another one, with its shape and strides.

    Nothing is copied; saved tensors of this tensor count as modified in place.

    Parameters
    ----------
    source : Tensor, optional
        Of the same dtype. Default: an empty tensor.
    storage_offset : int, default 0
        With `size`: where in the memory of `source` the first element lies.
    size, stride : sequence of int, optional
        Shape and strides in the memory of `source`. Default: those of `source`; without `stride`, row-major.

    Returns
    -------
    Tensor
        The tensor itself.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or a gradient would have to flow: ``set_`` has no derivative.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.zeros(2)
    >>> x.set_(cygrad.arange(6.0), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    # A storage (of cygrad.compatibility) wraps a one-dimensional tensor.
    if source is not None and not isinstance(source, Tensor) and not hasattr(source, "_elements"):
        raise TypeError(f"set_: the source must be a Tensor or a storage (got {type(source).__name__}). Make it a "
                        "Tensor with cygrad.asarray().")
    cdef Tensor given = (tensor_from([], input.array.dtype, "set_") if source is None
                         else source if isinstance(source, Tensor) else source._seen_as(input.dtype))
    cdef int64_t version = 0
    if given.array.dtype != input.array.dtype:
        raise RuntimeError(f"set_: the dtypes differ (got {dtype_name(given.array.dtype).decode()} for a "
                           f"{dtype_name(input.array.dtype).decode()} tensor).")
    check_inplace(input, "set_", False)
    if grad_enabled() and (input.requires_grad or given.requires_grad):
        raise RuntimeError("set_: not differentiable (got a tensor that requires grad). Call it under no_grad(), "
                           "or use copy_.")
    if size is not None:
        if stride is None:
            stride = [math.prod(size[place + 1:]) for place in range(len(size))]
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
    return input


METHODS = {"copy_": copy_, "fill_": fill_, "set_": set_, "zero_": zero_}
