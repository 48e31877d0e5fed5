"""New tensors of random numbers."""

import math
from numbers import Number

import numpy as np

from cygrad._core.arrays.array import is_meta_place
from cygrad._core.arrays.dtype import bool as bool_dtype
from cygrad._core.arrays.dtype import dtype as Dtype
from cygrad._core.arrays.dtype import get_default_dtype, int64, promote_types
from cygrad._core.creation.creation import elements, from_numpy
from cygrad._core.creation.factories import empty, empty_like, zeros
from cygrad._core.graph.argument_errors import as_integer, as_number
from cygrad._core.graph.modes import is_grad_enabled
from cygrad._core.graph.tensor import Tensor
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.conversion import values_of
from cygrad.random import draws
from cygrad.random.generator import chosen

__all__ = [
    "bernoulli", "dropout_mask", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm",
]


# ---- arguments

def _sizes(args, size, operation):
    """Return the shape as a tuple, checked as by `empty`."""
    if size is not None:
        args = (tuple(size) if hasattr(size, "__len__") else (size,),)
    elif not args:
        raise TypeError(f"{operation}: missing sizes (got none, expected integers or a tuple of them).")
    sizes = args[0] if len(args) == 1 and hasattr(args[0], "__len__") and not isinstance(args[0], Tensor) else args
    sizes = tuple(sizes)                  # a copy: the conversion of an item may modify the sequence
    for n in sizes:
        if type(n) is not int or not 0 <= n < 1 << 63:
            break
    else:
        return sizes
    if any(not hasattr(n, "__index__") or isinstance(n, bool) for n in sizes):
        raise TypeError(f"{operation}: sizes must be integers (got {sizes!r}).")
    sizes = tuple([as_integer(operation, "size", n) for n in sizes])
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"{operation}: sizes must not be negative (got {sizes}).")
    return sizes


def _plain(dtype):
    return dtype if isinstance(dtype, Dtype) else promote_types(dtype, dtype)


def _dtype(dtype, out, default):
    if dtype is None:
        return default if out is None else as_tensor_argument("random", "out", out).dtype
    return _plain(dtype)


