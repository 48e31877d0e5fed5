"""Creation of modules without initialization."""

import inspect

from cygrad.nn.module import Module
from cygrad.random.generator import fork_rng

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """
    Create a module without initializing its parameters and buffers.

    Parameters
    ----------
    module_cls : type
        A subclass of Module.
    *args, **kwargs
        Arguments of the module.

    Returns
    -------
    Module

    Raises
    ------
    RuntimeError
        If `module_cls` is not a subclass of Module, or has no parameter ``device``.

    Examples
    --------
    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    (2, 3)
    """
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: expected a Module (got {module_cls}).")
    parameters = inspect.signature(module_cls).parameters
    if "device" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise RuntimeError(f"skip_init: {module_cls.__name__} must have a parameter device (got none).")
    device = kwargs.pop("device", "cpu")
    with fork_rng():                         # do not consume random numbers
        module = module_cls(*args, **kwargs | {"device": "meta"})
    return module.to_empty(device=device)
