"""Interpolation of images, and pixel shuffling."""

import math
from functools import lru_cache

import cygrad
from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.table.docstrings import documented
from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from cygrad.nn.functional.convolution import in_order_of

__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "upsample", "upsample_bilinear",
           "upsample_nearest"]

_resample = operators.resample
# Mode -> input dimensions (None for any) and name of the kernel.
_MODES = {"nearest": (None, "nearest"), "nearest-exact": (None, "nearest-exact"), "linear": (3, "linear"),
          "bilinear": (4, "linear"), "trilinear": (5, "linear"), "bicubic": (4, "cubic"), "area": (None, None)}
_SCALES = ("scale_depth", "scale_height", "scale_width")
_WITH_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")


def _each(value, n, name):
    """Return one number for each of `n` dimensions."""
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(f"interpolate: expected one value for each spatial dimension (got {name} {tuple(value)} "
                             f"for {n}). Pass a number or one for each dimension.")
        return tuple(value)
    return (value,) * n


@lru_cache(maxsize=256)
def _scaled(shape, scale_factor):
    """Return scaled sizes, and the scales as arguments of the kernel."""
    scales = _each(scale_factor, len(shape), "scale_factor")
    if not all(math.isfinite(scale) for scale in scales):
        raise RuntimeError(f"interpolate: scale_factor must be finite (got {scale_factor}).")
    return (tuple(math.floor(float(old) * scale) for old, scale in zip(shape, scales, strict=True)),
            {name: float(scale) for name, scale in zip(_SCALES[3 - len(shape):], scales, strict=True)})