def _inexact(dtype, operation):
    """Return the NumPy dtype to draw in; raise for integer dtypes."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise NotImplementedError(f"{operation}: not implemented for {dtype.name} (expected a floating or complex "
                                  "dtype).")
    return draws.drawn_in(dtype)


def check_std(std, operation):
    """Refuse a negative standard deviation."""
    if as_number(operation, "std", std) < 0:
        raise RuntimeError(f"{operation}: std must not be negative (got {std}).")


def check_bounds(low, high, dtype, operation):
    """Raise for an empty range, or bounds outside the dtype."""
    if dtype.is_complex:
        raise NotImplementedError(f"{operation}: not implemented for {dtype.name} (expected a real dtype).")
    if as_number(operation, "from", low) >= as_number(operation, "to", high):
        raise RuntimeError(f"{operation}: the lower bound must be below the upper one (got {low} and {high}).")
    if low != low or high != high:
        raise RuntimeError(f"{operation}: bounds must be numbers (got {low} and {high}).")
    smallest, largest = draws.limits(dtype)
    if low < smallest or high - 1 > largest:
        text = (f"{operation}: bounds outside the range of {dtype.name} (got [{low}, {high}), expected within "
                f"[{smallest}, {largest}]).")
        most = 65504 if dtype.name == "float16" else (1 << 63) - 1
        if not dtype.is_floating_point or low < -most - 1 or high - 1 > most:
            raise RuntimeError(text)
        warn_user(f"{text} Integers that the dtype does not represent are rounded.")


def below(array, dtype, low, high):
    """Draw numbers in [low, high): those that the dtype rounds to the upper end become the lower one."""
    if dtype.name in draws.WIDER:
        flat = array.reshape(-1).view(np.float32)
        flat[elements(from_numpy(flat).to(dtype.to_real())) >= high] = low
    return array


def _check_place(device, layout, pin_memory):
    """Return whether the result is on the meta device; raise for unavailable devices."""
    if layout is not None or pin_memory:
        empty(0, layout=layout, pin_memory=pin_memory)
    return is_meta_place(device, "random")


def _finished(array, dtype, out, requires_grad):
    """Return a tensor over a new array, or cast from it, or `out` with its values."""
    result = draws.tensor_over(array)
    if result.dtype is not dtype:
        result = result.to(dtype)
    if out is not None:
        return operators.written(result, out=as_tensor_argument("random", "out", out))
    return result.requires_grad_() if requires_grad else result


def _after(drawn, out, *parameters):
    """Connect drawn numbers to parameters that require grad: with gradients of zero."""
    for parameter in parameters:
        if isinstance(parameter, Tensor) and parameter.requires_grad and is_grad_enabled() and out is None:
            drawn = operators.where(zeros((), dtype=bool_dtype), parameter, drawn)
    return drawn


# ---- distributions

@documented()
def rand(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
         pin_memory=False):
    """Return uniform numbers in [0, 1).

    Parameters
    ----------
    *args, size : int or tuple of int
        The shape.
    dtype : dtype, optional
        Floating or complex; default: the default floating dtype.
    requires_grad : bool, default False

    Examples
    --------
    >>> x = cygrad.rand(2, 3)
    >>> bool(((x >= 0) & (x < 1)).all())
    True
    """
    if _check_place(device, layout, pin_memory):
        return empty(_sizes(args, size, "rand"), dtype=dtype, device="meta", requires_grad=requires_grad)
    dtype = _dtype(dtype, out, get_default_dtype())
    array = draws.uniform(chosen(generator, "rand"), _sizes(args, size, "rand"), _inexact(dtype, "rand"))
    return _finished(below(array, dtype, 0, 1), dtype, out, requires_grad)


@documented()
def randn(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
          pin_memory=False):
    """Return normal numbers with mean 0 and variance 1.

    Parameters
    ----------
    *args, size : int or tuple of int
        The shape.
    dtype : dtype, optional
        Floating or complex; default: the default floating dtype. The parts of complex numbers have
        variance 1/2 each.
    requires_grad : bool, default False

    Examples
    --------
    >>> cygrad.randn(2, 3).shape == (2, 3)
    True
    """
    if _check_place(device, layout, pin_memory):
        return empty(_sizes(args, size, "randn"), dtype=dtype, device="meta", requires_grad=requires_grad)
    dtype = _dtype(dtype, out, get_default_dtype())
    array = draws.normal(chosen(generator, "randn"), _sizes(args, size, "randn"), _inexact(dtype, "randn"))
    return _finished(array, dtype, out, requires_grad)


@documented()
def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None,
            requires_grad=False, pin_memory=False):
    """Return uniform integers in [low, high).

    Parameters
    ----------
    *args : int, int, tuple of int
        ``randint(high, size)`` or ``randint(low, high, size)``; all of them also by name.
    low, high : int
        `low` is 0 if not given.
    size : tuple of int
    dtype : dtype, optional
        Real; default int64.
    requires_grad : bool, default False

    Raises
    ------
    RuntimeError
        If there is no integer between the bounds, or the dtype does not hold them.

    Examples
    --------
    >>> x = cygrad.randint(5, (100,))
    >>> bool(((x >= 0) & (x < 5)).all())
    True
    """
    meta = _check_place(device, layout, pin_memory)
    bounds = list(args)
    if size is None:
        if not bounds or not isinstance(bounds[-1], (tuple, list)):
            raise TypeError(f"randint: the last argument must be the size, a tuple of integers (got {tuple(bounds)}).")
        size = bounds.pop()
    if high is None:
        if not bounds:
            raise TypeError("randint: missing argument 'high'.")
        high = bounds.pop()
    if low is None:
        low = bounds.pop() if bounds else 0
    if bounds or not all(hasattr(bound, "__index__") for bound in (low, high)):
        raise TypeError(f"randint: the bounds must be one or two integers (got {low!r}, {high!r}).")
    dtype = _dtype(dtype, out, int64)
    check_bounds(low, high, dtype, "randint")
    if meta:
        return empty(_sizes((), size, "randint"), dtype=dtype, device="meta", requires_grad=requires_grad)
    array = draws.integers(chosen(generator, "randint"), _sizes((), size, "randint"), draws.drawn_in(dtype),
                           low.__index__(), high.__index__())
    return _finished(array, dtype, out, requires_grad)


@documented()
def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False,
             pin_memory=False):
    """Return a random permutation of the integers below n.

    Parameters
    ----------
    n : int
    dtype : dtype, optional
        Default int64.
    requires_grad : bool, default False

    Raises
    ------
    RuntimeError
        If `n` is negative, or too large for the dtype.

    Examples
    --------
    >>> cygrad.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    meta = _check_place(device, layout, pin_memory)
    if type(n) is not int or n < 0 or n >> 63:
        (n,) = _sizes((n,), None, "randperm")
    dtype = _dtype(dtype, out, int64)
    if dtype is not int64 and not dtype.is_complex and n - 1 > draws.limits(dtype)[1]:
        raise RuntimeError(f"randperm: n is too large for {dtype.name} (got {n}).")
    if meta:
        return empty(n, dtype=dtype, device="meta")
    array = draws.permutation(chosen(generator, "randperm"), n, draws.drawn_in(dtype))
    return _finished(array, dtype, out, requires_grad)


