"""Images read at positions that are computed: `grid_sample`, and the grids of affine maps."""

import itertools
import math

import cygrad
from cygrad._core.graph.user_warnings import warn_user
from cygrad.composite.mixed_precision import computes_in
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["affine_grid", "grid_sample"]


def _aligned(operation, align_corners):
    """Whether -1 and 1 are the middles of the outer pixels; not to say it is worth a warning, as it once was so."""
    if align_corners is None:
        warn_user(f"{operation}: align_corners defaults to False, which was True in early versions of programs for "
                  "PyTorch. Pass align_corners=True or False.")
    return bool(align_corners)


def _pixels(grid, size, align_corners):
    """From coordinates in [-1, 1] to positions of elements."""
    if align_corners:
        return (grid + 1) * ((size - 1) / 2)
    return ((grid + 1) * size - 1) / 2


def _reflected(position, low, high):
    """Positions folded at two borders until they lie between them."""
    if high == low:
        return position * 0
    span = high - low
    offset = (position - low).abs()
    turns = (offset / span).floor().detach()
    rest = offset - turns * span
    return cygrad.where(turns % 2 == 0, rest + low, high - rest)


def _kept_inside(position, size, padding_mode, align_corners):
    """Positions that the mode moves into the image."""
    if padding_mode == "border":
        return position.clamp(0, size - 1)
    if padding_mode == "reflection":
        low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        return _reflected(position, low, high).clamp(0, size - 1)
    return position


def _values(input, places):
    """Elements of images at whole positions, one tensor for each dimension; zero where one lies outside."""
    batch, channels = input.shape[:2]
    sizes = input.shape[2:]
    inside, flat = None, None
    for place, size in zip(places, sizes, strict=True):
        here = (place >= 0) & (place <= size - 1)
        whole = cygrad.where(here, place, 0).to(cygrad.int64)     # nan is not inside either
        inside = here if inside is None else inside & here
        flat = whole if flat is None else flat * size + whole
    flat = flat.flatten(1).unsqueeze(1).expand(batch, channels, -1)
    values = input.flatten(2).gather(2, flat).reshape(batch, channels, *places[0].shape[1:])
    return cygrad.where(inside.unsqueeze(1), values, 0)


def _linear(input, positions):
    """The 2**n neighbors, each with the volume of the opposite cell as its weight."""
    lower = [position.floor().detach() for position in positions]
    result = None
    for corner in itertools.product((0, 1), repeat=len(positions)):
        weight, places = None, []
        for position, low, upper in zip(positions, lower, corner, strict=True):
            factor = position - low if upper else low + 1 - position
            weight = factor if weight is None else weight * factor
            places.append(low + upper)
        part = _values(input, places) * weight.unsqueeze(1)
        result = part if result is None else result + part
    return result


def _cubic_weights(part):
    """Weights of the four neighbors at distances part + 1, part, 1 - part and 2 - part; Keys, 1981, a = -0.75."""
    a = -0.75

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((x - 5) * x + 8) * x * a - 4 * a

    return far(part + 1), near(part), near(1 - part), far(2 - part)


def _cubic(input, positions, padding_mode, align_corners):
    lower = [position.floor().detach() for position in positions]
    weights = [_cubic_weights(position - low) for position, low in zip(positions, lower, strict=True)]
    result = None
    for taps in itertools.product(range(4), repeat=2):
        places = [_kept_inside(low + tap - 1, size, padding_mode, align_corners)
                  for low, tap, size in zip(lower, taps, input.shape[2:], strict=True)]
        part = _values(input, places) * (weights[0][taps[0]] * weights[1][taps[1]]).unsqueeze(1)
        result = part if result is None else result + part
    return result


