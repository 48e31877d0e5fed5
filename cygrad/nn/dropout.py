"""Dropout of elements and of channels as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.layers import check_probability
from cygrad.nn.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """Base class of dropout modules, which call the function named `function`."""

    function = ""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        check_probability(p, type(self).__name__)
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """Return the input itself in evaluation mode."""
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        """Return the probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """
    Zero elements with probability `p` in training mode and scale the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.

    Examples
    --------
    >>> layer = nn.Dropout(0.5)
    >>> sorted(set(layer(cygrad.ones(100)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(cygrad.ones(2))
    tensor([1., 1.])
    """

    function = "dropout"


class Dropout1d(_Dropout):
    """
    Zero channels with probability `p` in training mode and scale the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.

    Examples
    --------
    >>> nn.Dropout1d(0.5).eval()(cygrad.ones(1, 2, 3))
    tensor([[[1., 1., 1.],
             [1., 1., 1.]]])
    """

    function = "dropout1d"


class Dropout2d(_Dropout):
    """
    Zero channels of images with probability `p` in training mode; see `Dropout1d`.

    Examples
    --------
    >>> y = nn.Dropout2d(0.5)(cygrad.ones(1, 8, 2, 2))
    >>> (y.amax((2, 3)) == y.amin((2, 3))).all()
    tensor(True)
    """

    function = "dropout2d"


class Dropout3d(_Dropout):
    """
    Zero channels of volumes with probability `p` in training mode; see `Dropout1d`.

    Examples
    --------
    >>> nn.Dropout3d(0.5).eval()(cygrad.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """

    function = "dropout3d"


class AlphaDropout(_Dropout):
    """
    Apply dropout that keeps mean 0 and variance 1, for networks with `SELU`.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.

    Examples
    --------
    >>> layer = nn.AlphaDropout(0.5).eval()
    >>> layer(cygrad.ones(3))
    tensor([1., 1., 1.])
    """

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """
    Apply `AlphaDropout` to whole channels.

    Examples
    --------
    >>> nn.FeatureAlphaDropout(0.5).eval()(cygrad.ones(1, 2, 2))
    tensor([[[1., 1.],
             [1., 1.]]])
    """

    function = "feature_alpha_dropout"
