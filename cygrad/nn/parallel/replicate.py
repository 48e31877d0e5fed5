"""Copies of a module that share its parameters."""

from cygrad.nn.module import Module
from cygrad.nn.registry import BUFFER, MODULE, TRANSIENT

__all__ = ["replicate"]


def replicate(network, n):
    """
    Copies of a module over the same parameters.

    What a copy's forward assigns to attributes, the module does not see. Parameters are the same objects, so that
    gradients of all copies arrive in one place. Buffers are the module's own in the first copy only; the others have
    copies of them, so that no two threads change one at the same time.

    Parameters
    ----------
    network : Module
    n : int
        How many.

    Returns
    -------
    list of Module

    Raises
    ------
    TypeError
        If `network` is not a Module.
    """
    if not isinstance(network, Module):
        raise TypeError(f"replicate: only a Module can be copied (got {type(network).__name__}).")
    return [_replica(network, first, {}) for first in [True, *[False] * (n - 1)]]


def _replica(module, first, made):
    """One copy of the module and of those below it; a module that is there twice is copied once."""
    found = made.get(id(module))
    if found is not None:
        return found
    twin = made[id(module)] = object.__new__(type(module))
    values = twin.__dict__
    values.update(module.__dict__)
    values["_kinds"] = dict(values["_kinds"])
    for name, kind in values["_kinds"].items():
        value = values[name]
        if value is None:
            continue
        if kind == MODULE:
            values[name] = _replica(value, first, made)
        elif kind in (BUFFER, TRANSIENT) and not first:
            values[name] = value.detach().clone()
    return twin
