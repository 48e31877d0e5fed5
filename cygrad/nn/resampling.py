"""Resampling, shuffling, reshaping and dropout of channels as modules."""

from cygrad.nn import functional as F
from cygrad.nn.functional.layers import check_probability
from cygrad.nn.module import Module

__all__ = ["AlphaDropout", "ChannelShuffle", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
           "PixelShuffle", "PixelUnshuffle", "Unflatten", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """
    Images brought to another size.

    Parameters
    ----------
    size : int or tuple of int, optional
        The new size.
    scale_factor : float or tuple of float, optional
        By how much the size is multiplied; either this or `size`.
    mode : {"nearest", "linear", "bilinear", "bicubic", "trilinear"}
    align_corners : bool, optional
        Whether the centres of corner elements stay where they are.
    recompute_scale_factor : bool, optional
    """

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        """Shape (batch, channels, ...) -> the new sizes."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self):
        """Size or factor."""
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` in the mode "nearest"."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` in the mode "bilinear", with aligned corners."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """
    Channels become pixels.

    Parameters
    ----------
    upscale_factor : int
        By how much height and width grow.
    """

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        """Shape (..., channels * r**2, height, width) -> (..., channels, height * r, width * r)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """
    Pixels become channels.

    Parameters
    ----------
    downscale_factor : int
        By how much height and width shrink.
    """

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        """Shape (..., channels, height * r, width * r) -> (..., channels * r**2, height, width)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """
    Channels of different groups in turn.

    Parameters
    ----------
    groups : int
    """

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        """Shape (batch, channels, ...) -> the same."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        """The number of groups."""
        return f"groups={self.groups}"


class Unflatten(Module):
    """
    Divides one dimension into several.

    Parameters
    ----------
    dim : int
    unflattened_size : sequence of int
        The new sizes; one of them may be -1.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.nn.Unflatten(1, (2, 3))(cygrad.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim must be an int (got {type(dim).__name__}).")
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError("Unflatten: unflattened_size must be a tuple of ints (got "
                            f"{unflattened_size!r}).")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        """A view."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        """The sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _ChannelDropout(Module):
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


class Dropout1d(_ChannelDropout):
    """
    In training mode, sets whole channels to zero with probability `p` and scales the others by ``1/(1 - p)``.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    function = "dropout1d"


class Dropout2d(_ChannelDropout):
    """`Dropout1d` for images."""

    function = "dropout2d"


class Dropout3d(_ChannelDropout):
    """`Dropout1d` for volumes."""

    function = "dropout3d"


class AlphaDropout(_ChannelDropout):
    """
    Dropout for `SELU`, which keeps mean 0 and variance 1.

    Parameters
    ----------
    p : float, default 0.5
    inplace : bool, default False
        Write the result into the input.
    """

    function = "alpha_dropout"


class FeatureAlphaDropout(_ChannelDropout):
    """`AlphaDropout` of whole channels."""

    function = "feature_alpha_dropout"
