"""``utils.flop_counter``: floating-point operations of the products in a block, by their shapes."""

import math

from cygrad import Tensor
from cygrad._core.dispatch.operator_modes import set_recorder

__all__ = ["FlopCounterMode"]


# operator -> positions of the multiplied operands
PRODUCTS = {"matmul": (0, 1), "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2),
            "addmv": (1, 2), "linear": (0, 1)}


class FlopCounterMode:
    """
    Count the floating-point operations of products in a block, without backward.

    Parameters
    ----------
    mods, depth, display, custom_mapping : optional
        Ignored, except that `display` prints the sum at the end.

    Examples
    --------
    >>> from cygrad.compatibility.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = cygrad.ones(2, 3) @ cygrad.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        self._display, self._counts = display, {}

    def begin(self, name, kind, arguments):
        """Count an operation; see ``set_recorder``."""
        if name not in PRODUCTS:
            return
        first, second = (tuple(arguments[place].shape) for place in PRODUCTS[name]
                         if isinstance(arguments[place], Tensor))
        width = second[-2] if name == "linear" else second[-1] if len(second) > 1 else 1
        self._counts[name] = self._counts.get(name, 0) + 2 * math.prod(first) * width

    def end(self, event):
        """Ignore the end of an operation."""

    def __enter__(self):
        self._counts = {}
        self._former = set_recorder(self)
        return self

    def __exit__(self, *error):
        set_recorder(self._former)
        if self._display:
            print(f"{self.get_total_flops()} operations with numbers")
        return False

    def get_total_flops(self):
        """Return the sum."""
        return sum(self._counts.values())

    def get_flop_counts(self):
        """Return the sums by operator, under the name ``Global``."""
        return {"Global": dict(self._counts)}
