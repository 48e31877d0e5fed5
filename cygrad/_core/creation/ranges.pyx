"""Tensors of evenly spaced values: arange, linspace, logspace."""

cimport cygrad._core.primitives.complex_parts
from libc.math cimport ceil, fma, isfinite, pow
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from cygrad._core.arrays.dtype cimport (
    BOOL, COMPLEX64, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, default_complex, default_float,
    UINT64, computed_in, dtype_name, is_complex, is_floating)
from cygrad._core.creation.creation cimport (
    check_place, dtype_or, empty_tensor, finish, plain_number, tensor_from)
from cygrad._core.graph.tensor cimport Tensor

from cygrad._core.table.operator import operators

cdef extern from "<complex.h>" nogil:
    double complex cpow(double complex, double complex)

ctypedef fused integer_t:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused real_t:
    float
    double

ctypedef fused complex_t:
    float complex
    double complex

cdef enum:
    LINEAR = 0
    LOGARITHMIC = 1


# ---- arange --------------------------------------------------------------------------------------

cdef void _count_integers(integer_t *out, int64_t n, int64_t start, int64_t step) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = <integer_t>(start + step * i)


cdef void _count_reals(real_t *out, int64_t n, double start, double step) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = <real_t>(start + step * i)


cdef int64_t _length(object start, object end, object step, int dtype) except -1:
    """Return how many values arange has, counted as in PyTorch."""
    cdef double length, first = start, last = end, by = step
    if not isfinite(first) or not isfinite(last):
        raise RuntimeError(f"arange: start and end must be finite (got {start} and {end})")
    if by == 0:
        raise RuntimeError(f"arange: step must not be zero (got {step})")
    if dtype == INT64 and isfinite(by) and int(step) == 0:
        raise ValueError(f"arange: as an integer the step is zero (got {step}). Give a floating dtype.")
    if not isfinite(by):
        raise RuntimeError(f"arange: step must be finite (got {step})")
    if (last < first) if by > 0 else (last > first):
        raise RuntimeError(f"arange: the step leads away from the end (got start {start}, end {end}, step {step}). "
                           "Change the sign of the step.")
    if dtype == INT64:                           # exact: doubles cannot represent all large integers
        return max(0, -((int(start) - int(end)) // int(step)))
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
        Not included.
    step : number, default 1
        Not zero.
    out : Tensor, optional
        Written to instead; of the same shape.
    dtype : dtype, optional
        Default: int64 if all numbers are integers, else the default floating dtype.
    layout, device, pin_memory : optional
        Only their defaults.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, ``ceil((end - start) / step)`` values.

    Raises
    ------
    RuntimeError
        If step is zero or leads away from the end, or a number is not finite.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.arange(1, 6, 2)
    tensor([1, 3, 5])
    >>> cygrad.arange(0.5, 2)
    tensor([0.5000, 1.5000])
    """
    cdef Tensor result
    cdef double first, by
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
            raise RuntimeError(f"arange: complex numbers have no order (got {number})")
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
    first, by = start, step
    if wide == FLOAT32:
        _count_reals(<float *>result.array.data, n, first, by)
    elif wide == FLOAT64:
        _count_reals(<double *>result.array.data, n, first, by)
    else:
        _fill_integers(result, int(start), int(step))
    return _deliver(result, code, out, requires_grad, meta, "arange")


cdef int _fill_integers(Tensor result, int64_t start, int64_t step) except -1:
    cdef char *data = result.array.data
    cdef int64_t n = result.array.size
    if result.array.dtype == INT64:
        _count_integers(<int64_t *>data, n, start, step)
    elif result.array.dtype == INT32:
        _count_integers(<int32_t *>data, n, start, step)
    elif result.array.dtype == INT16:
        _count_integers(<int16_t *>data, n, start, step)
    elif result.array.dtype == INT8:
        _count_integers(<int8_t *>data, n, start, step)
    else:
        _count_integers(<uint8_t *>data, n, start, step)
    return 0


cdef object _deliver(Tensor result, int dtype, object out, bint needs_grad, bint meta, str operation):
    """Round `result`, computed in the compute dtype, to `dtype`."""
    if dtype != result.array.dtype:
        result = tensor_from(result, dtype, operation)
    if out is None:
        return finish(result, needs_grad, meta)
    return operators.written(result, out=out)


# linspace and logspace count from the nearer end, so that the last value is exactly `end` and the values are symmetric.

cdef void _space_reals(real_t *out, int64_t n, double start, double end, bint logarithmic, double base) noexcept nogil:
    cdef double step = 0
    cdef real_t first = <real_t>start, last = <real_t>end, width = 0
    cdef int64_t i
    if n > 1:
        step = (end - start) / (n - 1)
        width = (last - first) / (n - 1)
    for i in range(n):
        if logarithmic:
            out[i] = <real_t>pow(base, start + step * i if n == 1 or i < n // 2 else end - step * (n - i - 1))
        elif n == 1 or i < n // 2:                 # computed in the dtype itself and rounded once, as in PyTorch
            out[i] = <real_t>(<double>width * i + first) if real_t is float else <real_t>fma(width, i, first)
        else:
            out[i] = (<real_t>(last - <double>width * (n - i - 1)) if real_t is float
                      else <real_t>fma(-width, n - i - 1, last))


cdef void _space_integers(integer_t *out, int64_t n, int64_t start, int64_t end, bint logarithmic,
                          double base) noexcept nogil:
    cdef double step = 0
    cdef float narrow_step, narrow
    cdef int64_t i
    if n > 1:
        step = (<double>end - <double>start) / (n - 1)
    narrow_step = <float>step
    for i in range(n):
        if logarithmic:
            narrow = start + narrow_step * i if n == 1 or i < n // 2 else end - narrow_step * (n - i - 1)
            out[i] = <integer_t><int64_t>pow(base, narrow)
        else:
            # Integer steps from the end: the end is exact, and the rest is truncated.
            out[i] = (<integer_t><int64_t>(start + step * i) if n == 1 or i < n // 2
                      else <integer_t><int64_t>(end - step * (n - i - 1)))


cdef void _space_complex(complex_t *out, int64_t n, double complex start, double complex end, bint logarithmic,
                         double base) noexcept nogil:
    cdef complex_t first = <complex_t>start, last = <complex_t>end, step = 0, value
    cdef int64_t i
    if n > 1:
        step = (last - first) / <complex_t>(n - 1)
    for i in range(n):
        if n == 1 or i < n // 2:
            value = first + step * <complex_t>i
        else:
            value = last - step * <complex_t>(n - i - 1)
        out[i] = <complex_t>cpow(base, value) if logarithmic else value


cdef void _fill_reals(Tensor result, double start, double end, double base, bint logarithmic) noexcept:
    if result.array.dtype == FLOAT32:
        _space_reals(<float *>result.array.data, result.array.size, start, end, logarithmic, base)
    else:
        _space_reals(<double *>result.array.data, result.array.size, start, end, logarithmic, base)


cdef void _fill_complex(Tensor result, double complex start, double complex end, double base,
                        bint logarithmic) noexcept:
    if result.array.dtype == COMPLEX64:
        _space_complex(<float complex *>result.array.data, result.array.size, start, end, logarithmic, base)
    else:
        _space_complex(<double complex *>result.array.data, result.array.size, start, end, logarithmic, base)


cdef void _fill_space(Tensor result, int64_t start, int64_t end, double base, bint logarithmic) noexcept:
    cdef char *data = result.array.data
    cdef int64_t n = result.array.size
    if result.array.dtype == INT64:
        _space_integers(<int64_t *>data, n, start, end, logarithmic, base)
    elif result.array.dtype == INT32:
        _space_integers(<int32_t *>data, n, start, end, logarithmic, base)
    elif result.array.dtype == INT16:
        _space_integers(<int16_t *>data, n, start, end, logarithmic, base)
    elif result.array.dtype == INT8:
        _space_integers(<int8_t *>data, n, start, end, logarithmic, base)
    else:
        _space_integers(<uint8_t *>data, n, start, end, logarithmic, base)


cdef object _space(object start, object end, object steps, double base, bint logarithmic, object dtype, object out,
                   bint needs_grad, bint meta, str operation):
    cdef Tensor result
    cdef int64_t n
    cdef int code
    for bound in (start, end):
        if isinstance(bound, Tensor) and (<Tensor>bound).array.ndim:
            raise RuntimeError(f"{operation}: only supports 0-dimensional start and end tensors (got shape "
                               f"{tuple(bound.shape)}). Take one element.")
    start, end = plain_number(start, operation), plain_number(end, operation)
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(f"{operation}: argument 'steps' must be an integer (got {steps!r})")
    n = steps.__index__()
    if n < 0:
        raise RuntimeError(f"{operation}: number of steps must be non-negative (got {n})")
    if dtype is None and out is not None:
        dtype = out.dtype
    both_complex = isinstance(start, complex) or isinstance(end, complex)
    code = dtype_or(dtype, default_complex() if both_complex else default_float(), operation)
    if code == BOOL:
        raise NotImplementedError(f"{operation}: not implemented for bool (expected a numeric dtype)")
    if both_complex and not is_complex(code):
        raise RuntimeError(f"{operation}: complex ends need a complex dtype (got {dtype_name(code).decode()})")
    result = empty_tensor((n,), INT64 if code == UINT64 else computed_in(code), False, operation)
    if is_complex(code):
        _fill_complex(result, start, end, base, logarithmic)
    elif is_floating(code):
        _fill_reals(result, start, end, base, logarithmic)
    else:
        _fill_space(result, int(start), int(end), base, logarithmic)
    return _deliver(result, code, out, needs_grad, meta, operation)


def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, bint requires_grad=False,
             pin_memory=False):
    """
    Return evenly spaced values, both ends included.

    Parameters
    ----------
    start, end : number
        First and last value.
    steps : int
        How many values.
    out : Tensor, optional
        Written to instead; of the same shape.
    dtype : dtype, optional
        Default: the default floating dtype, or the default complex one for complex ends.
    layout, device, pin_memory : optional
        Only their defaults.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, `steps` values.

    Raises
    ------
    RuntimeError
        If `steps` is negative.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "linspace")
    return _space(start, end, steps, 0, LINEAR, dtype, out, requires_grad, meta, "linspace")


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None,
             bint requires_grad=False, pin_memory=False):
    """
    Return powers of a base whose exponents are evenly spaced.

    Parameters
    ----------
    start, end : number
        First and last exponent.
    steps : int
        How many values.
    base : float, default 10
    out : Tensor, optional
        Written to instead; of the same shape.
    dtype : dtype, optional
        Default: the default floating dtype, or the default complex one for complex exponents.
    layout, device, pin_memory : optional
        Only their defaults.
    requires_grad : bool, default False

    Returns
    -------
    Tensor
        One-dimensional, `steps` values.

    Raises
    ------
    RuntimeError
        If `steps` is negative.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    cdef bint meta = check_place(device, layout, pin_memory, "logspace")
    return _space(start, end, steps, base, LOGARITHMIC, dtype, out, requires_grad, meta, "logspace")
