"""Dropout of whole channels, and dropout that keeps mean and variance."""

import cygrad
from cygrad._core.graph.user_warnings import warn_user
from cygrad._core.table.docstrings import documented
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.layers import check_probability
from cygrad.random.generator import per_entry

__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

# Limit of selu at -inf: -scale * alpha (Klambauer et al., 2017).
_SATURATION = -1.7580993408473766


def drop_channels(input, p, training, inplace=False, operation="feature_dropout"):
    """Zero channels (dimension 1), and scale the others."""
    if as_tensor_argument(operation, "input", input).ndim < 2:
        raise RuntimeError(f"{operation}: expected an input with at least two dimensions (got {input.ndim}).")
    check_probability(p, operation)
    if not training or p == 0 or input.numel() == 0:
        return input
    with cygrad.no_grad():
        shape = tuple(input.shape[:2]) + (1,) * (input.ndim - 2)
        noise = per_entry(cygrad.empty(shape, dtype=input.dtype)).bernoulli_(1 - p)
        if p < 1:
            noise.div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def _with_batch(input, n, p, training, inplace, operation):
    """Apply `drop_channels` to input with or without a batch."""
    if as_tensor_argument(operation, "input", input).ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{operation}: expected {n + 1}D or {n + 2}D input (got a {input.ndim}D input).")
    if input.ndim == n + 2:
        return drop_channels(input, p, training, inplace, operation)
    if inplace:
        return drop_channels(input.unsqueeze_(0), p, training, True, operation).squeeze_(0)
    return drop_channels(input.unsqueeze(0), p, training, False, operation).squeeze(0)


@documented()
def dropout1d(input, p=0.5, training=True, inplace=False):
    """
    Set whole channels to zero with probability `p` and scale the others by ``1/(1 - p)``.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, channels, length) or (channels, length).
    p : float, default 0.5
    training : bool, default True
        If False, the input is returned unchanged.

    Raises
    ------
    ValueError
        If `p` is not a probability.
    RuntimeError
        If the input has another number of dimensions.

    Examples
    --------
    >>> F.dropout1d(cygrad.ones(1, 2, 2), training=False)
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    return _with_batch(input, 1, p, training, inplace, "dropout1d")


def dropout2d(input, p=0.5, training=True, inplace=False):
    """
    Apply `dropout1d` to images (batch, channels, height, width); of three dimensions, dimension 1 is the channels.

    Examples
    --------
    >>> F.dropout2d(cygrad.ones(1, 1, 1, 2), training=False)
    tensor([[[[1., 1.]]]])
    """
    if as_tensor_argument("dropout2d", "input", input).ndim != 4:
        warn_user(f"dropout2d: received a {input.ndim}-D input, whose dimension 1 is taken for the channels. Use "
                  "dropout1d for it, or unsqueeze(0) for an image without a batch.")
    return drop_channels(input, p, training, inplace, "dropout2d")


def dropout3d(input, p=0.5, training=True, inplace=False):
    """
    Apply `dropout1d` to volumes (batch, channels, depth, height, width) or without the batch.

    Examples
    --------
    >>> F.dropout3d(cygrad.ones(1, 1, 1, 1, 2), training=False)
    tensor([[[[[1., 1.]]]]])
    """
    return _with_batch(input, 3, p, training, inplace, "dropout3d")


def _alpha(input, p, training, inplace, noise_shape, operation):
    """Replace elements by the limit of selu, then shift and scale so that mean and variance stay."""
    check_probability(p, operation)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    scale = ((_SATURATION ** 2 * p + 1) * (1 - p)) ** -0.5
    with cygrad.no_grad():
        kept = per_entry(cygrad.empty(noise_shape, dtype=input.dtype)).bernoulli_(1 - p)
        shift = (1 - kept) * (scale * _SATURATION) - scale * _SATURATION * p
        factor = kept * scale
    return input.mul_(factor).add_(shift) if inplace else input * factor + shift


@documented()
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """
    Apply dropout for `selu`: set elements to its lower limit, and scale and shift all to keep mean 0 and variance 1.

    Parameters
    ----------
    p : float, default 0.5
    training : bool, default False
        If False, the input is returned unchanged.

    Raises
    ------
    ValueError
        If `p` is not a probability.

    Examples
    --------
    >>> F.alpha_dropout(cygrad.ones(2), training=False)
    tensor([1., 1.])
    """
    as_tensor_argument("alpha_dropout", "input", input)
    return _alpha(input, p, training, inplace, tuple(input.shape), "alpha_dropout")


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """
    Apply `alpha_dropout` to whole channels (dimension 1).

    Examples
    --------
    >>> F.feature_alpha_dropout(cygrad.ones(1, 2, 2), training=False)
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    as_tensor_argument("feature_alpha_dropout", "input", input)
    if input.ndim < 2 and training and p and input.numel():
        raise RuntimeError("feature_alpha_dropout: expected an input with at least two dimensions (got "
                           f"{input.ndim}).")
    shape = tuple(input.shape[:2]) + (1,) * (input.ndim - 2)
    return _alpha(input, p, training, inplace, shape, "feature_alpha_dropout")