@documented()
def normal(mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None,
           requires_grad=False, pin_memory=False):
    """Return normal numbers, each with its mean and standard deviation.

    Parameters
    ----------
    mean, std : Tensor or number
        Broadcast against each other. With two numbers `size` is needed.
    size : tuple of int, optional
    dtype : dtype, optional
        With `size` only.
    requires_grad : bool, default False
        With `size` only.

    Returns
    -------
    Tensor
        Detached: no gradient flows to `mean` and `std`.

    Raises
    ------
    RuntimeError
        If a standard deviation is negative.

    Examples
    --------
    >>> cygrad.normal(cygrad.tensor([1., 2.]), 0.)
    tensor([1., 2.])
    """
    generator = chosen(generator, "normal")
    meta = _check_place(device, layout, pin_memory)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal: two numbers need a size (got none).")
        check_std(std, "normal")
        dtype = _dtype(dtype, out, get_default_dtype())
        kind = _inexact(dtype, "normal")
        if meta:
            return empty(_sizes((), size, "normal"), dtype=dtype, device="meta", requires_grad=requires_grad)
        array = draws.normal(generator, _sizes((), size, "normal"), kind, mean, std)
        return _finished(array, dtype, out, requires_grad)
    model = mean if isinstance(mean, Tensor) else std
    kind = _inexact(model.dtype, "normal")
    means, stds = (values_of(x) if isinstance(x, Tensor) else np.asarray(x) for x in (mean, std))
    for name, values in (("mean", means), ("std", stds)):
        if values.dtype.kind not in "biufcV":
            raise TypeError(f"normal: argument '{name}' must be a number or a Tensor (got {values.dtype}).")
    if not (stds >= 0).all():
        raise RuntimeError("normal: standard deviations must not be negative.")
    shapes = [tuple(x.shape) if isinstance(x, Tensor) else np.shape(x) for x in (mean, std)]      # within `vmap`
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(f"normal: cannot broadcast shapes {shapes[0]} and {shapes[1]}.") from None
    array = draws.normal(generator, shape, kind) * stds.astype(kind) + means.astype(kind)
    return _after(_finished(array, model.dtype, out, requires_grad), out, mean, std)


