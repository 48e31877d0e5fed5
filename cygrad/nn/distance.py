"""Distances and similarities of vectors as modules."""

from cygrad.nn import functional as F
from cygrad.nn.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """
    Compute the cosine of the angle between vectors.

    Parameters
    ----------
    dim : int, default 1
    eps : float, default 1e-8
        Lower bound of the norms.

    Examples
    --------
    >>> nn.CosineSimilarity()(cygrad.tensor([[1.0, 1.0]]), cygrad.tensor([[1.0, 0.0]]))
    tensor([0.7071])
    """

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        """Map two tensors that broadcast to the cosines, without `dim`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """
    Compute the p-norm of the difference of vectors.

    Parameters
    ----------
    p : float, default 2.0
    eps : float, default 1e-6
        Added to the difference.
    keepdim : bool, default False

    Examples
    --------
    >>> nn.PairwiseDistance()(cygrad.tensor([[3.0, 4.0]]), cygrad.zeros(1, 2))
    tensor([5.0000])
    """

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        """Map two tensors (..., n) that broadcast to the distances (...)."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
