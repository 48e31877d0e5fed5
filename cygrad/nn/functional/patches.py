"""Patches of images: `unfold` (im2col) and `fold` (col2im)."""

from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["fold", "unfold"]

_unfold, _fold = operators.im2col, operators.col2im


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """
    Extract patches of images as columns of matrices (im2col).

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch.
    kernel_size : int or tuple of two
        Size of a patch.
    dilation : int or tuple of two, default 1
        Spacing of the elements of a patch.
    padding : int or tuple of two, default 0
        Zeros around the image.
    stride : int or tuple of two, default 1
        Step between patches.

    Returns
    -------
    Tensor
        Of shape (batch, channels * elements of a patch, patches), without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If the number of dimensions is wrong, or the image is smaller than a patch.

    Notes
    -----
    Derivative: `fold` of the gradient.

    Examples
    --------
    >>> cygrad.nn.functional.unfold(cygrad.arange(4.0).reshape(1, 2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    as_tensor_argument("unfold", "input", input)
    if input.ndim == 3:
        return _unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    return _unfold(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """
    Sum columns of matrices into patches of images (col2im): the transpose of `unfold`.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels * elements of a patch, patches) or without the batch.
    output_size : int or tuple of two
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or tuple of two
        As for `unfold`.

    Returns
    -------
    Tensor
        Of shape ``(batch, channels, *output_size)``, without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If sizes do not match.

    Notes
    -----
    Derivative: `unfold` of the gradient.

    Examples
    --------
    >>> cygrad.nn.functional.fold(cygrad.ones(4, 2), (2, 3), 2)
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    as_tensor_argument("fold", "input", input)
    if input.ndim == 2:
        return _fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    return _fold(input, output_size, kernel_size, dilation, padding, stride)