@computes_in("float32")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """
    Images read at given positions.

    Parameters
    ----------
    input : Tensor
        Floating point, of shape (batch, channels, height, width) or (batch, channels, depth, height, width).
    grid : Tensor
        Of shape (batch, ..., 2) or (batch, ..., 3), with as many dimensions: positions (x, y) or (x, y, z), from -1 at
        the left, upper (and front) end to 1 at the other.
    mode : {"bilinear", "nearest", "bicubic"}
        How elements between those of the image are made; "bicubic" for two dimensions only.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside of the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centers of the outermost elements rather than their outer edges. Not, if not given.

    Returns
    -------
    Tensor
        Of shape (batch, channels, ...), with the sizes of the grid.

    Raises
    ------
    ValueError
        If a mode is unknown.
    RuntimeError
        If shapes or types do not fit.

    Notes
    -----
    Derivative: with respect to image and positions, of any order. Where the result has a kink, at whole positions, that
    from the right; of "nearest" with respect to positions 0.

    Examples
    --------
    >>> import cygrad
    >>> image = cygrad.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> cygrad.nn.functional.grid_sample(image, cygrad.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.5000]]]])
    """
    as_tensor_argument("grid_sample", "input", input)
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"grid_sample: there is no such mode (got {mode!r}, expected 'bilinear', "
                         "'nearest' or 'bicubic').")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: there is no such padding_mode (got {padding_mode!r}, expected "
                         "'zeros', 'border' or 'reflection').")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError("grid_sample: input and grid must both have four dimensions, or both five (got shapes "
                           f"{input.shape} and {grid.shape}).")
    n = input.ndim - 2
    if input.shape[0] != grid.shape[0] or grid.shape[-1] != n:
        raise RuntimeError(f"grid_sample: expected grid of the same batch size, and size {n} in the last dimension "
                           f"(got input with shape {input.shape} and grid with shape {grid.shape}).")
    if input.dtype is not grid.dtype or not input.dtype.is_floating_point:
        raise RuntimeError(f"grid_sample: expected input and grid to have the same floating type (got {input.dtype} "
                           f"and {grid.dtype}). Convert one of them.")
    if 0 in input.shape[2:]:
        raise RuntimeError("grid_sample: the images have no elements (got shape "
                           f"{input.shape}).")
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sample: bicubic interpolation only supports 4D input.")
    align_corners = _aligned("grid_sample", align_corners)
    # The last coordinate of the grid belongs to the first dimension of the image.
    positions = [_pixels(grid.select(-1, n - 1 - dim), input.shape[2 + dim], align_corners) for dim in range(n)]
    if mode == "bicubic":
        return _cubic(input, positions, padding_mode, align_corners)
    positions = [_kept_inside(position, size, padding_mode, align_corners)
                 for position, size in zip(positions, input.shape[2:], strict=True)]
    if mode == "nearest":
        return _values(input, [position.detach().round() for position in positions])
    return _linear(input, positions)


def affine_grid(theta, size, align_corners=None):
    """
    The grid for `grid_sample` that an affine map gives.

    Parameters
    ----------
    theta : Tensor
        Maps, of shape (batch, 2, 3) or (batch, 3, 4).
    size : sequence of int
        Shape of the images that are to be made: (batch, channels, height, width) or (batch, channels, depth, height,
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
        If `theta` does not fit `size`, or is not floating point.

    Examples
    --------
    >>> import cygrad
    >>> cygrad.nn.functional.affine_grid(cygrad.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    n = len(size) - 2
    if not theta.dtype.is_floating_point:
        raise ValueError(f"affine_grid: theta must be floating (got {theta.dtype}).")
    if n not in (2, 3) or tuple(theta.shape) != (size[0], n, n + 1):
        raise ValueError("affine_grid: expected a batch of affine matrices of shape (batch, 2, 3) for 4D or (batch, 3, "
                         f"4) for 5D size (got theta of shape {theta.shape} and size {tuple(size)}).")
    if min(size) <= 0:
        raise ValueError(f"affine_grid: expected non-zero, positive output size (got {tuple(size)}).")
    align_corners = _aligned("affine_grid", align_corners)
    lines = []
    for count in size[2:]:
        ends = 1 if align_corners else (count - 1) / count
        lines.append(cygrad.linspace(-ends, ends, count, dtype=theta.dtype) if count > 1
                     else cygrad.zeros(1, dtype=theta.dtype))
    columns = [line.reshape([-1 if dim == place else 1 for dim in range(n)]).expand(*size[2:])
               for place, line in enumerate(lines)]
    base = cygrad.stack([*reversed(columns), cygrad.ones(*size[2:], dtype=theta.dtype)], -1)
    grid = base.reshape(1, math.prod(size[2:]), n + 1) @ theta.transpose(1, 2)
    return grid.reshape(size[0], *size[2:], n)
