"""Padding as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.convolution import spread
from cygrad.nn.module import Module

__all__ = [f"{kind}Pad{n}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
           for n in (1, 2, 3)]


_PLACES = {1: ("at both ends of the last dimension", "two"), 2: ("around the last two dimensions", "four"),
           3: ("around the last three dimensions", "six")}
_DOC = """
    {what} {place}.

    Parameters
    ----------
    padding : int or tuple of {count}
        Numbers of elements, in pairs, last dimension first; negative numbers crop.
    {value}
    Examples
    --------
    >>> nn.{name}(1{more})(cygrad.ones(1, {before})).shape
    (1, {after})
    """


class _Pad(Module):
    """Base class of padding modules. Subclasses set `dimensions` and `mode`."""

    dimensions = 0
    mode = "constant"
    _more = ""                 # description of further parameters

    def __init_subclass__(cls, dimensions=None, mode=None, **options):
        """Set dimensions and mode of a class, and complete its docstring."""
        super().__init_subclass__(**options)
        cls.mode = mode or cls.mode
        if dimensions:
            cls.dimensions = dimensions
            if cls.__doc__:                    # None under `python -OO`
                place, count = _PLACES[dimensions]
                cls.__doc__ = _DOC.format(
                    what=cls.__doc__[:-1], place=place, count=count, value=cls._more, name=cls.__name__,
                    more=", 5.0" * bool(cls._more), before=", ".join("2" * dimensions),
                    after=", ".join("4" * dimensions))

    def __init__(self, padding):
        super().__init__()
        self.padding = spread(padding, 2 * self.dimensions, type(self).__name__, "padding")

    def forward(self, input):
        """Map shape (..., sizes) to the same with larger sizes; negative numbers crop."""
        if self.mode == "circular" and input.ndim not in (self.dimensions + 1, self.dimensions + 2):
            raise ValueError(f"{type(self).__name__}: expected {self.dimensions + 1}D or {self.dimensions + 2}D input "
                             f"(got {input.ndim}D input)")
        return F.pad(input, self.padding, mode=self.mode)

    def extra_repr(self):
        """Return the padding."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Base class of constant padding."""

    _more = "value : number\n    "

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, mode="constant", value=self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Base class of zero padding."""

    _more = ""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad, dimensions=1):
    """Pad with a constant."""


class ConstantPad2d(_ConstantPad, dimensions=2):
    """Pad with a constant."""


class ConstantPad3d(_ConstantPad, dimensions=3):
    """Pad with a constant."""


class ZeroPad1d(_ZeroPad, dimensions=1):
    """Pad with zeros."""


class ZeroPad2d(_ZeroPad, dimensions=2):
    """Pad with zeros."""


class ZeroPad3d(_ZeroPad, dimensions=3):
    """Pad with zeros."""


class ReflectionPad1d(_Pad, dimensions=1, mode="reflect"):
    """Pad by reflection, without repeating the border."""


class ReflectionPad2d(_Pad, dimensions=2, mode="reflect"):
    """Pad by reflection, without repeating the border."""


class ReflectionPad3d(_Pad, dimensions=3, mode="reflect"):
    """Pad by reflection, without repeating the border."""


class ReplicationPad1d(_Pad, dimensions=1, mode="replicate"):
    """Pad by repeating the border."""


class ReplicationPad2d(_Pad, dimensions=2, mode="replicate"):
    """Pad by repeating the border."""


class ReplicationPad3d(_Pad, dimensions=3, mode="replicate"):
    """Pad by repeating the border."""


class CircularPad1d(_Pad, dimensions=1, mode="circular"):
    """Pad with the elements of the opposite end."""


class CircularPad2d(_Pad, dimensions=2, mode="circular"):
    """Pad with the elements of the opposite end."""


class CircularPad3d(_Pad, dimensions=3, mode="circular"):
    """Pad with the elements of the opposite end."""
