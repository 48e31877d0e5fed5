"""Distances and cosine similarity of vectors."""

import cygrad
from cygrad._core.table.operator import operators
from cygrad.composite.mixed_precision import SHORT, in_float32, rounded_once
from cygrad.composite.out_forms import as_tensor_argument

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]

pdist = cygrad.pdist


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """
    Return the p-norm of ``x1 - x2 + eps`` along the last dimension.

    Parameters
    ----------
    x1, x2 : Tensor of shape (..., n)
        Broadcast against each other.
    p : float, default 2.0
    eps : float, default 1e-6
        Keeps the derivative finite where the two are equal.
    keepdim : bool, default False

    Returns
    -------
    Tensor of shape (...), or (..., 1) with `keepdim`

    Examples
    --------
    >>> cygrad.nn.functional.pairwise_distance(cygrad.zeros(1, 2), cygrad.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    as_tensor_argument("pairwise_distance", "x1", x1)
    as_tensor_argument("pairwise_distance", "x2", x2)
    if x1.dtype in SHORT:
        return in_float32(pairwise_distance, x1, x2, p, eps, keepdim)
    return cygrad.norm(x1 - x2 + eps, p, -1, keepdim)


@rounded_once
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """
    Return the cosine similarity of vectors: their dot product divided by their norms.

    Parameters
    ----------
    x1, x2 : Tensor
        Broadcast against each other.
    dim : int, default 1
        Dimension of the vectors.
    eps : float, default 1e-8
        Lower bound of the norms.

    Returns
    -------
    Tensor
        Without `dim`.

    Raises
    ------
    RuntimeError
        If the dtype is not floating point.

    Examples
    --------
    >>> cygrad.nn.functional.cosine_similarity(cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    as_tensor_argument("cosine_similarity", "x1", x1)
    as_tensor_argument("cosine_similarity", "x2", x2)
    dtype = x1.dtype if x1.dtype is x2.dtype else cygrad.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"cosine_similarity: expected real floating point tensors (got {x1.dtype} and {x2.dtype}). "
                           "Convert with to() first.")
    if x1.shape != x2.shape:
        x1, x2 = cygrad.broadcast_tensors(x1, x2)
    if x1.dtype is not x2.dtype:
        x1, x2 = x1.to(dtype), x2.to(dtype)
    first, second = (cygrad.clamp_min(cygrad.norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return (operators.ratio(x1, first) * operators.ratio(x2, second)).sum(dim)
