"""Sampling of images at given positions: `grid_sample` and `affine_grid`."""

import math
from functools import lru_cache

import cygrad
from cygrad._core.graph.argument_errors import as_sizes
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["affine_grid", "grid_sample"]

# In the order of the kernel's constants.
MODES = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def _aligned(operation, align_corners):
    """Return whether -1 and 1 are the centers of the outer pixels; warn about the default, which changed in PyTorch."""
    if align_corners is None:
        warn_user(f"{operation}: align_corners defaults to False, which was True in early versions of PyTorch. Pass "
                  "align_corners=True or False.")
    return bool(align_corners)


@lru_cache(maxsize=256)
def _sampled_dims(images, grid):
    """Return the number of dimensions of an image, if the grid fits."""
    shape, points = tuple(images), tuple(grid)
    n = len(shape) - 2
    if n not in (2, 3) or len(points) != len(shape):
        raise RuntimeError(f"grid_sample: input and grid must both be 4D or both 5D (got shapes {shape} and {points}).")
    if shape[0] != points[0] or points[-1] != n:
        raise RuntimeError(f"grid_sample: expected a grid of the same batch size, and size {n} in the last dimension "
                           f"(got input with shape {shape} and grid with shape {points}).")
    if 0 in shape[2:]:
        raise RuntimeError(f"grid_sample: expected non-empty images (got shape {shape}).")
    return n


@computes_in("float32")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """
    Sample images at given positions.

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, height, width) or (batch, channels, depth, height, width).
    grid : Tensor
        Positions (x, y) or (x, y, z), of shape (batch, height, width, 2) or (batch, depth, height, width, 3). -1 is the
        left, upper or front end and 1 the opposite one.
    mode : {"bilinear", "nearest", "bicubic"}
        Interpolation; "bicubic" for two dimensions only.
    padding_mode : {"zeros", "border", "reflection"}
        Values outside of the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centers of the outermost elements rather than their outer edges; False by default.

    Returns
    -------
    Tensor
        Of shape (batch, channels, ...), with the sizes of the grid.

    Raises
    ------
    ValueError
        If a mode is unknown.
    RuntimeError
        If shapes or dtypes do not match.

    Notes
    -----
    Derivative: with respect to image and positions, of any order. Where the result has a kink, at whole positions, that
    from the right, and 0 on the border that other paddings than "zeros" keep positions inside of; of "nearest" with
    respect to positions 0.

    Examples
    --------
    >>> image = cygrad.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> cygrad.nn.functional.grid_sample(image, cygrad.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.5000]]]])
    """
    as_tensor_argument("grid_sample", "input", input)
    if mode not in MODES:
        raise ValueError(f"grid_sample: unknown mode (got {mode!r}, expected 'bilinear', 'nearest' or 'bicubic').")
    if padding_mode not in PADDINGS:
        raise ValueError(f"grid_sample: unknown padding_mode (got {padding_mode!r}, expected 'zeros', 'border' or "
                         "'reflection').")
    n = _sampled_dims(input.shape, as_tensor_argument("grid_sample", "grid", grid).shape)
    if input.dtype is not grid.dtype or not input.dtype.is_floating_point:
        raise RuntimeError("grid_sample: expected input and grid to have the same floating point dtype (got "
                           f"{input.dtype} and {grid.dtype}). Convert one of them.")
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sample: bicubic interpolation only supports 4D input.")
    if align_corners is None:
        align_corners = _aligned("grid_sample", None)
    return operators.sample_grid(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), bool(align_corners))


def affine_grid(theta, size, align_corners=None):
    """
    Return the grid of an affine map for `grid_sample`.

    Parameters
    ----------
    theta : Tensor
        Maps, of shape (batch, 2, 3) or (batch, 3, 4).
    size : sequence of int
        Shape of the output images: (batch, channels, height, width) or (batch, channels, depth, height,
        width).
    align_corners : bool, optional
        As for `grid_sample`.

    Returns
    -------
    Tensor
        Of shape (batch, height, width, 2) or (batch, depth, height, width, 3).

    Raises
    ------
    ValueError
        If `theta` does not match `size`, or is not floating point.

    Examples
    --------
    >>> cygrad.nn.functional.affine_grid(cygrad.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    as_tensor_argument("affine_grid", "theta", theta)
    size = as_sizes("affine_grid", "size", size)
    n = len(size) - 2
    if not theta.dtype.is_floating_point:
        raise ValueError(f"affine_grid: theta must be floating point (got {theta.dtype}).")
    if n not in (2, 3) or tuple(theta.shape) != (size[0], n, n + 1):
        raise ValueError("affine_grid: expected a batch of affine matrices of shape (batch, 2, 3) for 4D or (batch, 3, "
                         f"4) for 5D size (got theta of shape {theta.shape} and size {tuple(size)}).")
    if min(size) <= 0:
        raise ValueError(f"affine_grid: expected a positive output size (got {tuple(size)}).")
    align_corners = _aligned("affine_grid", align_corners)
    lines = []
    for count in size[2:]:
        line = cygrad.linspace(-1, 1, count, dtype=theta.dtype) if count > 1 else cygrad.zeros(1, dtype=theta.dtype)
        # Bit-identical to PyTorch: the identity samples at integer positions, where `grid_sample` has kinks.
        lines.append(line if align_corners else line * (count - 1) / count)
    columns = [line.reshape([-1 if dim == place else 1 for dim in range(n)]).expand(*size[2:])
               for place, line in enumerate(lines)]
    base = cygrad.stack([*reversed(columns), cygrad.ones(*size[2:], dtype=theta.dtype)], -1)
    grid = base.reshape(1, math.prod(size[2:]), n + 1) @ theta.transpose(1, 2)
    return grid.reshape(size[0], *size[2:], n)
