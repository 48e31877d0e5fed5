"""Factory functions: empty, full, the `_like` functions and the `new_` methods."""

cimport cygrad._core.primitives.complex_parts
cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport ceil, isfinite, pow
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, strchr, strlen
from cygrad._core.arrays.array cimport MAX_DIMS, array_empty_like, array_t
from cygrad._core.arrays.dtype cimport (
    BOOL, INT64, UINT64, computed_in, default_complex, default_float, dtype_name, dtype_object, is_complex,
    is_floating, is_integral, itemsize,
)
from cygrad._core.creation.creation cimport (
    check_place, dtype_or, empty_tensor, fill_array, finish, full_tensor, number_dtype, plain_number, read_element,
    tensor_from,
)
from cygrad._core.elementwise.copying cimport array_like, array_strided, channels_last_strides
from cygrad._core.graph.boxing cimport overrides
from cygrad._core.graph.tensor cimport Tensor, is_meta, meta_array, wrap
from cygrad._core.memory.errors cimport MEMORY_ERROR, check
from cygrad._core.threads.grain cimport CHUNK, COMPUTED
from cygrad._core.threads.parallel cimport parallel_for

from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.graph.boxing import call_override, check_numbers
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators


# ------------------------------------------------------------------------------------------------------------ factories

cdef object _sizes_of(tuple args, object size, str operation):
    """Return sizes given by position or as the keyword `size`."""
    if size is None:
        if not args:
            raise TypeError(f"{operation}: missing sizes (got none, expected integers or a tuple of them)")
        return args
    if args:
        raise TypeError(f"{operation}: sizes must be passed once (got {args} and size={size!r})")
    return size if isinstance(size, (tuple, list)) else tuple(size)


cdef object _place(object result, object out, object dtype, bint needs_grad, str operation):
    """Return the result, or write it to `out`."""
    if out is None:
        return finish(<Tensor>result, needs_grad, False)
    _check_out(out, operation)
    if dtype is not None and (<Tensor>out).array.dtype != (<Tensor>result).array.dtype:
        raise RuntimeError(f"{operation}: out must have the expected dtype (got {out.dtype}, expected {result.dtype})")
    return write_to(result, out, operation)


def write_to(result, out, str operation):
    """Write a result to the `out` of an operation, which errors name."""
    try:
        return operators.written(result, out=out)
    except RuntimeError as error:
        raise type(error)(str(error).replace("written:", f"{operation}:", 1)) from None


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
    "out": "Tensor, optional\n    Tensor that the result is written to; of the same shape.",
    "dtype": "dtype, optional\n    Default: that of this tensor.",
    "memory_format": "memory_format, optional\n    Default: the memory order of the other tensor, without gaps.",
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
    >>> cygrad.ones(2)
    tensor([1., 1.])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "ones")
    cdef object sizes = _sizes_of(args, size, "ones")
    cdef int code = _out_or(dtype, out, default_float(), "ones")
    return _place(full_tensor(sizes, 1, code, meta, "ones"), out, dtype, requires_grad, "ones")


# At most one function, which fills the new tensors of `empty` and its relatives.
FILLS_UNINITIALIZED = []
cdef list _fills = FILLS_UNINITIALIZED


