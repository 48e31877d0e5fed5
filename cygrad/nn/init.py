"""Parameter initialization: functions that fill a tensor in place, without gradients, and return it."""

import functools
import math

import cygrad
from cygrad._core import public_dir as _public_dir
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.operation_names import called_operation
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
           "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal",
           "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal",
           "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_"]
__dir__ = _public_dir(__name__)

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """
    Return the recommended gain for a nonlinearity: the factor that preserves the variance.

    Parameters
    ----------
    nonlinearity : str
        "linear", "conv1d" ..., "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
    param : float, optional
        Negative slope of "leaky_relu", 0.01 by default.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If `nonlinearity` is unknown, or `param` is not a number.

    Examples
    --------
    >>> nn.init.calculate_gain("relu") ** 2
    2.0000000000000004
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"calculate_gain: param must be a number (got {param!r}).")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"calculate_gain: unknown nonlinearity (got {nonlinearity!r}, expected one of "
                     f"{', '.join(_LINEAR)}, tanh, relu, leaky_relu, selu).")


@documented()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """
    Fill with values from the uniform distribution on [a, b).

    Parameters
    ----------
    tensor : Tensor
    a, b : float
    generator : Generator, optional

    Examples
    --------
    >>> (nn.init.uniform_(cygrad.empty(1000), -1.0, 1.0).abs() <= 1).all()
    tensor(True)
    """
    as_tensor_argument("uniform_", "tensor", tensor)
    with cygrad.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@documented()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """
    Fill with normally distributed values.

    Parameters
    ----------
    tensor : Tensor
    mean, std : float
    generator : Generator, optional

    Examples
    --------
    >>> nn.init.normal_(cygrad.empty(10_000), std=2.0).std().round()
    tensor(2.)
    """
    as_tensor_argument("normal_", "tensor", tensor)
    for name, value in (("mean", mean), ("std", std)):
        as_number("normal_", name, value)
    with cygrad.no_grad():
        return tensor.normal_(mean, std, generator=generator)


@documented()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """
    Fill with values from a normal distribution truncated to [a, b].

    Parameters
    ----------
    tensor : Tensor
    mean, std : float
    a, b : float
        Bounds of the values, not in units of `std`.
    generator : Generator, optional

    Examples
    --------
    >>> (nn.init.trunc_normal_(cygrad.empty(1000), std=2.0).abs() <= 2).all()
    tensor(True)
    """
    as_tensor_argument("trunc_normal_", "tensor", tensor)
    for name, value in (("mean", mean), ("std", std), ("a", a), ("b", b)):
        as_number("trunc_normal_", name, value)
    if not a < b:
        raise ValueError(f"trunc_normal_: the interval is empty (got a={a}, b={b}).")
    with cygrad.no_grad():
        tensor.normal_(mean, std, generator=generator)
        for _ in range(1000):
            outside = (tensor < a) | (tensor > b)
            if not outside.any().item():
                return tensor
            fresh = cygrad.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(cygrad.where(outside, fresh, tensor))
        # The interval is in the far tail: clamp to its nearer end, where the density concentrates.
        return tensor.copy_(cygrad.maximum(cygrad.minimum(tensor, cygrad.full_like(tensor, b)),
                                           cygrad.full_like(tensor, a)))


@documented()
def constant_(tensor, val):
    """
    Fill with one value.

    Parameters
    ----------
    tensor : Tensor
    val : number

    Examples
    --------
    >>> nn.init.constant_(cygrad.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    as_tensor_argument(called_operation("constant_"), "tensor", tensor)
    with cygrad.no_grad():
        return tensor.fill_(val)


def zeros_(tensor):
    """
    Fill with zeros and return the tensor.

    Examples
    --------
    >>> nn.init.zeros_(cygrad.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def ones_(tensor):
    """
    Fill with ones and return the tensor.

    Examples
    --------
    >>> nn.init.ones_(cygrad.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def eye_(tensor):
    """
    Fill a matrix with the identity and return it.

    Examples
    --------
    >>> nn.init.eye_(cygrad.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if as_tensor_argument("eye_", "tensor", tensor).ndim != 2:
        raise ValueError(f"eye_: expected a matrix (got shape {tensor.shape}).")
    with cygrad.no_grad():
        return tensor.copy_(cygrad.eye(*tensor.shape, dtype=tensor.dtype))


def fans(tensor, operation):
    """Return fan-in and fan-out of a weight (out, in, *kernel)."""
    as_tensor_argument(operation, "tensor", tensor)
    if tensor.ndim < 2:
        raise ValueError(f"{operation}: fan in and fan out need at least two dimensions (got shape {tensor.shape}). "
                         "Use uniform_ or normal_ instead.")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@documented()
def xavier_uniform_(tensor, gain=1.0, generator=None):
    """
    Fill by Xavier uniform initialization (Glorot and Bengio, 2010).

    Parameters
    ----------
    tensor : Tensor of shape (out, in, ...)
    gain : float, default 1.0
    generator : Generator, optional

    Examples
    --------
    >>> weight = nn.init.xavier_uniform_(cygrad.empty(2, 4))
    >>> (weight.abs() <= 1).all()
    tensor(True)
    """
    fan_in, fan_out = fans(tensor, "xavier_uniform_")
    bound = math.sqrt(3.0) * as_number("xavier_uniform_", "gain", gain) * math.sqrt(2.0 / max(fan_in + fan_out, 1))
    return uniform_(tensor, -bound, bound, generator)


@documented()
def xavier_normal_(tensor, gain=1.0, generator=None):
    """
    Fill by Xavier normal initialization (Glorot and Bengio, 2010).

    Parameters
    ----------
    tensor : Tensor of shape (out, in, ...)
    gain : float, default 1.0
    generator : Generator, optional

    Examples
    --------
    >>> nn.init.xavier_normal_(cygrad.empty(4, 6)).shape
    (4, 6)
    """
    fan_in, fan_out = fans(tensor, "xavier_normal_")
    as_number("xavier_normal_", "gain", gain)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(fan_in + fan_out, 1)), generator)


def _kaiming_deviation(tensor, a, mode, nonlinearity, operation):
    mode = str(mode).lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{operation}: unknown mode (got {mode!r}, expected 'fan_in' or 'fan_out').")
    fan = fans(tensor, operation)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@documented()
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """
    Fill by Kaiming uniform initialization (He et al., 2015).

    Parameters
    ----------
    tensor : Tensor of shape (out, in, ...)
    a : float, default 0
        Negative slope of the rectifier after this layer.
    mode : {"fan_in", "fan_out"}
        Whether to preserve the variance in forward or in backward.
    nonlinearity : str, default "leaky_relu"
    generator : Generator, optional

    Examples
    --------
    >>> weight = nn.init.kaiming_uniform_(cygrad.empty(4, 6), nonlinearity="relu")
    >>> (weight.abs() <= 1).all()
    tensor(True)
    """
    if 0 in as_tensor_argument("kaiming_uniform_", "tensor", tensor).shape:
        warn_user("kaiming_uniform_: the tensor is empty, nothing is initialized.")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


@documented()
def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """
    Fill by Kaiming normal initialization (He et al., 2015).

    Parameters
    ----------
    tensor : Tensor of shape (out, in, ...)
    a : float, default 0
        Negative slope of the rectifier after this layer.
    mode : {"fan_in", "fan_out"}
        Whether to preserve the variance in forward or in backward.
    nonlinearity : str, default "leaky_relu"
    generator : Generator, optional

    Examples
    --------
    >>> layer = nn.Linear(8, 4)
    >>> weight = nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    >>> weight is layer.weight
    True
    """
    if 0 in as_tensor_argument("kaiming_normal_", "tensor", tensor).shape:
        warn_user("kaiming_normal_: the tensor is empty, nothing is initialized.")
        return tensor
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity, "kaiming_normal_"), generator)


@documented()
def orthogonal_(tensor, gain=1, generator=None):
    """
    Fill with a random (semi-)orthogonal matrix, multiplied by `gain` (Saxe et al., 2014).

    Parameters
    ----------
    tensor : Tensor of shape (rows, ...)
        Reshaped to a matrix of `rows` rows.
    gain : float, default 1
    generator : Generator, optional

    Raises
    ------
    ValueError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> weight = nn.init.orthogonal_(cygrad.empty(3, 3))
    >>> cygrad.allclose(weight @ weight.t(), cygrad.eye(3), atol=1e-6)
    True
    """
    if as_tensor_argument("orthogonal_", "tensor", tensor).ndim < 2:
        raise ValueError(f"orthogonal_: expected at least two dimensions (got {tensor.ndim}).")
    if tensor.numel() == 0:
        return tensor
    with cygrad.no_grad():
        rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
        flat = cygrad.empty(rows, columns, dtype=tensor.dtype).normal_(generator=generator)
        q, r = operators.linalg_qr(flat if rows >= columns else flat.t(), "reduced")[:2]
        q = q * cygrad.sgn(r.diagonal())          # signs that make the distribution uniform
        return tensor.copy_((q if rows >= columns else q.t()).reshape(tensor.shape)).mul_(gain)


@documented()
def dirac_(tensor, groups=1):
    """
    Fill the weight of a convolution with the Dirac delta, which preserves input channels.

    Parameters
    ----------
    tensor : Tensor of shape (out, in, ...)
        With three to five dimensions.
    groups : int, default 1
        Each group of output channels preserves the same input channels.

    Raises
    ------
    ValueError
        If there are not 3 to 5 dimensions, or `groups` does not divide the output channels.

    Examples
    --------
    >>> weight = nn.init.dirac_(cygrad.empty(1, 1, 3))
    >>> weight
    tensor([[[0., 1., 0.]]])
    """
    if as_tensor_argument("dirac_", "tensor", tensor).ndim not in (3, 4, 5):
        raise ValueError(f"dirac_: the tensor must have 3 to 5 dimensions (got {tensor.ndim}).")
    if groups <= 0 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: groups must divide the first dimension (got {tensor.shape[0]} and {groups}).")
    outputs = tensor.shape[0] // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with cygrad.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outputs, tensor.shape[1])):
                tensor[(group * outputs + channel, channel, *center)] = 1
    return tensor


@documented()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """
    Fill a matrix with normal values, and set some elements of each column to zero (Martens, 2010).

    Parameters
    ----------
    tensor : Tensor of shape (rows, columns)
    sparsity : float
        Fraction of zeros in each column, rounded up.
    std : float, default 0.01
    generator : Generator, optional

    Raises
    ------
    ValueError
        If the tensor is not a matrix.

    Examples
    --------
    >>> weight = nn.init.sparse_(cygrad.empty(4, 3), sparsity=0.5)
    >>> (weight == 0).sum(0)
    tensor([2, 2, 2])
    """
    if not 0 <= as_number("sparse_", "sparsity", sparsity) <= 1:
        raise ValueError(f"sparse_: sparsity must be from 0 to 1 (got {sparsity}).")
    if as_tensor_argument("sparse_", "tensor", tensor).ndim != 2:
        raise ValueError(f"sparse_: the tensor must be a matrix (got {tensor.ndim} dimensions).")
    rows, columns = tensor.shape
    with cygrad.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[cygrad.randperm(rows, generator=generator)[:math.ceil(sparsity * rows)], column] = 0
    return tensor


def _older(name):
    """Return the deprecated function without the trailing underscore."""
    function = globals()[f"{name}_"]

    @functools.wraps(function)
    def deprecated(*args, **kwargs):
        warn_user(f"nn.init.{name} is deprecated; use nn.init.{name}_.", FutureWarning)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = name
    return deprecated


uniform, normal, constant, eye, dirac, orthogonal, sparse = (
    _older(name) for name in ("uniform", "normal", "constant", "eye", "dirac", "orthogonal", "sparse"))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal = (
    _older(name) for name in ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"))
