"""Activations: the rows of the operator table with the options that users know."""

from cygrad._core.arrays.dtype import uint8
from cygrad._core.graph.user_warnings import warn_user
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.operators import OPERATORS

__all__ = ["celu", "elu", "gelu", "glu", "hardtanh", "leaky_relu", "log_softmax", "logsigmoid", "mish", "relu",
           "relu6", "relu6_", "relu_", "selu", "sigmoid", "silu", "softmax", "softmin", "softplus", "softsign", "tanh",
           "tanhshrink", "write_into"]

_celu, _elu, _gelu, _gelu_tanh, _hardtanh, _leaky_relu, _log_softmax, _mish, _relu, _relu6, _selu, _silu, _softmax = (
    OPERATORS[name] for name in ("celu", "elu", "gelu", "gelu_tanh", "hardtanh", "leaky_relu", "log_softmax", "mish",
                                 "relu", "relu6", "selu", "silu", "softmax"))

sigmoid = OPERATORS["sigmoid"]
tanh = OPERATORS["tanh"]
logsigmoid = OPERATORS["logsigmoid"]
softplus = OPERATORS["softplus"]


def relu(input, inplace=False):
    """
    The larger of 0 and each element.

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative 0 at 0.
    """
    return input.relu_() if inplace else _relu(input)


def relu_(input):
    """`relu` written into its input."""
    return as_tensor_argument("relu_", "input", input).relu_()


def write_into(input, function, *options):
    """
    Write ``function(input)`` into `input`.

    The function gets a copy, because it may keep its argument for backward, where the old values are needed.
    """
    return as_tensor_argument(function.__name__, "input", input).copy_(function(input.clone(), *options))


def relu6(input, inplace=False):
    """
    Each element, but at least 0 and at most 6.

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative 0 at the bounds.
    """
    return write_into(input, _relu6) if inplace else _relu6(input)


def relu6_(input):
    """`relu6` written into its input."""
    return write_into(input, _relu6)


def hardtanh(input, min_val=-1, max_val=1, inplace=False):
    """
    Each element, but within two bounds.

    Parameters
    ----------
    input : Tensor
    min_val, max_val : number, default -1 and 1
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative 0 at the bounds.
    """
    if not min_val <= max_val:
        raise ValueError(f"hardtanh: min_val must not exceed max_val (got {min_val} and {max_val}).")
    if as_tensor_argument("hardtanh", "input", input).dtype is uint8 and min_val < 0:
        raise RuntimeError(f"hardtanh: uint8 has no negative numbers (got min_val={min_val}, expected 0 or more). "
                           "Convert with to() first.")
    if not input.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)              # integers stay integers
    return write_into(input, _hardtanh, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """
    Each element, negative ones scaled by `negative_slope`.

    Parameters
    ----------
    input : Tensor
    negative_slope : float, default 0.01
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative `negative_slope` at 0.
    """
    return write_into(input, _leaky_relu, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def elu(input, alpha=1.0, inplace=False):
    """
    Each element, negative ones bent towards ``-alpha``: ``alpha * (exp(input) - 1)``.

    Parameters
    ----------
    input : Tensor
    alpha : float, default 1.0
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
        Derivative `alpha` at 0.
    """
    return write_into(input, _elu, alpha) if inplace else _elu(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    """
    Each element, negative ones bent towards ``-alpha``: ``alpha * (exp(input / alpha) - 1)``.

    Parameters
    ----------
    input : Tensor
    alpha : float, default 1.0
        Not 0.
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
    """
    if alpha == 0:
        raise RuntimeError("celu: alpha cannot be 0. Use relu.")
    return write_into(input, _celu, alpha) if inplace else _celu(input, alpha)


def selu(input, inplace=False):
    """
    ``elu`` with alpha 1.6733, the whole scaled by 1.0507 (Klambauer et al., 2017).

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
    """
    return write_into(input, _selu) if inplace else _selu(input)


def silu(input, inplace=False):
    """
    ``input * sigmoid(input)``.

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
    """
    return write_into(input, _silu) if inplace else _silu(input)


def mish(input, inplace=False):
    """
    ``input * tanh(softplus(input))``.

    Parameters
    ----------
    input : Tensor
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor
    """
    return write_into(input, _mish) if inplace else _mish(input)


def gelu(input, approximate="none"):
    """
    Each element times the normal distribution function of it.

    Parameters
    ----------
    input : Tensor
    approximate : {"none", "tanh"}
        Whether the distribution function is approximated by tanh.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        For another value of `approximate`.
    """
    if approximate == "none":
        return _gelu(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh' (got {approximate!r}).")


def softsign(input):
    """``input / (1 + |input|)``."""
    return input / (1 + input.abs())


def tanhshrink(input):
    """``input - tanh(input)``."""
    return input - tanh(input)


def glu(input, dim=-1):
    """
    The first half of `input` along `dim`, gated by the sigmoid of the second half.

    Parameters
    ----------
    input : Tensor
        Of even size along `dim`.
    dim : int, default -1

    Returns
    -------
    Tensor
        Half as large along `dim`.
    """
    if as_tensor_argument("glu", "input", input).ndim == 0:
        raise RuntimeError("glu: a tensor without dimensions cannot be halved (got shape ()).")
    if input.size(dim) % 2:
        raise RuntimeError(f"glu: the size along the dimension must be even (got {input.size(dim)} for dim={dim}).")
    first, second = input.chunk(2, dim)
    return first * sigmoid(second)


def _dimension(input, dim, operation):
    """The dimension that is meant if none is given: an old rule, kept with a warning."""
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
        warn_user(f"{operation}: implicit dimension choice has been deprecated. Pass dim={dim}.")
    return dim


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """
    ``exp(input)`` divided by its sum along `dim`.

    Parameters
    ----------
    input : Tensor
    dim : int
    dtype : dtype, optional
        To which the input is converted first.

    Returns
    -------
    Tensor
    """
    return _softmax(input, _dimension(input, dim, "softmax") if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """
    The logarithm of `softmax`, computed in a stable way.

    Parameters
    ----------
    input : Tensor
    dim : int
    dtype : dtype, optional
        To which the input is converted first.

    Returns
    -------
    Tensor
    """
    return _log_softmax(input, _dimension(input, dim, "log_softmax") if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """
    `softmax` of ``-input``.

    Parameters
    ----------
    input : Tensor
    dim : int
    dtype : dtype, optional
        To which the input is converted first.

    Returns
    -------
    Tensor
    """
    return _softmax(-input, _dimension(input, dim, "softmin") if dim is None else dim, dtype)
