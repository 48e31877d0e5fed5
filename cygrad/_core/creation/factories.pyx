"""Factory functions: empty, full, the `_like` functions and the `new_` methods."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty_like, array_t
from cygrad._core.arrays.dtype cimport default_float, itemsize
from cygrad._core.creation.creation cimport (
    check_place, dtype_or, empty_tensor, fill_array, finish, full_tensor, plain_number, read_element, tensor_from)
from cygrad._core.creation.sequences cimport number_dtype
from cygrad._core.elementwise.layout cimport array_like, array_strided, channels_last_strides
from cygrad._core.graph.meta cimport is_meta, meta_array
from cygrad._core.graph.override cimport overrides
from cygrad._core.graph.tensor cimport Tensor, wrap
from cygrad._core.memory.errors cimport MEMORY_ERROR, check

from cygrad._core.graph.override import call_override
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators


cdef object _sizes_of(tuple args, object size, str operation):
    """Return sizes given by position or as the keyword `size`."""
    if size is None:
        if not args:
            raise TypeError(f"{operation}: missing sizes (got none, expected integers or a tuple of them)")
        return args
    if args:
        raise TypeError(f"{operation}: sizes given twice (got {args} and size={size!r})")
    return size if isinstance(size, (tuple, list)) else tuple(size)


cdef object _place(object result, object out, object dtype, bint needs_grad, str operation):
    """Return the result, or write it to `out`."""
    if out is None:
        return finish(<Tensor>result, needs_grad, False)
    _check_out(out, operation)
    if dtype is not None and (<Tensor>out).array.dtype != (<Tensor>result).array.dtype:
        raise RuntimeError(f"{operation}: out has another dtype (got {out.dtype}, expected {result.dtype})")
    return operators.written(result, out=out)


cdef int _check_out(object out, str operation) except -1:
    if not isinstance(out, Tensor):
        raise TypeError(f"{operation}: out must be a Tensor (got {type(out).__name__})")
    return 0


cdef int _out_or(object dtype, object out, int default, str operation) except -1:
    """Return the dtype argument, else that of `out`, else the default."""
    if dtype is None and out is not None:
        _check_out(out, operation)
        return (<Tensor>out).array.dtype
    return dtype_or(dtype, default, operation)


# Shared parameter descriptions.
_PARAMETERS = {
    "*args, size": "int or tuple of int\n    The shape, as several integers or one tuple.",
    "out": "Tensor, optional\n    Written to instead; of the same shape.",
    "dtype": "dtype, optional\n    Default: that of this tensor.",
    "memory_format": "memory_format, optional\n    Default: as the other one lies in memory, without its gaps.",
}


@documented(_PARAMETERS)
def zeros(*args, size=None, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False):
    """
    Return a tensor of zeros.

    Parameters
    ----------
    dtype : dtype, optional
        Default: the default floating dtype.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "zeros")
    cdef object sizes = _sizes_of(args, size, "zeros")
    cdef int code = _out_or(dtype, out, default_float(), "zeros")
    return _place(full_tensor(sizes, 0, code, meta, "zeros"), out, dtype, requires_grad, "zeros")


@documented(_PARAMETERS)
def ones(*args, size=None, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False):
    """
    Return a tensor of ones.

    Parameters
    ----------
    dtype : dtype, optional
        Default: the default floating dtype.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.ones(2)
    tensor([1., 1.])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "ones")
    cdef object sizes = _sizes_of(args, size, "ones")
    cdef int code = _out_or(dtype, out, default_float(), "ones")
    return _place(full_tensor(sizes, 1, code, meta, "ones"), out, dtype, requires_grad, "ones")


@documented(_PARAMETERS)
def empty(*args, size=None, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False, memory_format=None):
    """
    Return an uninitialized tensor.

    Parameters
    ----------
    dtype : dtype, optional
        Default: the default floating dtype.
    memory_format : memory_format, optional
        The order of dimensions in memory; default: row-major.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.empty(2, 3).shape
    (2, 3)
    """
    cdef bint meta = check_place(device, layout, pin_memory, "empty")
    cdef object sizes = _sizes_of(args, size, "empty")
    cdef int code = _out_or(dtype, out, default_float(), "empty")
    cdef Tensor made = empty_tensor(sizes, code, meta, "empty")
    if memory_format is not None and memory_format != "contiguous_format" and not meta:
        made = wrap(_array_in(memory_format, made.array, code, "empty"))
    return _place(made, out, dtype, requires_grad, "empty")


@documented(_PARAMETERS)
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
         pin_memory=False):
    """
    Return a tensor filled with a number.

    Parameters
    ----------
    size : tuple of int
        The shape.
    fill_value : number or 0-dim Tensor
    dtype : dtype, optional
        Default: the dtype that the number has in `tensor`.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.full((2, 2), 3.5)
    tensor([[3.5000, 3.5000],
            [3.5000, 3.5000]])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "full")
    cdef object value = plain_number(fill_value, "full")
    cdef int code = _out_or(dtype, out, number_dtype(value), "full")
    if not isinstance(size, (tuple, list)) and not hasattr(size, "__len__"):
        raise TypeError(f"full: size must be a tuple of integers (got {size!r}). Write full(({size},), ...).")
    return _place(full_tensor(tuple(size), value, code, meta, "full"), out, dtype, requires_grad, "full")


