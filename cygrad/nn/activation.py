"""Element-wise non-linearities and softmax as modules."""

from cygrad._core.graph.argument_errors import as_number
from cygrad.nn import functional as F
from cygrad.nn.module import Module

__all__ = [
    "ELU", "GELU", "SELU", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "SiLU",
    "Sigmoid", "Softmax", "Softmin", "Softplus", "Softsign", "Tanh",
]


class Plain(Module):
    """Base class of modules that call the function named `function`."""

    function: str

    def forward(self, input):
        """Apply the function."""
        return getattr(F, self.function)(input)


class Sigmoid(Plain):
    """
    Apply the logistic function ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> nn.Sigmoid()(cygrad.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    function = "sigmoid"


class Tanh(Plain):
    """
    Apply the hyperbolic tangent.

    Examples
    --------
    >>> nn.Tanh()(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    function = "tanh"


class LogSigmoid(Plain):
    """
    Apply ``log(sigmoid(x))``.

    Examples
    --------
    >>> nn.LogSigmoid()(cygrad.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """

    function = "logsigmoid"


class Softsign(Plain):
    """
    Apply ``x / (1 + |x|)``.

    Examples
    --------
    >>> nn.Softsign()(cygrad.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """

    function = "softsign"


class Inplace(Module):
    """Base class of modules that call the function named `function` with the option `inplace`."""

    function: str

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return getattr(F, self.function)(input, inplace=self.inplace)

    def extra_repr(self):
        """Show `inplace` if set."""
        return "inplace=True" if self.inplace else ""


class ReLU(Inplace):
    """
    Apply the rectified linear unit ``max(x, 0)``.

    Examples
    --------
    >>> layer = nn.ReLU()
    >>> x = cygrad.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    >>> layer(x).sum().backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """

    function = "relu"

    def forward(self, input):
        return F.relu(input, self.inplace)


class ReLU6(Inplace):
    """
    Apply ``min(max(x, 0), 6)``.

    Examples
    --------
    >>> nn.ReLU6()(cygrad.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    function = "relu6"


class SELU(Inplace):
    """
    Apply the scaled exponential linear unit (Klambauer et al., 2017).

    Examples
    --------
    >>> nn.SELU()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.1113,  0.0000,  2.1014])
    """

    function = "selu"


class SiLU(Inplace):
    """
    Apply SiLU (swish): ``x * sigmoid(x)``.

    Examples
    --------
    >>> nn.SiLU()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2689,  0.0000,  1.7616])
    """

    function = "silu"


class Mish(Inplace):
    """
    Apply Mish: ``x * tanh(softplus(x))``.

    Examples
    --------
    >>> nn.Mish()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.3034,  0.0000,  1.9440])
    """

    function = "mish"


class Hardtanh(Module):
    """
    Clamp elements to an interval.

    Parameters
    ----------
    min_val : float, default -1.0
    max_val : float, default 1.0
    inplace : bool, default False

    Examples
    --------
    >>> nn.Hardtanh()(cygrad.tensor([-4.0, 0.5, 4.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__()
        if not as_number("Hardtanh", "min_val", min_val) <= as_number("Hardtanh", "max_val", max_val):
            raise ValueError(f"Hardtanh: min_val must not exceed max_val (got {min_val} and {max_val}).")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        """Return the interval."""
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """
    Apply leaky ReLU: ``x`` where positive, else ``negative_slope * x``.

    Parameters
    ----------
    negative_slope : float, default 0.01
    inplace : bool, default False

    Examples
    --------
    >>> nn.LeakyReLU(0.1)(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1000,  0.0000,  2.0000])
    """

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        """Return the slope."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """
    Apply ELU: ``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float, default 1.0
    inplace : bool, default False

    Examples
    --------
    >>> nn.ELU()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        """Return the scale."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """
    Apply GELU: ``x`` times the standard normal distribution function of ``x``.

    Parameters
    ----------
    approximate : {"none", "tanh"}
        "tanh" approximates the distribution function.

    Examples
    --------
    >>> nn.GELU()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        """Apply the function."""
        return F.gelu(input, self.approximate)

    def extra_repr(self):
        """Return the kind."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """
    Apply the smooth rectifier ``log(1 + exp(beta * x)) / beta``.

    Parameters
    ----------
    beta : float, default 1.0
    threshold : float, default 20.0
        The result is x where ``beta * x`` exceeds it.

    Examples
    --------
    >>> nn.Softplus()(cygrad.tensor([-100.0, 0.0, 100.0]))
    tensor([3.9236e-44, 6.9315e-01, 1.0000e+02])
    """

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        """Apply the function."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        """Return the options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDimension(Module):
    """Base class of modules that call the function named `function` along one dimension."""

    function: str

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        """Apply the function."""
        return getattr(F, self.function)(input, self.dim)

    def extra_repr(self):
        """Return the dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDimension):
    """
    Compute ``exp(x)`` divided by its sum along `dim`.

    Examples
    --------
    >>> nn.Softmax(dim=1)(cygrad.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    function = "softmax"


class LogSoftmax(_AlongDimension):
    """
    Compute the logarithm of `Softmax`, in a numerically stable way.

    Examples
    --------
    >>> nn.LogSoftmax(dim=0)(cygrad.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    function = "log_softmax"


class Softmin(_AlongDimension):
    """
    Compute the softmax of ``-x``.

    Examples
    --------
    >>> nn.Softmin(dim=0)(cygrad.zeros(2))
    tensor([0.5000, 0.5000])
    """

    function = "softmin"
