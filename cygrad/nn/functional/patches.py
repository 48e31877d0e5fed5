"""Patches of images as columns of matrices, and back."""

from cygrad._core.table.operator import operators
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["fold", "unfold"]

_unfold, _fold = operators.im2col, operators.col2im


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """
    Extract patches of images as columns of matrices.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, height, width) or without the batch.
    kernel_size : int or tuple of two
        Size of a patch.
    dilation : int or tuple of two, default 1
        Distance of the elements of a patch.
    padding : int or tuple of two, default 0
        Zeros around the image.
    stride : int or tuple of two, default 1
        Distance of patches.

    Returns
    -------
    Tensor
        Of shape (batch, channels * elements of a patch, patches), without the batch if the input has none.

    Raises
    ------
    RuntimeError
        If the input has a wrong number of dimensions, or no patch fits.

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
    Sum columns of matrices as patches of images: the transpose of `unfold`.

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
        If the sizes do not fit.

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