@documented()
def bernoulli(input, p=None, *, generator=None, out=None):
    """Return 1 with the given probabilities, else 0.

    Parameters
    ----------
    input : Tensor
        Probabilities; if `p` is given, only its shape and dtype matter.
    p : float, optional
        One probability for all.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`, without a history.

    Raises
    ------
    RuntimeError
        If a probability is not in [0, 1].
    NotImplementedError
        If probabilities are no floating numbers.

    Examples
    --------
    >>> cygrad.bernoulli(cygrad.tensor([0., 1.]))
    tensor([0., 1.])
    """
    as_tensor_argument("bernoulli", "input", input)
    if p is None and not input.is_floating_point():
        raise NotImplementedError(f"bernoulli: probabilities must be floating (got {input.dtype.name}).")
    probabilities = check_probabilities(input if p is None else p, "bernoulli")
    array = draws.bernoulli(chosen(generator, "bernoulli"), probabilities, tuple(input.shape),
                            draws.drawn_in(input.dtype))
    dtype = input.dtype if out is None else as_tensor_argument("bernoulli", "out", out).dtype
    return _after(_finished(array, dtype, out, False), out, input)


def check_probabilities(p, operation):
    """Return a number or an ndarray, all in [0, 1]."""
    values = values_of(p) if isinstance(p, Tensor) else p
    number = type(values) in (float, int)
    if not number and not isinstance(p, Tensor):
        as_number(operation, "p", values)
    if not (0 <= values <= 1 if number else np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1))):
        raise RuntimeError(f"{operation}: probabilities must be in [0, 1]"
                           + (f" (got {p})." if isinstance(p, Number) else "."))
    return values


@documented()
def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Draw indices with the given weights.

    Parameters
    ----------
    input : Tensor
        Weights, floating and not negative, along the last of one or two dimensions; they need not add
        up to 1.
    num_samples : int
        How many for each row.
    replacement : bool, default False
        Whether a position may be drawn again.

    Returns
    -------
    Tensor
        Of int64.

    Raises
    ------
    RuntimeError
        If the weights are no distribution, or too few of them are positive for sampling without replacement.

    Examples
    --------
    >>> cygrad.multinomial(cygrad.tensor([0., 0., 1.]), 2, replacement=True)
    tensor([2, 2])
    """
    if out is not None and as_tensor_argument("multinomial", "out", out).dtype is not int64:
        raise RuntimeError(f"multinomial: expected out of dtype int64 (got {out.dtype}).")
    if as_tensor_argument("multinomial", "input", input).ndim not in (1, 2):
        raise RuntimeError(f"multinomial: weights must have 1 or 2 dimensions (got shape {tuple(input.shape)}).")
    if not input.is_floating_point():
        raise RuntimeError(f"multinomial: weights must be floating (got {input.dtype.name}).")
    if (num_samples := as_integer("multinomial", "num_samples", num_samples)) <= 0:
        raise RuntimeError(f"multinomial: the number of samples must be positive (got {num_samples}).")
    weights = values_of(input)
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(f"multinomial: cannot draw {num_samples} different positions of {weights.shape[-1]}.")
    least, most = (weights.min(), weights.max()) if weights.size else (0, 0)
    if not (least >= 0 and most < math.inf):
        raise RuntimeError("multinomial: weights must be finite and not negative.")
    possible = weights.shape[-1]
    if least == 0:
        possible = (weights > 0).sum(-1).min(initial=possible)
    if possible == 0:
        raise RuntimeError("multinomial: the weights of a row add up to zero.")
    if not replacement and possible < num_samples:
        raise RuntimeError(f"multinomial: cannot draw {num_samples} different positions where only {possible} have a "
                           "weight.")
    array = draws.weighted(chosen(generator, "multinomial"), weights, num_samples, replacement)
    return _finished(array, int64, out, False)


@documented()
def dropout_mask(input, p, *, generator=None):
    """
    Return the factors of dropout: 0 with probability p, else 1 / (1 - p).

    Parameters
    ----------
    input : Tensor
        Its shape and dtype, floating or complex, are those of the mask.
    p : float
        In [0, 1].

    Raises
    ------
    ValueError
        If `p` is not in [0, 1].

    Examples
    --------
    >>> from cygrad.random import dropout_mask
    >>> dropout_mask(cygrad.ones(3), 0.)
    tensor([1., 1., 1.])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: the probability must be in [0, 1] (got {p}).")
    kind = _inexact(input.dtype, "dropout")
    chance = draws.uniform(chosen(generator, "dropout"), tuple(input.shape), np.float32)
    mask = (chance >= p).astype(kind)
    if 0 < p < 1:
        mask *= kind.type(1 / (1 - p))
    return draws.tensor_over(mask).to(input.dtype)


