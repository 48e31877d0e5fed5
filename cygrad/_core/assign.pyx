"""Writing into a tensor: copy_, fill_ and zero_."""

from cpython.object cimport PyObject
from cygrad._core.array cimport array_t, release, retain
from cygrad._core.boxing cimport box_number
from cygrad._core.creation cimport tensor_from
from cygrad._core.dispatch cimport call_inplace
from cygrad._core.dtype cimport dtype_name, is_complex
from cygrad._core.elementwise cimport copy_into, fill
from cygrad._core.errors cimport check
from cygrad._core.inplace cimport bump_version, check_inplace
from cygrad._core.modes cimport grad_enabled, thread_state
from cygrad._core.operator cimport Operator, table
from cygrad._core.tensor cimport Tensor, as_tensor, requires_grad
from cygrad._core.value cimport INTEGERS, find_kernel, kernel_t, register_kernel, value_t

cdef enum:
    LARGE = 16384                 # elements from which the GIL is given up


cdef int _copy_kernel(const value_t *arguments, value_t *results) noexcept nogil:
    """copy(self, src, non_blocking): src seen in the shape of self."""
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
    if thread_state().dual_level or (
            grad_enabled() and (requires_grad(input) or requires_grad(source) or input.requires_grad)):
        return _recorded_copy(input, source)
    check_inplace(input, "copy_", False)
    if array.size < LARGE:
        status = copy_into(array, source.array)
    else:
        # Retained, as another thread may give the Tensors other arrays meanwhile.
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
    if isinstance(value, complex) and not is_complex(array.dtype):
        raise RuntimeError(f"fill_: a complex value does not fit (got {value}, expected one for "
                           f"{dtype_name(array.dtype).decode()}).")
    if thread_state().dual_level or (grad_enabled() and input.requires_grad):
        return _recorded_copy(input, tensor_from(value, array.dtype, "fill_"))
    check_inplace(input, "fill_", False)
    if array.size < LARGE:
        status = fill(array, &number)
    else:
        held = retain(array)
        with nogil:
            status = fill(held, &number)
        release(held)
    check(status)
    bump_version(input)
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


METHODS = {"copy_": copy_, "fill_": fill_, "zero_": zero_}
