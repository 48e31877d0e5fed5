"""Activation functions: operators with PyTorch's options."""

from inspect import signature

from cygrad._core.arrays.dtype import uint8
from cygrad._core.graph.argument_errors import as_integer, as_number
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import SHORT, in_float32
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["celu", "elu", "elu_", "gelu", "glu", "hardtanh", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid",
           "mish", "relu", "relu6", "relu6_", "relu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin",
           "softplus", "softsign", "tanh", "tanhshrink", "write_into"]

_celu, _gelu, _gelu_tanh, _hardtanh, _log_softmax, _relu, _softmax = (
    getattr(operators, name) for name in ("celu", "gelu", "gelu_tanh", "hardtanh", "log_softmax", "relu", "softmax"))

sigmoid = operators.sigmoid
tanh = operators.tanh
logsigmoid = operators.logsigmoid
softplus = operators.softplus
softsign = operators.softsign


@documented()
def relu(input, inplace=False):
    """
    Return the larger of 0 and each element.

    Returns
    -------
    Tensor
        Derivative 0 at 0.

    Examples
    --------
    >>> F.relu(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return relu_(input) if inplace else _relu(input)


def relu_(input):
    """Apply `relu` in place."""
    return as_tensor_argument("relu_", "input", input).relu_()


def write_into(input, function, *options):
    """
    Write ``function(input)`` into `input`.

    `function` gets a copy, because it may save its argument for backward.
    """
    return as_tensor_argument(function.__name__, "input", input).copy_(function(input.clone(), *options))


_WITH_INPLACE = """
def {name}({parameters}, inplace=False):
    return change(input{given}) if inplace else operator(input{given})

def {name}_({parameters}):
    return change(input{given})
"""


def with_inplace(name):
    """Return the function of a row with the option `inplace`, and its in-place form."""
    operator = getattr(operators, name)
    parameters = list(signature(operator).parameters.values())
    made = {"__name__": __name__, "__all__": [name, f"{name}_"], "operator": operator,
            "change": getattr(operators, f"{name}_")}
    exec(_WITH_INPLACE.format(name=name, parameters=", ".join(map(str, parameters)),
                              given="".join(f", {parameter.name}" for parameter in parameters[1:])), made)
    made[f"{name}_"].__doc__ = f"Apply `{name}` in place."
    made[name].__doc__ = operator.__doc__
    return documented(returns="")(made[name]), made[f"{name}_"]


elu, elu_ = with_inplace("elu")
leaky_relu, leaky_relu_ = with_inplace("leaky_relu")
mish = with_inplace("mish")[0]
relu6, relu6_ = with_inplace("relu6")
selu, selu_ = with_inplace("selu")
silu = with_inplace("silu")[0]


def hardtanh(input, min_val=-1, max_val=1, inplace=False):
    """
    Clamp each element between two bounds.

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

    Examples
    --------
    >>> F.hardtanh(cygrad.tensor([-4.0, 0.5, 4.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if not as_number("hardtanh", "min_val", min_val) <= as_number("hardtanh", "max_val", max_val):
        raise ValueError(f"hardtanh: min_val must not exceed max_val (got {min_val} and {max_val}).")
    if as_tensor_argument("hardtanh", "input", input).dtype is uint8 and min_val < 0:
        raise RuntimeError(f"hardtanh: uint8 has no negative numbers (got min_val={min_val}, expected 0 or more). "
                           "Convert with to() first.")
    if not input.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)              # keep integer dtypes
    return (operators.hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


@documented()
def celu(input, alpha=1.0, inplace=False):
    """
    Return each element, or ``alpha * (exp(input / alpha) - 1)`` where it is negative.

    Parameters
    ----------
    alpha : float, default 1.0
        Not 0.

    Examples
    --------
    >>> F.celu(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("celu: alpha cannot be 0. Use relu.")
    return (operators.celu_ if inplace else _celu)(input, alpha)


@documented()
def gelu(input, approximate="none"):
    """
    Multiply each element by its standard normal distribution function.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        "tanh" approximates the distribution function.

    Raises
    ------
    RuntimeError
        If `approximate` is something else.

    Examples
    --------
    >>> F.gelu(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """
    if approximate == "none":
        return _gelu(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise RuntimeError(f"gelu: approximate must be 'none' or 'tanh' (got {approximate!r}).")


def tanhshrink(input):
    """
    Compute ``input - tanh(input)``.

    Examples
    --------
    >>> F.tanhshrink(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - tanh(input)


def glu(input, dim=-1):
    """
    Gate the first half of `input` along `dim` by the sigmoid of the second half.

    Parameters
    ----------
    input : Tensor
        Of even size along `dim`.
    dim : int, default -1

    Returns
    -------
    Tensor
        Of half the size along `dim`.

    Examples
    --------
    >>> F.glu(cygrad.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """
    if as_tensor_argument("glu", "input", input).ndim == 0:
        raise RuntimeError("glu: expected an input with at least one dimension (got shape ()).")
    if input.size(as_integer("glu", "dim", dim)) % 2:
        raise RuntimeError(f"glu: the size along the dimension must be even (got {input.size(dim)} for dim={dim}).")
    if input.dtype in SHORT:
        return in_float32(glu, input, dim)
    first, second = input.chunk(2, dim)
    return first * sigmoid(second)


def _dimension(input, dim, operation):
    """Return the dimension; choosing it implicitly is deprecated and warns."""
    as_tensor_argument(operation, "input", input)
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
        warn_user(f"{operation}: implicit dimension choice has been deprecated. Pass dim={dim}.")
    return dim


@documented()
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """
    Compute ``exp(input)`` divided by its sum along `dim`.

    Parameters
    ----------
    dim : int
    dtype : dtype, optional
        The input is converted to it first.

    Examples
    --------
    >>> F.softmax(cygrad.zeros(1, 4), dim=1)
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return _softmax(input, _dimension(input, dim, "softmax") if dim is None else dim, dtype)


@documented()
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """
    Compute the logarithm of `softmax`, in a numerically stable way.

    Parameters
    ----------
    dim : int
    dtype : dtype, optional
        The input is converted to it first.

    Examples
    --------
    >>> F.log_softmax(cygrad.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _log_softmax(input, _dimension(input, dim, "log_softmax") if dim is None else dim, dtype)


@documented()
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """
    Compute `softmax` of ``-input``.

    Parameters
    ----------
    dim : int
    dtype : dtype, optional
        The input is converted to it first.

    Examples
    --------
    >>> F.softmin(cygrad.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    as_tensor_argument("softmin", "input", input)
    return _softmax(-input, _dimension(input, dim, "softmin") if dim is None else dim, dtype)
