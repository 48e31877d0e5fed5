"""In-place view operations: methods of Tensor."""

from cygrad._core.dispatch.tangents import change_geometry
from cygrad.composite.out_forms import as_tensor_argument

__all__ = []
METHODS = ["as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"]


def unsqueeze_(input, dim):
    """Insert a dimension of size 1, in place.

    Parameters
    ----------
    dim : int
        Index of the new dimension.

    Returns
    -------
    Tensor
        `self`.

    Examples
    --------
    >>> cygrad.tensor([1, 2]).unsqueeze_(0).shape
    (1, 2)
    """
    return change_geometry(as_tensor_argument("unsqueeze_", "input", input), "unsqueeze", dim)


def squeeze_(input, dim=None):
    """Remove dimensions of size 1, in place.

    Parameters
    ----------
    dim : int or sequence of int, optional
        Dimensions to remove; all by default.

    Returns
    -------
    Tensor
        `self`.

    Examples
    --------
    >>> cygrad.zeros(1, 2, 1).squeeze_().shape
    (2,)
    """
    return change_geometry(as_tensor_argument("squeeze_", "input", input), "squeeze", dim)


def transpose_(input, dim0, dim1):
    """Swap two dimensions, in place.

    Parameters
    ----------
    dim0, dim1 : int

    Returns
    -------
    Tensor
        `self`.

    Examples
    --------
    >>> cygrad.zeros(1, 2).transpose_(0, 1).shape
    (2, 1)
    """
    return change_geometry(as_tensor_argument("transpose_", "input", input), "transpose", dim0, dim1)


swapaxes_ = swapdims_ = transpose_


def t_(input):
    """Transpose a matrix, in place.

    Returns
    -------
    Tensor
        `self`.

    Raises
    ------
    RuntimeError
        If there are more than two dimensions.

    Examples
    --------
    >>> cygrad.zeros(1, 2).t_().shape
    (2, 1)
    """
    if as_tensor_argument("t_", "input", input).ndim > 2:
        raise RuntimeError(f"t_: expected at most two dimensions (got shape {tuple(input.shape)}). Use transpose_().")
    return change_geometry(input, "transpose", 0, 1) if input.ndim == 2 else change_geometry(input, "alias")


def as_strided_(input, size, stride, storage_offset=None):
    """Set size, stride and storage offset, in place.

    Parameters
    ----------
    size, stride : sequence of int
    storage_offset : int, optional

    Returns
    -------
    Tensor
        `self`.

    Examples
    --------
    >>> cygrad.arange(4).as_strided_((2,), (2,))
    tensor([0, 2])
    """
    return change_geometry(as_tensor_argument("as_strided_", "input", input), "as_strided", size, stride,
                           storage_offset)