cdef object _uninitialized(object made, bint meta):
    """Return a new tensor, filled if algorithms are deterministic."""
    if len(_fills) and not meta:
        _fills[0](made)
    return made


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
        Order of dimensions in memory; default: row-major.

    Examples
    --------
    >>> cygrad.empty(2, 3).shape
    (2, 3)
    """
    cdef bint meta = check_place(device, layout, pin_memory, "empty")
    cdef object sizes = _sizes_of(args, size, "empty")
    cdef int code = _out_or(dtype, out, default_float(), "empty")
    cdef Tensor made = empty_tensor(sizes, code, meta, "empty")
    if memory_format is not None and memory_format != "contiguous_format" and not meta:
        made = wrap(_array_in(memory_format, made.array, code, "empty"))
    return _place(_uninitialized(made, meta), out, dtype, requires_grad, "empty")


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
    >>> cygrad.empty_like(cygrad.tensor([1, 2])).shape
    (2,)
    """
    cdef bint meta = _place_of(input, device, layout, pin_memory, "empty_like")
    return _uninitialized(_filled_like(input, None, dtype, requires_grad, meta, memory_format, "empty_like"), meta)


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
    Return a tensor of zeros with the dtype of this one.

    Examples
    --------
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
    Return a tensor of ones with the dtype of this one.

    Examples
    --------
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
    Return an uninitialized tensor with the dtype of this one.

    Examples
    --------
    >>> cygrad.tensor([1, 2]).new_empty(3).shape
    (3,)
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_empty")
    cdef object sizes = _sizes_of(args, size, "new_empty")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_empty")
    return _uninitialized(finish(empty_tensor(sizes, code, meta, "new_empty"), requires_grad, meta), meta)


