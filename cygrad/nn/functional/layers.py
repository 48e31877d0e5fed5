"""Linear maps, embeddings, dropout and what prepares data for them."""

import cygrad
from cygrad.operators import OPERATORS

__all__ = ["dropout", "embedding", "linear", "normalize", "one_hot", "pad"]

linear = OPERATORS["linear"]
one_hot = OPERATORS["one_hot"]
pad = OPERATORS["pad"]
_embedding = OPERATORS["embedding"]


def embedding(input, weight, padding_idx=None):
    """
    Rows of `weight`, looked up by index.

    Parameters
    ----------
    input : Tensor
        Integers of any shape, from 0 up to the number of rows.
    weight : Tensor of shape (rows, features)
    padding_idx : int, optional
        A row that gets no gradient.

    Returns
    -------
    Tensor
        Of shape (*input.shape, features).

    Raises
    ------
    IndexError
        If an index is out of range.
    """
    if padding_idx is None:
        return _embedding(weight, input, -1)
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"embedding: padding_idx must be within the table (got {padding_idx}, expected less than "
                             f"{rows}).")
    return _embedding(weight, input, padding_idx % rows)


def check_probability(p, operation):
    """ValueError unless p is in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError(f"{operation}: dropout probability has to be between 0 and 1, but got {p}.")


def dropout(input, p=0.5, training=True, inplace=False):
    """
    Set elements to zero with probability `p` and scale the others by ``1/(1 - p)``.

    Parameters
    ----------
    input : Tensor
    p : float, default 0.5
    training : bool, default True
        If False, the result is the input itself.
    inplace : bool, default False
        Write the result into `input`.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If `p` is not a probability.
    """
    check_probability(p, "dropout")
    if not training or p == 0 or input.numel() == 0:
        return input
    with cygrad.no_grad():
        noise = cygrad.empty_like(input).bernoulli_(1 - p)
        if p < 1:
            noise.div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """
    Divide by the norm along a dimension, but at least by `eps`.

    Parameters
    ----------
    input : Tensor
    p : float, default 2.0
        Order of the norm.
    dim : int or tuple of int, default 1
    eps : float, default 1e-12
    out : Tensor, optional

    Returns
    -------
    Tensor
    """
    length = cygrad.clamp_min(cygrad.norm(input, p, dim, keepdim=True), eps)
    return cygrad.div(input, length, out=out)
