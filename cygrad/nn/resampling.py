"""Interpolation of images, and pixel shuffling, as modules."""

from cygrad._core.graph.argument_errors import as_number
from cygrad.nn import functional as F
from cygrad.nn.module import Module

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d",
           "UpsamplingNearest2d"]


class Upsample(Module):
    """
    Resample images to another size.

    Parameters
    ----------
    size : int or tuple of int, optional
        The new size.
    scale_factor : float or tuple of float, optional
        Factor of the size; either this or `size`.
    mode : {"nearest", "linear", "bilinear", "bicubic", "trilinear"}
    align_corners : bool, optional
        Whether the centers of the corner elements are aligned.
    recompute_scale_factor : bool, optional

    Examples
    --------
    >>> nn.Upsample(scale_factor=2)(cygrad.arange(4.0).reshape(1, 1, 2, 2))
    tensor([[[[0., 0., 1., 1.],
              [0., 0., 1., 1.],
              [2., 2., 3., 3.],
              [2., 2., 3., 3.]]]])
    """

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        elif scale_factor:
            self.scale_factor = float(as_number("Upsample", "scale_factor", scale_factor))
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        """Map shape (batch, channels, ...) to the new sizes."""
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self):
        """Return the size or the factor."""
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """
    Resample images by nearest neighbors.

    Examples
    --------
    >>> nn.UpsamplingNearest2d(scale_factor=2)(cygrad.arange(4.0).reshape(1, 1, 2, 2))[0, 0, 0]
    tensor([0., 0., 1., 1.])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """
    Resample images bilinearly with aligned corners.

    Examples
    --------
    >>> nn.UpsamplingBilinear2d(scale_factor=2)(cygrad.arange(4.0).reshape(1, 1, 2, 2))[0, 0, 0]
    tensor([0.0000, 0.3333, 0.6667, 1.0000])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """
    Rearrange channels into pixels: upscale by sub-pixel convolution.

    Parameters
    ----------
    upscale_factor : int
        Factor of height and width.

    Examples
    --------
    >>> nn.PixelShuffle(2)(cygrad.arange(4.0).reshape(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        """Map shape (..., channels * r**2, height, width) to (..., channels, height * r, width * r)."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        """Return the factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """
    Rearrange pixels into channels, the inverse of `PixelShuffle`.

    Parameters
    ----------
    downscale_factor : int
        Divisor of height and width.

    Examples
    --------
    >>> nn.PixelUnshuffle(2)(cygrad.ones(1, 1, 4, 4)).shape
    (1, 4, 2, 2)
    """

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        """Map shape (..., channels, height * r, width * r) to (..., channels * r**2, height, width)."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        """Return the factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """
    Interleave the channels of several groups.

    Parameters
    ----------
    groups : int

    Examples
    --------
    >>> x = cygrad.arange(4.0).reshape(1, 4, 1, 1)
    >>> nn.ChannelShuffle(2)(x).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        """Apply the layer to an input of shape (batch, channels, ...)."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        """Return the number of groups."""
        return f"groups={self.groups}"
