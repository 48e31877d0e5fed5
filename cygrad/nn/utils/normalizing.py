"""The arithmetic of weight and spectral normalization."""

import cygrad

__all__ = ["as_matrix", "norm_except", "power_iterations", "spectral_scale", "weight_from"]


def norm_except(weight, dim):
    """The Euclidean norm over all dimensions but one, which stays; over all if `dim` is None or -1."""
    if dim is None or dim == -1:
        return cygrad.norm(weight)
    return cygrad.norm(weight, 2, [d for d in range(weight.ndim) if d != dim % weight.ndim], True)


def weight_from(length, direction, dim):
    """Salimans and Kingma (2016): ``length * direction / |direction|``."""
    return direction * (length / norm_except(direction, dim))


def as_matrix(weight, dim):
    """Return the weight with `dim` first and all other dimensions as one."""
    return weight.movedim(dim, 0).flatten(1) if weight.ndim > 1 else weight.unsqueeze(0)


def _normalized(vector, eps):
    return vector / cygrad.norm(vector).clamp_min(eps)


def power_iterations(matrix, u, v, n, eps):
    """Turn `u` and `v`, in place, towards the singular vectors of the largest singular value."""
    with cygrad.no_grad():
        for _ in range(n):
            u.copy_(_normalized(matrix @ v, eps))
            v.copy_(_normalized(matrix.t() @ u, eps))


def spectral_scale(matrix, u, v):
    """The largest singular value as the two vectors see it; differentiable in the matrix alone."""
    return cygrad.dot(u.clone(), matrix @ v.clone())
