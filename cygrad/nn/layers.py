"""Linear and bilinear layers, reshaping."""

import math

import cygrad
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Bilinear", "Flatten", "Identity", "Linear", "Unflatten"]


class Identity(Module):
    """
    Return the input; ignore any arguments of the constructor.

    Examples
    --------
    >>> nn.Identity()(cygrad.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        """Return the input."""
        return input


class Linear(Module):
    """
    Apply a linear map: ``input @ weight.T + bias``.

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
        Both are initialized uniformly in ±1/sqrt(in_features).

    Examples
    --------
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
        """Initialize the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        """Map shape (..., in_features) to (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """
    Apply a bilinear map: ``sum_ij weight[k, i, j] * input1[i] * input2[j] + bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (out_features, in1_features, in2_features)
    bias : Parameter of shape (out_features,), or None
        Both are initialized uniformly in ±1/sqrt(in1_features).

    Examples
    --------
    >>> layer = nn.Bilinear(3, 4, 5)
    >>> layer(cygrad.ones(2, 3), cygrad.ones(2, 4)).shape
    (2, 5)
    """

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be positive (got {in1_features}).")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(cygrad.empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(cygrad.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Initialize the parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        """Map shape (..., in1_features) and (..., in2_features) to (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        """Return the sizes."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """
    Flatten dimensions `start_dim` to `end_dim` into one.

    Parameters
    ----------
    start_dim : int, default 1
    end_dim : int, default -1

    Examples
    --------
    >>> nn.Flatten()(cygrad.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        """Return a view where possible."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        """Return the dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """
    Split one dimension into several.

    Parameters
    ----------
    dim : int
    unflattened_size : sequence of int
        The new sizes; one of them may be -1.

    Examples
    --------
    >>> cygrad.nn.Unflatten(1, (2, 3))(cygrad.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim must be an int (got {type(dim).__name__}).")
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"Unflatten: unflattened_size must be a tuple of ints (got {unflattened_size!r}).")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        """Return a view."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        """Return the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
