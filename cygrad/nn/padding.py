"""Padding as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.convolution import spread
from cygrad.nn.module import Module

__all__ = [f"{kind}Pad{n}d" for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
           for n in (1, 2, 3)]


class _Pad(Module):
    """What all kinds share: numbers of elements, in pairs from the last dimension on."""

    dimensions = 0
    mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = spread(padding, 2 * self.dimensions, type(self).__name__, "padding")

    def forward(self, input):
        """Shape (..., sizes) -> the same with larger sizes; negative numbers crop."""
        return F.pad(input, self.padding, mode=self.mode)

    def extra_repr(self):
        """The numbers."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A constant around the input."""

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        """Shape (..., sizes) -> the same with larger sizes; negative numbers crop."""
        return F.pad(input, self.padding, mode="constant", value=self.value)

    def extra_repr(self):
        """The numbers."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """Zeros around the input."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        """The numbers."""
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad):
    """
    A constant at both ends of the last dimension.

    Parameters
    ----------
    padding : int or tuple of two
        How many, in pairs from the last dimension on.
    value : number
    """

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """
    A constant around the last two dimensions.

    Parameters
    ----------
    padding : int or tuple of four
        How many, in pairs from the last dimension on.
    value : number
    """

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """
    A constant around the last three dimensions.

    Parameters
    ----------
    padding : int or tuple of six
        How many, in pairs from the last dimension on.
    value : number
    """

    dimensions = 3


class ZeroPad1d(_ZeroPad):
    """
    Zeros at both ends of the last dimension.

    Parameters
    ----------
    padding : int or tuple of two
        How many, in pairs from the last dimension on.
    """

    dimensions = 1


class ZeroPad2d(_ZeroPad):
    """
    Zeros around the last two dimensions.

    Parameters
    ----------
    padding : int or tuple of four
        How many, in pairs from the last dimension on.
    """

    dimensions = 2


class ZeroPad3d(_ZeroPad):
    """
    Zeros around the last three dimensions.

    Parameters
    ----------
    padding : int or tuple of six
        How many, in pairs from the last dimension on.
    """

    dimensions = 3


class ReflectionPad1d(_Pad):
    """
    The input reflected at its ends, which are not repeated at both ends of the last dimension.

    Parameters
    ----------
    padding : int or tuple of two
        How many, in pairs from the last dimension on.
    """

    dimensions = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """
    The input reflected at its ends, which are not repeated around the last two dimensions.

    Parameters
    ----------
    padding : int or tuple of four
        How many, in pairs from the last dimension on.
    """

    dimensions = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """
    The input reflected at its ends, which are not repeated around the last three dimensions.

    Parameters
    ----------
    padding : int or tuple of six
        How many, in pairs from the last dimension on.
    """

    dimensions = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """
    The outermost elements, repeated, at both ends of the last dimension.

    Parameters
    ----------
    padding : int or tuple of two
        How many, in pairs from the last dimension on.
    """

    dimensions = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """
    The outermost elements, repeated, around the last two dimensions.

    Parameters
    ----------
    padding : int or tuple of four
        How many, in pairs from the last dimension on.
    """

    dimensions = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """
    The outermost elements, repeated, around the last three dimensions.

    Parameters
    ----------
    padding : int or tuple of six
        How many, in pairs from the last dimension on.
    """

    dimensions = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """
    The elements of the other end at both ends of the last dimension.

    Parameters
    ----------
    padding : int or tuple of two
        How many, in pairs from the last dimension on.
    """

    dimensions = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """
    The elements of the other end around the last two dimensions.

    Parameters
    ----------
    padding : int or tuple of four
        How many, in pairs from the last dimension on.
    """

    dimensions = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """
    The elements of the other end around the last three dimensions.

    Parameters
    ----------
    padding : int or tuple of six
        How many, in pairs from the last dimension on.
    """

    dimensions = 3
    mode = "circular"
