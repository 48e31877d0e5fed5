"""Rarely used layers, imported on first access."""

from cygrad.nn import functional as F
from cygrad.nn.functional import fractional_pooling
from cygrad.nn.functional.convolution import spread
from cygrad.nn.loss import NLLLoss
from cygrad.nn.module import Module

__all__ = ["Container", "CrossMapLRN2d", "FractionalMaxPool2d", "FractionalMaxPool3d", "NLLLoss2d"]


class _FractionalMaxPool(Module):
    dimensions = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        name, n = type(self).__name__, self.dimensions
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: expected exactly one of output_size and output_ratio (got {output_size} and "
                             f"{output_ratio}).")
        self.kernel_size = spread(kernel_size, n, name, "kernel_size")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size, n, name, "output_size")
        ratios = (output_ratio,) * n if isinstance(output_ratio, float) else output_ratio
        if ratios is not None and not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1 (got {output_ratio}).")
        self.output_ratio = ratios

    def forward(self, input):
        """Map shape (batch, channels, ...), or the same without the batch, to one element for each window."""
        function = getattr(fractional_pooling, f"fractional_max_pool{self.dimensions}d")
        return function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                        self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """
    Return the maxima of overlapping windows of images at random positions (Graham, 2014).

    Parameters
    ----------
    kernel_size : int or tuple
    output_size : int or tuple, optional
    output_ratio : float or tuple, optional
        Number of windows along each dimension, or their ratio to its size; exactly one of both.
    return_indices : bool, default False

    Examples
    --------
    >>> cygrad.nn.FractionalMaxPool2d(3, output_size=(5, 4))(cygrad.ones(1, 2, 12, 9)).shape
    (1, 2, 5, 4)
    """

    dimensions = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """
    Return the maxima of overlapping windows of volumes; parameters as for `FractionalMaxPool2d`.

    Examples
    --------
    >>> nn.FractionalMaxPool3d(2, output_size=3)(cygrad.randn(1, 1, 6, 6, 6)).shape
    (1, 1, 3, 3, 3)
    """

    dimensions = 3


class CrossMapLRN2d(Module):
    """
    Divide images by the average square of neighboring channels.

    Parameters
    ----------
    size : int
        Number of channels that are averaged.
    alpha, beta, k : float, default 1e-4, 0.75 and 1

    Examples
    --------
    >>> nn.CrossMapLRN2d(2)(cygrad.ones(1, 4, 2, 2)).shape
    (1, 4, 2, 2)
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        """Apply the layer to an input of shape (batch, channels, height, width)."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        """Return the options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class NLLLoss2d(NLLLoss):
    """
    Deprecated name of `NLLLoss`.

    Examples
    --------
    >>> log_probs = cygrad.zeros(1, 4, 2, 2).log_softmax(1)
    >>> nn.NLLLoss2d()(log_probs, cygrad.zeros(1, 2, 2).long())
    tensor(1.3863)
    """


class Container(Module):
    """
    Deprecated container of child modules; use `Sequential` or `ModuleDict`.

    Parameters
    ----------
    **children : Module

    Examples
    --------
    >>> list(nn.Container(body=nn.ReLU())._modules)
    ['body']
    """

    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)
