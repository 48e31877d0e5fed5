"""``utils.flop_counter``: how many multiplications and additions the products of a block take, by the shapes."""

import math

from cygrad import Tensor
from cygrad._core.dispatch.operator_modes import set_recorder

__all__ = ["FlopCounterMode"]


# operator -> the numbers of the operands that are multiplied
PRODUCTS = {"matmul": (0, 1), "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2),
            "addmv": (1, 2), "linear": (0, 1)}


class FlopCounterMode:
    """
    Counts the operations with numbers of the matrix products in a block, apart from those of backward.

    Parameters
    ----------
    mods, depth, display, custom_mapping : optional
        Without effect, but that `display` prints the sum at the end.

    Examples
    --------
    >>> import cygrad
    >>> from cygrad.compatibility.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = cygrad.ones(2, 3) @ cygrad.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        self._display, self._counts = display, {}

    def begin(self, name, kind, arguments):
        """An operation begins, see ``set_recorder``."""
        if name not in PRODUCTS:
            return
        first, second = (tuple(arguments[place].shape) for place in PRODUCTS[name]
                         if isinstance(arguments[place], Tensor))
        width = second[-2] if name == "linear" else second[-1] if len(second) > 1 else 1
        self._counts[name] = self._counts.get(name, 0) + 2 * math.prod(first) * width

    def end(self, event):
        """It ends."""

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
