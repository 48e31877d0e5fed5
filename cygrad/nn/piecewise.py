"""Piecewise linear activations, learned slopes and gates, as modules."""

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad.nn import functional as F
from cygrad.nn.activation import Inplace, Plain
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["CELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "PReLU", "RReLU", "Softmax2d", "Softshrink",
           "Tanhshrink", "Threshold"]


class Tanhshrink(Plain):
    """
    Apply ``x - tanh(x)``.

    Examples
    --------
    >>> nn.Tanhshrink()(cygrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """

    function = "tanhshrink"


class Hardsigmoid(Inplace):
    """
    Apply a piecewise linear approximation of the sigmoid.

    Examples
    --------
    >>> nn.Hardsigmoid()(cygrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    function = "hardsigmoid"

    def extra_repr(self):
        """Return no options."""
        return ""


class Hardswish(Inplace):
    """
    Apply hard swish: ``x * hardsigmoid(x)``.

    Examples
    --------
    >>> nn.Hardswish()(cygrad.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    function = "hardswish"

    def extra_repr(self):
        """Return no options."""
        return ""


class CELU(Module):
    """
    Apply CELU: ``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``.

    Parameters
    ----------
    alpha : float, default 1.0
    inplace : bool, default False

    Examples
    --------
    >>> nn.CELU()(cygrad.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self):
        """Return the scale."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """
    Replace elements that do not exceed the threshold by a value.

    Parameters
    ----------
    threshold, value : float
    inplace : bool, default False

    Examples
    --------
    >>> nn.Threshold(0.5, 9.0)(cygrad.tensor([0.2, 1.0]))
    tensor([9., 1.])
    """

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        """Return the numbers."""
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class _Shrink(Module):
    """Base class of modules that call the function named `function` with the option `lambd`."""

    function: str

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        """Apply the function."""
        return getattr(F, self.function)(input, self.lambd)

    def extra_repr(self):
        """Return the parameter."""
        return str(self.lambd)


class Hardshrink(_Shrink):
    """
    Apply hard shrinkage: 0 from ``-lambd`` to ``lambd``, else ``x``.

    Examples
    --------
    >>> nn.Hardshrink()(cygrad.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    function = "hardshrink"


class Softshrink(_Shrink):
    """
    Apply soft shrinkage: move ``x`` towards 0 by `lambd`.

    Examples
    --------
    >>> nn.Softshrink()(cygrad.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    function = "softshrink"


class GLU(Module):
    """
    Apply a gated linear unit: the first half along `dim` times the sigmoid of the second half.

    Parameters
    ----------
    dim : int, default -1

    Examples
    --------
    >>> nn.GLU()(cygrad.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        """Apply the function."""
        return F.glu(input, self.dim)

    def extra_repr(self):
        """Return the dimension."""
        return f"dim={self.dim}"


class PReLU(Module):
    """
    Apply PReLU: ``x`` where positive, else ``weight * x`` with a learned weight (He et al., 2015).

    Parameters
    ----------
    num_parameters : int, default 1
        One slope, or one for each channel (dimension 1).
    init : float, default 0.25
        Initial slope.
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (num_parameters,)

    Examples
    --------
    >>> nn.PReLU()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2500,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        as_number("PReLU", "init", init)
        self.weight = Parameter(cygrad.full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self):
        """Reset all slopes."""
        with cygrad.no_grad():
            self.weight.fill_(self.init)

    def forward(self, input):
        """Apply the function."""
        return F.prelu(input, self.weight)

    def extra_repr(self):
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """
    Scale negative elements by a random slope; in evaluation mode, by the mean slope.

    Parameters
    ----------
    lower, upper : float, default 1/8 and 1/3
    inplace : bool, default False

    Examples
    --------
    >>> nn.RReLU().eval()(cygrad.tensor([-1.0, 2.0]))
    tensor([-0.2292,  2.0000])
    """

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        """Apply the function."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        """Return the bounds."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """
    Compute the softmax over the channels of images (N, C, H, W) or (C, H, W).

    Examples
    --------
    >>> nn.Softmax2d()(cygrad.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input):
        """Apply the function."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead.")
        return F.softmax(input, -3)
