"""Piecewise linear activations, and in-place activations."""

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.activation import celu, hardtanh, leaky_relu, with_inplace, write_into
from cygrad.random.generator import per_entry

__all__ = ["celu_", "hardshrink", "hardsigmoid", "hardswish", "hardtanh_", "prelu", "rrelu", "rrelu_", "softshrink",
           "threshold", "threshold_"]

_softshrink, _threshold, _prelu = operators.softshrink, operators.threshold, operators.prelu_elementwise

hardshrink = operators.hardshrink
hardsigmoid, hardswish = (with_inplace(name)[0] for name in ("hardsigmoid", "hardswish"))


def celu_(input, alpha=1.0):
    """Apply `celu` in place."""
    return celu(input, alpha, inplace=True)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """Apply `hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def softshrink(input, lambd=0.5, *, out=None):
    """
    Move each element towards 0 by `lambd`; elements nearer to 0 become 0.

    Parameters
    ----------
    input : Tensor
    lambd : float, default 0.5
        Not negative.
    out : Tensor, optional
        Tensor that the result is written to.

    Returns
    -------
    Tensor
        Derivative 0 at ``±lambd``.

    Examples
    --------
    >>> F.softshrink(cygrad.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if as_number("softshrink", "lambd", lambd) < 0:
        raise RuntimeError(f"softshrink: lambd must not be negative (got {lambd}).")
    return _softshrink(input, lambd) if out is None else _softshrink(input, lambd, out=out)


def once_each(input):
    """Return a view without expanded dimensions, so that each element occurs once."""
    repeated = [size > 1 and step == 0 for size, step in zip(input.shape, input.stride(), strict=True)]
    if not any(repeated):
        return input
    sizes = [1 if again else size for size, again in zip(input.shape, repeated, strict=True)]
    return input.as_strided(sizes, input.stride(), input.storage_offset())


def _threshold_of_integers(input, threshold, value):
    return cygrad.where(input <= threshold, value, input)


def threshold(input, threshold, value, inplace=False):
    """
    Return each element, or `value` if it does not exceed the threshold.

    Parameters
    ----------
    input : Tensor
    threshold, value : number
        `value` is truncated for integer inputs.
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative 0 at the threshold.

    Examples
    --------
    >>> F.threshold(cygrad.tensor([0.2, 1.0]), 0.5, 9.0)
    tensor([9., 1.])
    """
    function = _threshold
    if not as_tensor_argument("threshold", "input", input).is_floating_point():
        function, value = _threshold_of_integers, int(as_number("threshold", "value", value))
    if not inplace:
        return function(input, threshold, value)
    write_into(once_each(input), function, threshold, value)
    return input


_into_input = threshold


def threshold_(input, threshold, value):
    """Apply `threshold` in place."""
    return _into_input(input, threshold, value, inplace=True)


@computes_in("lower")
def prelu(input, weight):
    """
    Scale negative elements by a learned slope (He et al., 2015).

    Parameters
    ----------
    input : Tensor
    weight : Tensor
        One slope, or one for each channel (dimension 1) in a vector.

    Returns
    -------
    Tensor
        Derivative `weight` at 0.

    Raises
    ------
    RuntimeError
        If the number of slopes is neither 1 nor the number of channels, or dtypes differ.

    Examples
    --------
    >>> cygrad.nn.functional.prelu(cygrad.tensor([[-1.0, -1.0]]), cygrad.tensor([0.5, 0.25]))
    tensor([[-0.5000, -0.2500]])
    """
    as_tensor_argument("prelu", "input", input)
    if as_tensor_argument("prelu", "weight", weight).dtype != input.dtype:
        raise RuntimeError(f"prelu: input and weight must have the same dtype (got {input.dtype} and {weight.dtype}). "
                           "Convert one with to().")
    if weight.numel() != 1 or (weight.ndim > 1 and weight.ndim != input.ndim):
        channels = input.shape[1] if input.ndim > 1 else 1
        if input.ndim == 0 or weight.ndim != 1 or weight.numel() != channels:
            raise RuntimeError(f"prelu: expected one slope, or one for each channel (got shape {tuple(weight.shape)}, "
                               f"expected ({channels},)).")
        weight = weight.reshape(1, channels, *(1,) * (input.ndim - 2)) if input.ndim > 1 else weight
    elif input.ndim == 0:
        weight = weight.reshape(())
    return _prelu(input, weight)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    """
    Scale negative elements by random slopes.

    Parameters
    ----------
    input : Tensor
    lower, upper : float, default 1/8 and 1/3
        Slopes are uniform between the two.
    training : bool, default False
        If False, all slopes are the mean of the two.
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative at 0: the slope.

    Raises
    ------
    RuntimeError
        If `lower` exceeds `upper`.

    Examples
    --------
    >>> F.rrelu(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2292,  2.0000])
    """
    as_tensor_argument("rrelu", "input", input)
    if not as_number("rrelu", "lower", lower) <= as_number("rrelu", "upper", upper):
        raise RuntimeError(f"rrelu: lower must not exceed upper (got {lower} and {upper}).")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    with cygrad.no_grad():
        slopes = (per_entry(cygrad.empty_like(input)).uniform_(lower, upper) if upper > lower
                  else cygrad.full_like(input, lower))
    return write_into(input, _prelu, slopes) if inplace else _prelu(input, slopes)


def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False):
    """Apply `rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)
