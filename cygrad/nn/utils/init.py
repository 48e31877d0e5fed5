"""Modules without initial values."""

import inspect

from cygrad.nn.module import Module
from cygrad.random.generator import fork_rng

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """
    Make a module whose parameters and buffers have no particular values, for those who fill them themselves.

    Parameters
    ----------
    module_cls : type
        A subclass of Module.
    *args, **kwargs
        For it.

    Returns
    -------
    Module

    Raises
    ------
    RuntimeError
        If it is no subclass of Module, or has no parameter ``device``.

    Examples
    --------
    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    (2, 3)
    """
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: expected a Module (got {module_cls}).")
    parameters = inspect.signature(module_cls).parameters
    if "device" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise RuntimeError(f"skip_init: {module_cls.__name__} takes no device, which leaves its initialization out.")
    device = kwargs.pop("device", "cpu")
    with fork_rng():                         # nor does it cost numbers of the generator
        module = module_cls(*args, device="meta", **kwargs)
    return module.to_empty(device=device)