# ---- like another tensor

def _in_memory_order(drawn, input, memory_format):
    """Return the numbers in the layout of another tensor, or in a memory format, and of its class."""
    if (memory_format is None and input.is_contiguous() and type(input) is Tensor) or drawn.is_meta:
        return drawn
    placed = empty_like(input, dtype=drawn.dtype, memory_format=memory_format).copy_(drawn.detach())
    return placed.requires_grad_() if drawn.requires_grad else placed


@documented()
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
              memory_format=None):
    """Return uniform numbers in [0, 1), in the shape of another tensor.

    Parameters
    ----------
    generator, layout, device, requires_grad, pin_memory : optional
        As for `rand`.
    dtype : dtype, optional
        Default: that of `input`.
    memory_format : memory_format, optional
        Default: as the other one lies in memory, without its gaps.

    Examples
    --------
    >>> cygrad.rand_like(cygrad.zeros(2, 3)).shape == (2, 3)
    True
    """
    as_tensor_argument("rand_like", "input", input)
    drawn = rand(tuple(input.shape), generator=generator, dtype=dtype or input.dtype, layout=layout,
                 device=input.device if device is None else device, requires_grad=requires_grad, pin_memory=pin_memory)
    return _in_memory_order(drawn, input, memory_format)


@documented()
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
               memory_format=None):
    """Return normal numbers, in the shape of another tensor.

    Parameters
    ----------
    generator, layout, device, requires_grad, pin_memory : optional
        As for `randn`.
    dtype : dtype, optional
        Default: that of `input`.
    memory_format : memory_format, optional
        Default: as the other one lies in memory, without its gaps.

    Examples
    --------
    >>> cygrad.randn_like(cygrad.zeros(2, 3)).shape == (2, 3)
    True
    """
    as_tensor_argument("randn_like", "input", input)
    drawn = randn(tuple(input.shape), generator=generator, dtype=dtype or input.dtype, layout=layout,
                  device=input.device if device is None else device, requires_grad=requires_grad,
                  pin_memory=pin_memory)
    return _in_memory_order(drawn, input, memory_format)


@documented()
def randint_like(input, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None,
                 requires_grad=False, pin_memory=False, memory_format=None):
    """Return uniform integers in [low, high), in the shape of another tensor.

    Parameters
    ----------
    *args, low, high : int
        ``high``, or ``low, high``.
    generator, layout, device, requires_grad, pin_memory : optional
        As for `randint`.
    dtype : dtype, optional
        Default: that of `input`.
    memory_format : memory_format, optional
        Default: as the other one lies in memory, without its gaps.

    Examples
    --------
    >>> cygrad.randint_like(cygrad.zeros(2, 3), 1)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    as_tensor_argument("randint_like", "input", input)
    drawn = randint(*args, low=low, high=high, size=tuple(input.shape), generator=generator,
                    dtype=dtype or input.dtype, layout=layout, device=input.device if device is None else device,
                    requires_grad=requires_grad, pin_memory=pin_memory)
    return _in_memory_order(drawn, input, memory_format)
