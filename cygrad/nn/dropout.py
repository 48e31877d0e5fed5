"""Dropout of elements and of channels as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.layers import check_probability
from cygrad.nn.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _Dropout(Module):
    """What the kinds of dropout share; `function` is the name of the function."""

    function = ""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        check_probability(p, type(self).__name__)
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        """The input itself in evaluation mode."""
        return getattr(F, self.function)(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        """The probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """
    In training mode, sets elements to zero with probability `p` and scales the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    function = "dropout"


class Dropout1d(_Dropout):
    """
    In training mode, sets whole channels to zero with probability `p` and scales the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    function = "dropout1d"


class Dropout2d(_Dropout):
    """`Dropout1d` for images."""

    function = "dropout2d"


class Dropout3d(_Dropout):
    """`Dropout1d` for volumes."""

    function = "dropout3d"


class AlphaDropout(_Dropout):
    """
    Dropout for `SELU`, which keeps mean 0 and variance 1.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    function = "feature_alpha_dropout"