@documented()
def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """
    Resize images.

    Parameters
    ----------
    input : Tensor
        Floating point or uint8, of shape (batch, channels, ...) with one to three spatial dimensions. uint8 is rounded
        to the nearest integer after each dimension.
    size : int or tuple of int, optional
        The new size.
    scale_factor : float or tuple of float, optional
        Factor of the size; either this or `size`.
    mode : str, default "nearest"
        "nearest", "nearest-exact" or "area" for any number of dimensions, "linear" for one, "bilinear" or "bicubic" for
        two, "trilinear" for three.
    align_corners : bool, optional
        Whether the centers of the corner elements are aligned rather than their outer edges; for the linear and cubic
        modes. False by default.
    recompute_scale_factor : bool, optional
        Whether the scale is recomputed from the input and output sizes.
    antialias : bool, default False
        Whether to smooth when downsampling; for "bilinear" and "bicubic".

    Raises
    ------
    ValueError
        If not exactly one of `size` and `scale_factor` is given, or options are inconsistent.
    NotImplementedError
        If the mode does not support the number of dimensions.

    Notes
    -----
    Derivative: the transposed map, because the result is linear in the input. "bicubic": Keys, 1981, with a = -0.75.

    Examples
    --------
    >>> cygrad.nn.functional.interpolate(cygrad.tensor([[[1.0, 3.0]]]), size=4, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if mode not in _MODES:
        raise NotImplementedError(f"interpolate: unknown mode (got {mode!r}, expected one of {', '.join(_MODES)}).")
    if align_corners is not None and mode not in _WITH_CORNERS:
        raise ValueError(f"interpolate: align_corners is only supported for the modes {' | '.join(_WITH_CORNERS)} (got "
                         f"mode {mode!r}).")
    n = as_tensor_argument("interpolate", "input", input).ndim - 2
    if n < 1:
        raise NotImplementedError("interpolate: expected input of shape (batch, channels, ...) (got shape "
                                  f"{tuple(input.shape)}).")
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate: expected size or scale_factor (got {'both' if size is not None else 'none'}).")
    expected, kernel_mode = _MODES[mode]
    if (expected is not None and input.ndim != expected) or n > 3:
        raise NotImplementedError(f"interpolate: mode {mode!r} does not support input with {input.ndim} dimensions "
                                  f"(expected {expected or '3 to 5'}).")
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError("interpolate: antialias is only supported for 4D input and the modes bilinear and bicubic "
                         f"(got mode {mode!r} and shape {input.shape}).")
    if size is not None:
        if recompute_scale_factor:
            raise ValueError("interpolate: recompute_scale_factor requires scale_factor (got size).")
        sizes, scales = _each(size, n, "size"), {}
    else:
        scaled = _scaled if type(scale_factor) in (int, float) else _scaled.__wrapped__
        sizes, scales = scaled(tuple(input.shape[2:]), scale_factor)
        if recompute_scale_factor:
            scales = {}
    if kernel_mode is None:
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, sizes)
    if input.dtype is not cygrad.uint8:
        return _resample(input, sizes, kernel_mode, bool(align_corners), bool(antialias), **scales)
    found, reached = input.float(), list(input.shape[2:])
    for dim in reversed(range(n)):              # PyTorch rounds after each dimension, the last one first
        reached[dim] = sizes[dim]
        scale = {name: factor for name, factor in scales.items() if name == _SCALES[3 - n + dim]}
        found = _resample(found, tuple(reached), kernel_mode, bool(align_corners), bool(antialias), **scale)
        found = (found + 0.5).floor().clamp(0, 255)
    return found.to(cygrad.uint8)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """
    Resize images: deprecated name of `interpolate`.

    Examples
    --------
    >>> F.upsample(cygrad.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """
    Call `interpolate` in the mode "nearest".

    Examples
    --------
    >>> F.upsample_nearest(cygrad.arange(4.0).reshape(1, 1, 2, 2), scale_factor=2)[0, 0, 0]
    tensor([0., 0., 1., 1.])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """
    Call `interpolate` in the mode "bilinear", with aligned corners.

    Examples
    --------
    >>> F.upsample_bilinear(cygrad.arange(4.0).reshape(1, 1, 2, 2), scale_factor=2)[0, 0, 0]
    tensor([0.0000, 0.3333, 0.6667, 1.0000])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


@documented()
def pixel_shuffle(input, upscale_factor):
    """
    Rearrange channels to pixels: (..., c * r**2, h, w) -> (..., c, h * r, w * r) (Shi et al., 2016).

    Parameters
    ----------
    input : Tensor
        Of at least three dimensions.
    upscale_factor : int
        The factor r.

    Raises
    ------
    RuntimeError
        If the channels are not divisible.

    Examples
    --------
    >>> cygrad.nn.functional.pixel_shuffle(cygrad.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    as_tensor_argument("pixel_shuffle", "input", input)
    try:
        split, order, joined = _shuffled(tuple(input.shape), upscale_factor)
    except TypeError:                           # not hashable
        split, order, joined = _shuffled(tuple(input.shape), as_integer("pixel_shuffle", "upscale_factor",
                                                                        upscale_factor))
    return in_order_of(input, operators.reshape(operators.permute(operators.reshape(input, split), order), joined))


@lru_cache(maxsize=256, typed=True)        # True is not 1
def _shuffled(shape, r):
    """Return the shape with channels split, the order of its dimensions, and the shape of the result."""
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise RuntimeError("pixel_shuffle: expected input with at least 3 dimensions and a number of channels "
                           "divisible by the square of upscale_factor, which is positive (got shape "
                           f"{shape} and {r}).")
    *batch, channels, height, width = shape
    n, channels = len(batch), channels // (r * r)
    return ((*batch, channels, r, r, height, width), (*range(n + 1), n + 3, n + 1, n + 4, n + 2),
            (*batch, channels, height * r, width * r))


@documented()
def pixel_unshuffle(input, downscale_factor):
    """
    Rearrange pixels to channels: (..., c, h * r, w * r) -> (..., c * r**2, h, w), the inverse of `pixel_shuffle`.

    Parameters
    ----------
    input : Tensor
        Of at least three dimensions.
    downscale_factor : int
        The factor r.

    Raises
    ------
    RuntimeError
        If height or width is not divisible.

    Examples
    --------
    >>> cygrad.nn.functional.pixel_unshuffle(cygrad.arange(4).reshape(1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    as_tensor_argument("pixel_unshuffle", "input", input)
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-2] % r or input.shape[-1] % r:
        raise RuntimeError("pixel_unshuffle: expected input with at least 3 dimensions and height and width divisible "
                           f"by downscale_factor, which is positive (got shape {input.shape} and {r}).")
    *batch, channels, height, width = input.shape
    n = len(batch)
    parts = input.reshape(*batch, channels, height // r, r, width // r, r)
    parts = parts.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return in_order_of(input, parts.reshape(*batch, channels * r * r, height // r, width // r))


@documented()
def channel_shuffle(input, groups):
    """
    Interleave the channels of groups: (groups, c) channels become (c, groups).

    Parameters
    ----------
    input : Tensor
        Of at least three dimensions.
    groups : int

    Raises
    ------
    RuntimeError
        If the channels are not divisible.

    Examples
    --------
    >>> cygrad.nn.functional.channel_shuffle(cygrad.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    as_tensor_argument("channel_shuffle", "input", input)
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise RuntimeError("channel_shuffle: expected input with at least 3 dimensions and a number of channels "
                           f"divisible by groups, which is positive (got shape {input.shape} and {groups}).")
    batch, channels, *sizes = input.shape
    parts = input.reshape(batch, groups, channels // groups, *sizes).transpose(1, 2)
    return in_order_of(input, parts.reshape(input.shape))
