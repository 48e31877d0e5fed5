"""Deprecated weight normalization by a hook."""

from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.graph.user_warnings import warn_user
from cygrad.nn.parameter import Parameter, is_lazy
from cygrad.nn.utils.normalizing import norm_except, weight_from

__all__ = ["remove_weight_norm", "weight_norm"]


class WeightNorm:
    """Hook that computes the weight before each forward."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = dim

    def compute_weight(self, module):
        """Return the weight from its length and direction."""
        return weight_from(getattr(module, self.name + "_g"), getattr(module, self.name + "_v"), self.dim)

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def hooks_of(module, kind, name):
    """Return pairs of id and hook of one class for one tensor."""
    before = module._hooks.before if module._hooks is not None else {}
    return [(key, hook) for key, (hook, *_) in before.items() if isinstance(hook, kind) and hook.name == name]


@names_arguments
def weight_norm(module, name="weight", dim=0):
    """
    Parametrize a weight by length and direction. Deprecated: use `cygrad.nn.utils.parametrizations.weight_norm`.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    dim : int or None, default 0
        Dimension with one length for each index; None for a single length.

    Returns
    -------
    Module
        `module`, with parameters ``<name>_g`` and ``<name>_v``.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    warn_user("`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
              FutureWarning)
    if hooks_of(module, WeightNorm, name):
        raise RuntimeError(f"weight_norm: parameter {name} has a weight norm hook already.")
    weight, hook = getattr(module, name), WeightNorm(name, dim)
    if is_lazy(weight):
        raise ValueError(f"weight_norm: the module can't have uninitialized parameters (got {name!r}). Call the module "
                         "once before.")
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(norm_except(weight.detach(), dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


@names_arguments
def remove_weight_norm(module, name="weight"):
    """
    Remove `weight_norm` from a weight.

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
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = nn.utils.remove_weight_norm(nn.utils.weight_norm(nn.Linear(3, 2)))
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'weight']
    """
    found = hooks_of(module, WeightNorm, name)
    if not found:
        raise ValueError(f"remove_weight_norm: weight_norm of '{name}' not found in {module}")
    key, hook = found[0]
    weight = hook.compute_weight(module).detach()
    for attribute in name, name + "_g", name + "_v":
        delattr(module, attribute)
    module.register_parameter(name, Parameter(weight))
    del module._hooks.before[key]
    return module
