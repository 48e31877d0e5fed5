"""Tensors as colors of matplotlib, which takes sequences of Python's numbers only; loaded with `matplotlib.colors`."""

from functools import wraps

from matplotlib import colors

from cygrad import Tensor

__all__ = []


def _accept_tensors(convert):
    @wraps(convert)
    def converted(c, alpha=None):
        return convert(c.numpy() if isinstance(c, Tensor) else c, alpha)
    return converted


colors.to_rgba, colors.to_rgba_array = map(_accept_tensors, (colors.to_rgba, colors.to_rgba_array))
