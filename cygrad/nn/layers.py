"""Layers: linear maps, dropout, reshaping."""

import math

import cygrad
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.functional.layers import check_probability
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Dropout", "Flatten", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; takes and ignores any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        """The input."""
        return input


class Linear(Module):
    """
    ``input @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional
        Floating point or complex.

    Attributes
    ----------
    weight : Parameter of shape (out_features, in_features)
    bias : Parameter of shape (out_features,), or None
        Both start uniform in ±1/sqrt(in_features).

    Examples
    --------
    >>> import cygrad
    >>> cygrad.nn.Linear(3, 2)(cygrad.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(cygrad.empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(cygrad.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        """Shape (..., in_features) -> (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        """Sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Dropout(Module):
    """
    In training mode, sets elements to zero with probability `p` and scales the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        check_probability(p, "Dropout")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """The input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    """
    Joins dimensions `start_dim` to `end_dim` into one.

    Parameters
    ----------
    start_dim : int, default 1
    end_dim : int, default -1
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        """A view where possible."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
