"""Deprecated spectral normalization by a hook."""

import cygrad
from cygrad._core.graph.argument_errors import names_arguments
from cygrad.nn.parameter import Parameter
from cygrad.nn.utils.normalizing import as_matrix, power_iterations, spectral_scale
from cygrad.nn.utils.weight_norm import hooks_of

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """Hook that computes the weight before each forward."""

    def __init__(self, name, n_power_iterations, dim, eps):
        if n_power_iterations <= 0:
            raise ValueError("SpectralNorm: Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module, improve):
        """Return the weight divided by its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if improve:
            with cygrad.no_grad():                         # v first, as in PyTorch's hook
                for _ in range(self.n_power_iterations):
                    power_iterations(matrix.t(), v, u, 1, self.eps)
        return weight / spectral_scale(matrix, u, v)

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, module.training))

    def saved(self, module, state_dict, prefix, local_metadata):
        """Save the version in the metadata."""
        local_metadata.setdefault("spectral_norm", {})[self.name + ".version"] = 1

    def before_load(self, module, state_dict, prefix, local_metadata, *lists):
        """Convert the state of version 0, which had the weight instead of ``v``."""
        key = prefix + self.name
        if local_metadata.get("spectral_norm", {}).get(self.name + ".version", 0) >= 1 or key not in state_dict:
            return
        if any(key + end not in state_dict for end in ("_orig", "_u")):
            return                             # loading reports missing keys
        with cygrad.no_grad():
            weight, u, plain = state_dict[key + "_orig"], state_dict[key + "_u"], state_dict.pop(key)
            matrix, sigma = as_matrix(weight, self.dim), (weight / plain).mean()
            v = (cygrad.linalg.pinv(matrix.t() @ matrix) @ matrix.t() @ u.unsqueeze(1)).squeeze(1)
            state_dict[key + "_v"] = v * (sigma / cygrad.dot(u, matrix @ v))


@names_arguments
def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """
    Divide a weight by its largest singular value; see `cygrad.nn.utils.parametrizations.spectral_norm`.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    n_power_iterations : int, default 1
    eps : float, default 1e-12
    dim : int, optional
        Dimension of the outputs; by default 1 for transposed convolutions, else 0.

    Returns
    -------
    Module
        `module`, with parameter ``<name>_orig`` and buffers ``<name>_u`` and ``<name>_v``.

    Examples
    --------
    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    """
    if hooks_of(module, SpectralNorm, name):
        raise RuntimeError(f"spectral_norm: parameter {name} has a spectral norm hook already.")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight, hook = getattr(module, name), SpectralNorm(name, n_power_iterations, dim, eps)
    with cygrad.no_grad():
        height, width = as_matrix(weight, dim).shape
        u, v = weight.new_empty(height).normal_().detach(), weight.new_empty(width).normal_().detach()
        u, v = u / cygrad.norm(u).clamp_min(eps), v / cygrad.norm(v).clamp_min(eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight if isinstance(weight, Parameter) else Parameter(weight))
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module.register_state_dict_post_hook(hook.saved)
    module.register_load_state_dict_pre_hook(hook.before_load)
    return module


@names_arguments
def remove_spectral_norm(module, name="weight"):
    """
    Remove `spectral_norm` from a weight.

    Parameters
    ----------
    module : Module
    name : str, default "weight"

    Returns
    -------
    Module
        `module`

    Examples
    --------
    >>> layer = nn.utils.remove_spectral_norm(nn.utils.spectral_norm(nn.Linear(3, 2)))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    found = hooks_of(module, SpectralNorm, name)
    if not found:
        raise ValueError(f"remove_spectral_norm: spectral_norm of '{name}' not found in {module}")
    key, hook = found[0]
    with cygrad.no_grad():
        weight = hook.compute_weight(module, False).detach()
    for suffix in "", "_u", "_v", "_orig":
        delattr(module, name + suffix)
    module.register_parameter(name, Parameter(weight))
    del module._hooks.before[key]
    return module
