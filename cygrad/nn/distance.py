"""Distances and similarities of vectors, and the bilinear form, as modules."""

import math

import cygrad
from cygrad.nn import functional as F
from cygrad.nn import init
from cygrad.nn.module import Module
from cygrad.nn.parameter import Parameter

__all__ = ["Bilinear", "CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """
    The cosine of the angle between vectors.

    Parameters
    ----------
    dim : int, default 1
    eps : float, default 1e-8
        What lengths are at least taken to be.
    """

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1, x2):
        """Two tensors that broadcast -> the cosines, without `dim`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """
    The p-norm of the difference of vectors along the last dimension.

    Parameters
    ----------
    p : float, default 2.0
    eps : float, default 1e-6
        Added to the difference.
    keepdim : bool, default False
    """

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1, x2):
        """Two tensors (..., n) that broadcast -> the distances (...)."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Bilinear(Module):
    """
    ``sum_ij weight[k, i, j] * input1[i] * input2[j] + bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool, default True
    device : "cpu", optional
    dtype : dtype, optional

    Attributes
    ----------
    weight : Parameter of shape (out_features, in1_features, in2_features)
    bias : Parameter of shape (out_features,), or None
        Both start uniform in ±1/sqrt(in1_features).
    """

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"Bilinear: in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(cygrad.empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(cygrad.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw new values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        """Shapes (..., in1_features) and (..., in2_features) -> (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        """Sizes."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"