@documented(_PARAMETERS)
def new_full(Tensor self not None, size, fill_value, *, dtype=None, layout=None, device=None, bint requires_grad=False,
             pin_memory=False):
    """
    Return a tensor with the dtype of this one, filled with a number.

    Parameters
    ----------
    size : tuple of int
    fill_value : number or 0-dim Tensor

    Examples
    --------
    >>> cygrad.tensor([1, 2]).new_full((3,), 7)
    tensor([7, 7, 7])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_full")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_full")
    return finish(full_tensor(as_sizes("new_full", "size", size, 1), fill_value, code, meta, "new_full"), requires_grad,
                  meta)


@documented(_PARAMETERS)
def new_tensor(Tensor self not None, data, *, dtype=None, layout=None, device=None, bint requires_grad=False,
               pin_memory=False):
    """
    Return a tensor with a copy of data and the dtype of this one.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray or Tensor

    Examples
    --------
    >>> cygrad.tensor([1., 2.]).new_tensor([3])
    tensor([3.])
    """
    cdef bint meta = _place_of(self, device, layout, pin_memory, "new_tensor")
    cdef int code = dtype_or(dtype, self.array.dtype, "new_tensor")
    return finish(tensor_from(data, code, "new_tensor"), requires_grad, meta)


# --------------------------------------------------------------------------------------------------------------- ranges

# Tensors of evenly spaced values: arange, linspace, logspace.

cdef extern from "creation/ranges.h" nogil:
    ctypedef struct range_t:
        int dtype
        void *out
        int64_t start, step
        double first, by
    void count_range(void *context, int64_t begin, int64_t end) noexcept
    ctypedef struct space_t:
        int dtype
        void *out
        int64_t n, first, last
        double[2] start, end
        bint logarithmic
        double base
    void fill_space(const space_t *space)


cdef int64_t _length(object start, object end, object step, int dtype) except -1:
    """Return the number of values of arange, as in PyTorch."""
    cdef double length, first = start, last = end, by = step
    if not isfinite(first) or not isfinite(last):
        raise RuntimeError(f"arange: start and end must be finite (got {start} and {end})")
    if by == 0:
        raise RuntimeError(f"arange: step must not be zero (got {step})")
    if dtype == INT64 and isfinite(by) and int(step) == 0:
        raise ValueError(f"arange: the step is zero as an integer (got {step}). Pass a floating point dtype.")
    if not isfinite(by):
        raise RuntimeError(f"arange: step must be finite (got {step})")
    if (last < first) if by > 0 else (last > first):
        raise RuntimeError(f"arange: the step has the wrong sign (got start {start}, end {end}, step {step}). "
                           "Change the sign of the step.")
    if dtype == INT64:                           # exact: doubles cannot represent all large integers
        steps = max(0, -((int(start) - int(end)) // int(step)))
        if not all(-1 << 63 <= value < 1 << 63 for value in (int(start), int(end), int(step), steps)):
            raise OverflowError(f"arange: an integer does not fit 64 bits (got start {start}, end {end}, step {step}). "
                                "Give a floating dtype.")
        return steps
    length = ceil((last - first) / by)
    if not 0 <= length < 9.2e18:
        raise RuntimeError(f"arange: too many values (got start {start}, end {end}, step {step})")
    return <int64_t>length


def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None,
           bint requires_grad=False, pin_memory=False):
    """
    Return the values start, start + step, ... below end.

    Parameters
    ----------
    start : number, default 0
        First value. With a single argument that is `end`.
    end : number
        End of the range, excluded.
    step : number, default 1
        Step, not zero.
    out : Tensor, optional
        Tensor that the result is written to; of the same shape.
    dtype : dtype, optional
        Default: int64 if all numbers are integers, else the default floating dtype.
    layout, device, pin_memory : optional
        Accepted for compatibility; must have their default values.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, ``ceil((end - start) / step)`` values.

    Raises
    ------
    RuntimeError
        If the step is zero or has the wrong sign, or a number is not finite.

    Examples
    --------
    >>> cygrad.arange(1, 6, 2)
    tensor([1, 3, 5])
    >>> cygrad.arange(0.5, 2)
    tensor([0.5000, 1.5000])
    """
    cdef Tensor result
    cdef range_t values
    cdef int64_t n
    cdef int code, wide
    cdef bint meta = check_place(device, layout, pin_memory, "arange")
    if end is None:
        if start is None:
            raise TypeError("arange: missing argument 'end'")
        start, end = 0, start
    elif start is None:
        start = 0
    start, end, step = [plain_number(x, "arange") for x in (start, end, step)]
    for number in (start, end, step):
        if isinstance(number, complex):
            raise RuntimeError(f"arange: complex numbers are not supported (got {number})")
    if dtype is None and out is not None:
        dtype = out.dtype
    code = dtype_or(dtype, default_float() if any([isinstance(x, float) for x in (start, end, step)]) else INT64,
                    "arange")
    if code == BOOL or is_complex(code):
        raise NotImplementedError(f"arange: not implemented for {dtype_name(code).decode()} (expected an integer or "
                                  "floating dtype)")
    n = _length(start, end, step, code)
    wide = INT64 if code == UINT64 else computed_in(code)
    result = empty_tensor((n,), wide, False, "arange")
    values.dtype, values.out, values.first, values.by = wide, result.array.data, start, step
    if not is_floating(wide):
        values.start, values.step = int(start), int(step)
    parallel_for(count_range, &values, n, CHUNK)
    return _deliver(result, code, out, requires_grad, meta, "arange")


cdef object _deliver(Tensor result, int dtype, object out, bint needs_grad, bint meta, str operation):
    """Round `result`, computed in the compute dtype, to `dtype`, and write it to an `out` of as many elements."""
    if dtype != result.array.dtype:
        result = tensor_from(result, dtype, operation)
    if out is None:
        return finish(result, needs_grad, meta)
    _check_out(out, operation)
    if result.array.size == (<Tensor>out).array.size:
        result = result.reshape(out.shape)
    return write_to(result, out, operation)


cdef object _space(object start, object end, object steps, double base, bint logarithmic, object dtype, object out,
                   bint needs_grad, bint meta, str operation):
    cdef Tensor result
    cdef space_t space
    cdef double complex first, last
    cdef int64_t n
    cdef int code
    for bound in (start, end):
        if isinstance(bound, Tensor) and (<Tensor>bound).array.ndim:
            raise RuntimeError(f"{operation}: only supports 0-dimensional start and end tensors (got shape "
                               f"{tuple(bound.shape)}). Take one element.")
    start, end = plain_number(start, operation), plain_number(end, operation)
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(f"{operation}: argument 'steps' must be an integer (got {steps!r})")
    steps = steps.__index__()
    if steps >= 1 << 63:
        raise OverflowError(f"{operation}: number of steps does not fit 64 bits (got {steps}). Use fewer.")
    n = steps
    if n < 0:
        raise RuntimeError(f"{operation}: number of steps must be non-negative (got {n})")
    if dtype is None and out is not None:
        dtype = out.dtype
    both_complex = isinstance(start, complex) or isinstance(end, complex)
    code = dtype_or(dtype, default_complex() if both_complex else default_float(), operation)
    if code == BOOL:
        raise NotImplementedError(f"{operation}: not implemented for bool (expected a numeric dtype)")
    if both_complex and not is_complex(code):
        raise RuntimeError(f"{operation}: complex ends require a complex dtype (got {dtype_name(code).decode()})")
    if not logarithmic:
        check_numbers(operation, dtype_object(code), start, end, wraps=False)
    elif is_integral(code):
        check_numbers(operation, dtype_object(INT64 if code == UINT64 else code), pow(base, start), pow(base, end),
                      wraps=False)
    result = empty_tensor((n,), INT64 if code == UINT64 else computed_in(code), False, operation)
    space.dtype, space.out, space.n = result.array.dtype, result.array.data, n
    space.logarithmic, space.base = logarithmic, base
    if is_complex(code) or is_floating(code):
        first, last = start, end
        space.start, space.end = [first.real, first.imag], [last.real, last.imag]
    else:
        space.first, space.last = int(start), int(end)
    fill_space(&space)
    return _deliver(result, code, out, needs_grad, meta, operation)


def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
             pin_memory=False):
    """
    Return evenly spaced values from start to end, inclusive.

    Parameters
    ----------
    start, end : number
        First and last value.
    steps : int
        Number of values.
    out : Tensor, optional
        Tensor that the result is written to; of the same shape.
    dtype : dtype, optional
        Default: the default floating dtype, or the default complex one for complex ends.
    layout, device, pin_memory : optional
        Accepted for compatibility; must have their default values.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, `steps` values.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or a value out of the range of an integer dtype.

    Examples
    --------
    >>> cygrad.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "linspace")
    return _space(start, end, steps, 0, False, dtype, out, requires_grad, meta, "linspace")


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None,
             bint requires_grad=False, pin_memory=False):
    """
    Return powers of a base whose exponents are evenly spaced.

    Parameters
    ----------
    start, end : number
        First and last exponent.
    steps : int
        Number of values.
    base : float, default 10
    out : Tensor, optional
        Tensor that the result is written to; of the same shape.
    dtype : dtype, optional
        Default: the default floating dtype, or the default complex one for complex exponents.
    layout, device, pin_memory : optional
        Accepted for compatibility; must have their default values.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, `steps` values.

    Raises
    ------
    RuntimeError
        If `steps` is negative, or a value out of the range of an integer dtype.

    Examples
    --------
    >>> cygrad.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "logspace")
    return _space(start, end, steps, base, True, dtype, out, requires_grad, meta, "logspace")


# -------------------------------------------------------------------------------------------------------- random stream

# PyTorch's and NumPy's streams of random numbers, bit for bit: written into the memory of contiguous ndarrays.

cdef extern from "creation/pcg64.h" nogil:
    const int HAS_PCG
    ctypedef struct pcg64_t:
        pass
    void pcg_prepare()
    void pcg_state(const pcg64_t *source, uint64_t *words)
    void pcg_uniform(const pcg64_t *source, void *out, int64_t begin, int64_t end, int wide)
    void pcg_skip(pcg64_t *source, int64_t n, int wide)
    void pcg_normal(pcg64_t *source, float *out, int64_t n)
    void pcg_permutation(pcg64_t *source, int64_t *out, int64_t n)

cdef extern from "creation/mt19937.h" nogil:
    ctypedef struct mt19937_t:
        pass
    void mt_seed(mt19937_t *mt, uint64_t seed)
    double mt_normal(mt19937_t *mt, double mean, double std)
    void mt_uniform_float(mt19937_t *mt, float *out, int64_t n, float low, float high)
    void mt_uniform_double(mt19937_t *mt, double *out, int64_t n, double low, double high)
    void mt_integers(mt19937_t *mt, int64_t *out, int64_t n, uint64_t range, int64_t base, int wide)
    void mt_permutation(mt19937_t *mt, int64_t *out, int64_t n, int wide)
    void mt_exponential(mt19937_t *mt, double *out, int64_t n, double rate)
    void mt_poisson(mt19937_t *mt, double *out, int64_t n, const double *rates)
    void mt_binomial(mt19937_t *mt, double *out, int64_t n, const double *counts, const double *p, int single)
    void mt_normal_float(mt19937_t *mt, float *out, int64_t n, float mean, float std)
    void mt_normal_double(mt19937_t *mt, double *out, int64_t n, double mean, double std)

cdef enum:
    FEW = 16                   # from this many normal numbers on, they are drawn in blocks

ctypedef struct uniform_t:
    const pcg64_t *source
    void *out
    bint wide


cdef void _uniform(void *context, int64_t begin, int64_t end) noexcept nogil:
    cdef uniform_t *draw = <uniform_t *>context
    pcg_uniform(draw.source, draw.out, begin, end, draw.wide)


cdef int64_t _open(object array, const char *formats, Py_buffer *view) except -1:
    """Return the number of elements of a contiguous array, of one of these formats of the module `struct`."""
    PyObject_GetBuffer(array, view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
    if view.format == NULL or strlen(view.format) != 1 or strchr(formats, view.format[0]) == NULL:
        PyBuffer_Release(view)
        raise TypeError(f"random: expected an array of one of the formats {formats.decode()!r} "
                        f"(got {getattr(array, 'dtype', type(array).__name__)}).")
    return view.len // view.itemsize


@cython.binding(False)      # methods check the type of self
cdef class RandomStream:
    """
    A Mersenne Twister that produces the numbers of ``torch.Generator``. The caller ensures that one thread draws at
    a time.

    Parameters
    ----------
    seed : int
        A seed of 64 bits, of which the lower half is used.
    """
    cdef mt19937_t mt

    def __init__(self, uint64_t seed):
        mt_seed(&self.mt, seed)

    def packed(self):
        """Return the state as bytes."""
        return (<char *>&self.mt)[:sizeof(mt19937_t)]

    def unpack(self, bytes state not None):
        """Restore a state."""
        if len(state) != sizeof(mt19937_t):
            raise ValueError(f"set_state: not a state of this stream (got {len(state)} bytes, expected "
                             f"{sizeof(mt19937_t)}).")
        memcpy(&self.mt, <const char *>state, sizeof(mt19937_t))

    def uniform(self, out, double low, double high):
        """Fill float32 or float64 with uniform numbers in [low, high)."""
        cdef Py_buffer view
        cdef int64_t n = _open(out, b"fd", &view)
        with nogil:
            if view.itemsize == 4:
                mt_uniform_float(&self.mt, <float *>view.buf, n, <float>low, <float>high)
            else:
                mt_uniform_double(&self.mt, <double *>view.buf, n, low, high)
        PyBuffer_Release(&view)

    def normal(self, out, double mean, double std, bint in_blocks):
        """Fill float32 or float64 with normal numbers; `in_blocks` if the tensor is contiguous, else one at a time."""
        cdef Py_buffer view
        cdef int64_t i, n = _open(out, b"fd", &view)
        cdef bint single = view.itemsize == 4
        with nogil:
            if n < FEW or not in_blocks:
                for i in range(n):
                    if single:
                        (<float *>view.buf)[i] = <float>mt_normal(&self.mt, mean, std)
                    else:
                        (<double *>view.buf)[i] = mt_normal(&self.mt, mean, std)
            elif single:
                mt_normal_float(&self.mt, <float *>view.buf, n, <float>mean, <float>std)
            else:
                mt_normal_double(&self.mt, <double *>view.buf, n, mean, std)
        PyBuffer_Release(&view)

    def exponential(self, out, double rate):
        """Fill float64 with exponential numbers with mean 1 / rate."""
        cdef Py_buffer view
        cdef int64_t n = _open(out, b"d", &view)
        with nogil:
            mt_exponential(&self.mt, <double *>view.buf, n, rate)
        PyBuffer_Release(&view)

    def poisson(self, out, rates):
        """Fill float64 with Poisson counts, one for each rate."""
        self._count("poisson", out, rates, None, False)

    def binomial(self, out, counts, chances, bint single):
        """Fill float64 with numbers of successes; `single` if the parameters are rounded to float32."""
        self._count("binomial", out, counts, chances, single)

    cdef int _count(self, str operation, object out, object first, object second, bint single) except -1:
        """Fill with counts of one or two parameters for each."""
        cdef Py_buffer views[3]
        cdef int opened = 0
        try:
            for array in (out, first, second)[:2 if second is None else 3]:
                _open(array, b"d", &views[opened])
                opened += 1
                if views[opened - 1].len != views[0].len:
                    raise ValueError(f"{operation}: expected {len(out)} parameters (got {len(array)}).")
            with nogil:
                if opened == 2:
                    mt_poisson(&self.mt, <double *>views[0].buf, views[0].len // 8, <double *>views[1].buf)
                else:
                    mt_binomial(&self.mt, <double *>views[0].buf, views[0].len // 8, <double *>views[1].buf,
                                <double *>views[2].buf, single)
        finally:
            for i in range(opened):
                PyBuffer_Release(&views[i])
        return 0

    def integers(self, out, low, high, bint wide):
        """Fill int64 with integers in [low, high), of one word each, or of two if `wide`."""
        cdef uint64_t span = (high - low) & 0xffffffffffffffff
        cdef int64_t base = low, n
        cdef Py_buffer view
        n = _open(out, b"lq", &view)
        with nogil:
            mt_integers(&self.mt, <int64_t *>view.buf, n, span, base, wide)
        PyBuffer_Release(&view)

    def permutation(self, out, bint wide):
        """
        Fill int64 with a random permutation of the integers below the size of `out`, one word each, or two if `wide`.
        """
        cdef Py_buffer view
        cdef int64_t n = _open(out, b"lq", &view)
        with nogil:
            mt_permutation(&self.mt, <int64_t *>view.buf, n, wide)
        PyBuffer_Release(&view)


@cython.binding(False)      # methods check the type of self
cdef class PCG64Stream:
    """
    Fast generation of the numbers of `numpy.random.Generator` with a PCG64, in the memory of the same bit generator.

    The caller ensures that one thread draws at a time. `is_known` tells whether the memory layout is as expected.
    """
    cdef pcg64_t *source
    cdef object bit_generator
    cdef readonly bint is_known

    def __init__(self, bit_generator):
        cdef uint64_t words[5]
        self.bit_generator = bit_generator
        # The first field of NumPy's struct bitgen_t is the state.
        self.source = (<pcg64_t **>PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator"))[0]
        if HAS_PCG:
            pcg_state(self.source, words)
            state = bit_generator.state
            self.is_known = (state["state"]["state"], state["state"]["inc"], state["has_uint32"]) == (
                words[0] | <object>words[1] << 64, words[2] | <object>words[3] << 64, words[4])

    def _fill(self, out, int kind):
        cdef Py_buffer view
        cdef uniform_t draw
        cdef int64_t n = _open(out, b"fd" if kind == 0 else b"f" if kind == 1 else b"lq", &view)
        with nogil:
            if kind == 0:
                draw = uniform_t(self.source, view.buf, view.itemsize == 8)
                parallel_for(_uniform, &draw, n, CHUNK // COMPUTED)
                pcg_skip(self.source, n, draw.wide)
            elif kind == 1:
                pcg_normal(self.source, <float *>view.buf, n)
            else:
                pcg_permutation(self.source, <int64_t *>view.buf, n)
        PyBuffer_Release(&view)

    def random(self, out):
        """Fill with uniform float32 or float64 in [0, 1)."""
        self._fill(out, 0)

    def standard_normal(self, out):
        """Fill with normal float32."""
        self._fill(out, 1)

    def permutation(self, out):
        """Fill with a random permutation of integers; `out` is an int64 array of less than 2**32 elements."""
        self._fill(out, 2)


pcg_prepare()
