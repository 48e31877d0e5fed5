"""
Orthogonal parametrization: orthonormal columns, or rows if there are more columns than rows.

A skew-symmetric matrix A is mapped to its exponential or to the Cayley transform ``(1 - A/2)^-1 (1 + A/2)``, a lower
triangular one to the product of the Householder reflections given by its columns. With a *base* (trivialization,
Lezcano-Casado, 2019) the result is multiplied by the base, where training starts.
"""

import cygrad
from cygrad.nn.module import Module

__all__ = ["Orthogonal"]

MAPS = ("matrix_exp", "cayley", "householder")


def _adjoint(matrix):
    return matrix.transpose(-1, -2).conj()


def _diagonal(matrix):
    return matrix.diagonal(0, -2, -1)


def _is_orthogonal(matrix):
    """Return whether the columns are orthonormal up to rounding."""
    n, k = matrix.shape[-2:]
    if n < k:
        return False
    identity = cygrad.eye(k, dtype=matrix.dtype)
    bound = 10 * n * cygrad.finfo(matrix.dtype).eps  # type: ignore[attr-defined]
    return cygrad.allclose(_adjoint(matrix) @ matrix, identity.expand(*matrix.shape[:-2], k, k), atol=bound)


def _orthogonalized(matrix):
    """Return the orthogonal factor of the QR decomposition in which R has a positive diagonal."""
    reflections, scales = cygrad.geqrf(matrix)
    return cygrad.linalg.householder_product(reflections, scales) * _diagonal(reflections).sgn().unsqueeze(-2)


class Orthogonal(Module):
    """
    Module of `cygrad.nn.utils.parametrizations.orthogonal`.

    Parameters
    ----------
    weight : Tensor of shape (..., m, n)
    orthogonal_map : {"matrix_exp", "cayley", "householder"}
    use_trivialization : bool, default True
        Whether to multiply by a base.
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal: householder does not support complex matrices (got a complex weight). Use "
                             "matrix_exp.")
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        self.with_base = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, weight):
        """Return the orthogonal matrix."""
        wide = weight.shape[-2] < weight.shape[-1]
        if wide:
            weight = weight.transpose(-1, -2)
        result = self._by_reflections(weight) if self.orthogonal_map == "householder" else self._by_skew(weight)
        if self.with_base:
            result = self.base @ result
        return result.transpose(-1, -2) if wide else result

    def _by_skew(self, weight):
        n, k = weight.shape[-2:]
        lower = weight.tril()
        if n != k:
            lower = cygrad.cat([lower, lower.new_zeros(*lower.shape[:-2], n, n - k)], -1)
        skew = lower - _adjoint(lower)
        if self.orthogonal_map == "matrix_exp":
            return cygrad.linalg.matrix_exp(skew)[..., :k]
        identity = cygrad.eye(n, dtype=skew.dtype)
        return cygrad.linalg.solve(identity - skew / 2, identity + skew / 2)[..., :k]

    @staticmethod
    def _by_reflections(weight):
        vectors = weight.tril(-1)
        scales = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        signs = _diagonal(weight).detach().trunc()
        return cygrad.linalg.householder_product(vectors, scales) * signs.unsqueeze(-2)

    def right_inverse(self, value):
        """Return the original tensor for a matrix, or for its orthogonal factor."""
        if tuple(value.shape) != self.shape:
            raise ValueError(f"orthogonal: Expected a matrix or batch of matrices of shape {self.shape}. "
                             f"Got a tensor of shape {tuple(value.shape)}.")
        with cygrad.no_grad():
            wide = value.shape[-2] < value.shape[-1]
            matrix = value.transpose(-1, -2) if wide else value
            n, k = matrix.shape[-2:]
            if self.with_base:
                if n != k:                     # complete to a random square matrix
                    matrix = cygrad.cat([matrix, cygrad.randn(*matrix.shape[:-2], n, n - k, dtype=matrix.dtype)], -1)
                    self.base = _orthogonalized(matrix)
                else:
                    self.base = matrix.detach().clone() if _is_orthogonal(matrix) else _orthogonalized(matrix)
                origin = cygrad.zeros_like(value, requires_grad=False)
                _diagonal(origin).fill_(-1.0)  # skew matrix 0, and no reflections
                return origin
            if self.orthogonal_map != "householder":
                raise NotImplementedError("orthogonal: assignment without use_trivialization requires the map "
                                          f"householder (got {self.orthogonal_map!r}).")
            reflections, scales = cygrad.geqrf(matrix)
            signs = _diagonal(reflections).sign()
            signs = cygrad.where(scales == 0, -signs, signs)
            _diagonal(reflections).copy_(signs)
            return reflections.transpose(-1, -2) if wide else reflections