@documented(_PARAMETERS)
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, bint requires_grad=False, pin_memory=False):
    """
    Return a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int, optional
        Number of columns; default `n`.
    dtype : dtype, optional
        Default: the default floating dtype.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    cdef char[16] one
    cdef char *element
    cdef int64_t i, size
    cdef Tensor result
    cdef bint meta = check_place(device, layout, pin_memory, "eye")
    m = n if m is None else m
    result = full_tensor((n, m), 0, _out_or(dtype, out, default_float(), "eye"), meta, "eye")
    read_element(1, result.array.dtype, one, "eye")
    if meta:
        return _place(result, out, dtype, requires_grad, "eye")
    size = itemsize(result.array.dtype)
    for i in range(min(result.array.shape[0], result.array.shape[1])):
        element = result.array.data + i * (result.array.shape[1] + 1) * size
        memcpy(element, one, size)
    return _place(result, out, dtype, requires_grad, "eye")


# ---- like another tensor -------------------------------------------------------------------------

cdef Tensor _checked(object input, str operation):
    if not isinstance(input, Tensor):
        raise TypeError(f"{operation}: argument 'input' must be a Tensor (got {type(input).__name__}). "
                        "Convert it with as_tensor() first.")
    return <Tensor>input


cdef int _place_of(object model, object device, object layout, object pin_memory, str operation) except -1:
    """Like `check_place`; without a device the result has the device of `model`."""
    if device is None and layout is None and not pin_memory:
        return is_meta(_checked(model, operation).array)
    return check_place(_checked(model, operation).device if device is None else device, layout, pin_memory, operation)


cdef array_t *_array_in(object memory_format, const array_t *model, int dtype, str operation) except NULL:
    """Create an array of the shape of another one, in its memory format or a given one."""
    cdef int64_t[MAX_DIMS] strides
    cdef array_t *array
    if memory_format is None or memory_format == "preserve_format":
        array = array_like(model, dtype)
    elif memory_format == "contiguous_format":
        array = array_empty_like(model, dtype)
    elif memory_format not in ("channels_last", "channels_last_3d"):
        raise TypeError(f"{operation}: unsupported memory format (got {memory_format!r}, expected contiguous_format, "
                        "preserve_format, channels_last or channels_last_3d).")
    elif model.ndim != 4 + (memory_format == "channels_last_3d"):
        raise RuntimeError(f"{operation}: required rank {4 + (memory_format == 'channels_last_3d')} tensor to use "
                           f"{memory_format!r} (got {model.ndim} dimensions).")
    else:
        channels_last_strides(model.ndim, model.shape, strides)
        array = array_strided(dtype, model.ndim, model.shape, strides)
    if array == NULL:
        check(MEMORY_ERROR)
    return array


cdef object _filled_like(object input, object value, object dtype, bint needs_grad, bint meta, object memory_format,
                         str operation):
    """Return a tensor of the shape of `input`; `value` None leaves it uninitialized."""
    cdef char[16] element
    cdef Tensor model = _checked(input, operation)
    cdef int code = dtype_or(dtype, model.array.dtype, operation)
    cdef array_t *array
    if type(model) is not Tensor and overrides(model):
        return call_override(globals()[operation], (model,), (model, value) if operation == "full_like" else (model,),
                             {"dtype": dtype, "requires_grad": needs_grad})
    if value is not None:
        read_element(value, code, element, operation)
    if meta:
        return finish(wrap(meta_array(code, model.array.ndim, model.array.shape)), needs_grad, meta)
    array = _array_in(memory_format, model.array, code, operation)
    if value is not None:
        with nogil:
            fill_array(array, element)
    return finish(wrap(array), needs_grad, meta)


@documented(_PARAMETERS)
def zeros_like(input, *, dtype=None, layout=None, device=None, bint requires_grad=False, pin_memory=False,
          memory_format=None):
    """
    Return a tensor of zeros with the shape and dtype of another one.

    Parameters
    ----------
    dtype : dtype, optional
        Default: that of `input`.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.zeros_like(cygrad.tensor([1, 2]))
    tensor([0, 0])
    """
    cdef bint meta = _place_of(input, device, layout, pin_memory, "zeros_like")
    return _filled_like(input, 0, dtype, requires_grad, meta, memory_format, "zeros_like")


@documented(_PARAMETERS)
def ones_like(input, *, dtype=None, layout=None, device=None, bint requires_grad=False, pin_memory=False,
          memory_format=None):
    """
    Return a tensor of ones with the shape and dtype of another one.

    Parameters
    ----------
    dtype : dtype, optional
        Default: that of `input`.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.ones_like(cygrad.tensor([1, 2]))
    tensor([1, 1])
    """
    cdef bint meta = _place_of(input, device, layout, pin_memory, "ones_like")
    return _filled_like(input, 1, dtype, requires_grad, meta, memory_format, "ones_like")


@documented(_PARAMETERS)
def empty_like(input, *, dtype=None, layout=None, device=None, bint requires_grad=False, pin_memory=False,
          memory_format=None):
    """
    Return an uninitialized tensor with the shape and dtype of another one.

    Parameters
    ----------
    dtype : dtype, optional
        Default: that of `input`.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.empty_like(cygrad.tensor([1, 2])).shape
    (2,)
    """
    cdef bint meta = _place_of(input, device, layout, pin_memory, "empty_like")
    return _filled_like(input, None, dtype, requires_grad, meta, memory_format, "empty_like")


@documented(_PARAMETERS)
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, bint requires_grad=False, pin_memory=False,
          memory_format=None):
    """
    Return a tensor with the shape and dtype of another one, filled with a number.

    Parameters
    ----------
    fill_value : number or 0-dim Tensor
    dtype : dtype, optional
        Default: that of `input`.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.full_like(cygrad.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    cdef bint meta = _place_of(input, device, layout, pin_memory, "full_like")
    fill_value = plain_number(fill_value, "full_like")
    return _filled_like(input, fill_value, dtype, requires_grad, meta, memory_format, "full_like")


# ---- new ones of another tensor's dtype: methods of Tensor ---------------------------------------


@documented(_PARAMETERS)
def new_zeros(Tensor self not None, *args, size=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False):
    """
    Return a tensor of zeros with the dtype of this one: a method of Tensor.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_zeros")
    cdef object sizes = _sizes_of(args, size, "new_zeros")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_zeros")
    return finish(full_tensor(sizes, 0, code, meta, "new_zeros"), requires_grad, meta)


@documented(_PARAMETERS)
def new_ones(Tensor self not None, *args, size=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False):
    """
    Return a tensor of ones with the dtype of this one: a method of Tensor.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([1, 2]).new_ones(3)
    tensor([1, 1, 1])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_ones")
    cdef object sizes = _sizes_of(args, size, "new_ones")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_ones")
    return finish(full_tensor(sizes, 1, code, meta, "new_ones"), requires_grad, meta)


@documented(_PARAMETERS)
def new_empty(Tensor self not None, *args, size=None, dtype=None, layout=None, device=None, bint requires_grad=False,
          pin_memory=False):
    """
    Return an uninitialized tensor with the dtype of this one: a method of Tensor.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([1, 2]).new_empty(3).shape
    (3,)
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_empty")
    cdef object sizes = _sizes_of(args, size, "new_empty")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_empty")
    return finish(empty_tensor(sizes, code, meta, "new_empty"), requires_grad, meta)


@documented(_PARAMETERS)
def new_full(Tensor self not None, size, fill_value, *, dtype=None, layout=None, device=None, bint requires_grad=False,
             pin_memory=False):
    """
    Return a tensor with the dtype of this one, filled with a number: a method of Tensor.

    Parameters
    ----------
    size : tuple of int
    fill_value : number or 0-dim Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_full")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_full")
    return finish(full_tensor(tuple(size), fill_value, code, meta, "new_full"), requires_grad, meta)


@documented(_PARAMETERS)
def new_tensor(Tensor self not None, data, *, dtype=None, layout=None, device=None, bint requires_grad=False,
               pin_memory=False):
    """
    Return a tensor with a copy of data and the dtype of this one: a method of Tensor.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor

    Examples
    --------
    >>> import cygrad
    >>> cygrad.tensor([1., 2.]).new_tensor([3])
    tensor([3.])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_tensor")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_tensor")
    return finish(tensor_from(data, code, "new_tensor"), requires_grad, meta)
