"""Computations of weight and spectral normalization."""

import cygrad

__all__ = ["as_matrix", "norm_except", "power_iterations", "spectral_scale", "weight_from"]


def norm_except(weight, dim):
    """Return the 2-norm over all dimensions except `dim`, or over all if `dim` is None or -1."""
    if dim is None or dim == -1:
        return cygrad.norm(weight)
    return cygrad.norm(weight, 2, [d for d in range(weight.ndim) if d != dim % weight.ndim], True)


def weight_from(length, direction, dim):
    """Return ``length * direction / |direction|`` (Salimans and Kingma, 2016)."""
    return direction * (length / norm_except(direction, dim))


def as_matrix(weight, dim):
    """Return the weight as a matrix with `dim` first and all other dimensions flattened."""
    return weight.movedim(dim, 0).flatten(1) if weight.ndim > 1 else weight.unsqueeze(0)


def _normalized(vector, eps):
    return vector / cygrad.norm(vector).clamp_min(eps)


def power_iterations(matrix, u, v, n, eps):
    """Update `u` and `v`, in place, by n power iterations for the largest singular value."""
    with cygrad.no_grad():
        for _ in range(n):
            u.copy_(_normalized(matrix @ v, eps))
            v.copy_(_normalized(matrix.mH @ u, eps))


def spectral_scale(matrix, u, v):
    """Return the estimate of the largest singular value; differentiable in the matrix only."""
    return cygrad.vdot(u.clone(), matrix @ v.clone())
