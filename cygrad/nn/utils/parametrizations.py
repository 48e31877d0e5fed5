"""Common parametrizations: orthogonal, spectral norm, weight norm."""

import cygrad
from cygrad._core.graph.argument_errors import names_arguments
from cygrad.nn.module import Module
from cygrad.nn.utils.normalizing import as_matrix, norm_except, power_iterations, spectral_scale, weight_from
from cygrad.nn.utils.orthogonal import MAPS, Orthogonal
from cygrad.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

FIRST_ITERATIONS = 15      # power iterations at registration


def _check(module, name, operation):
    weight = getattr(module, name, None)
    if not isinstance(weight, cygrad.Tensor):
        raise ValueError(f"{operation}: Module '{type(module).__name__}' has no parameter or buffer with name '{name}'")
    return weight


class _WeightNorm(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, length, direction):
        """Return the weight."""
        return weight_from(length, direction, self.dim)

    def right_inverse(self, weight):
        """Return length and direction of a weight."""
        return norm_except(weight, self.dim), weight.clone()


@names_arguments
def weight_norm(module, name="weight", dim=0):
    """
    Parametrize a weight by length and direction (Salimans and Kingma, 2016).

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    dim : int or None, default 0
        Dimension with one length for each index; None for a single length.

    Returns
    -------
    Module
        `module`; the length is ``module.parametrizations.weight.original0``, the direction ``original1``.

    Examples
    --------
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    (40, 1)
    """
    _check(module, name, "weight_norm")
    parametrization = _WeightNorm(dim)
    register_parametrization(module, name, parametrization, unsafe=True)

    def rename(state_dict, prefix, *_):                    # keys of the deprecated `weight_norm`
        for number, part in enumerate("gv"):
            old = f"{prefix}{name}_{part}"
            if old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(old)

    if hasattr(module, "_register_load_state_dict_pre_hook"):
        module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"spectral_norm: Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] "
                             f"but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("_SpectralNorm: Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            with cygrad.no_grad():
                matrix = as_matrix(weight, self.dim)
                height, width = matrix.shape
                u, v = matrix.new_empty(height).normal_(), matrix.new_empty(width).normal_()
                self.register_buffer("_u", u / cygrad.norm(u).clamp_min(eps))
                self.register_buffer("_v", v / cygrad.norm(v).clamp_min(eps))
                power_iterations(matrix, self._u, self._v, FIRST_ITERATIONS, eps)

    def forward(self, weight):
        """Return the weight divided by its largest singular value."""
        if weight.ndim == 1:
            return weight / cygrad.norm(weight).clamp_min(self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return weight / spectral_scale(matrix, self._u, self._v)

    def right_inverse(self, value):
        """Return the value."""
        return value


@names_arguments
def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """
    Divide a weight by its largest singular value (Miyato et al., 2018).

    The singular value is estimated by power iteration, continued by each forward in training mode.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    n_power_iterations : int, default 1
        Iterations of each forward.
    eps : float, default 1e-12
        Lower bound of norms.
    dim : int, optional
        Dimension of the outputs; by default 1 for transposed convolutions, else 0.

    Returns
    -------
    Module
        `module`

    Examples
    --------
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8), n_power_iterations=50)
    >>> layer.weight.norm(2) >= 1
    tensor(True)
    """
    weight = _check(module, name, "spectral_norm")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, parametrization)


@names_arguments
def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """
    Parametrize a matrix with orthonormal columns, or rows if there are more columns than rows.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
        Name of a tensor of shape (..., m, n).
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        Map from free parameters: exponential or Cayley transform of a skew-symmetric matrix, or product of Householder
        reflections. By default "matrix_exp" for square and complex matrices, else "householder".
    use_trivialization : bool, default True
        Whether to start from the orthogonal factor of the current value, stored in the buffer ``base``.

    Returns
    -------
    Module
        `module`

    Raises
    ------
    ValueError
        If the tensor does not exist or is not a matrix, or the map is unknown.

    Examples
    --------
    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 5))
    >>> cygrad.allclose(layer.weight.t() @ layer.weight, cygrad.eye(3), atol=1e-5)
    True
    """
    weight = _check(module, name, "orthogonal")
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} "
                         "dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError('orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    parametrization = Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
