"""Replicas of a module that share its parameters."""

from cygrad.nn.module import Module

__all__ = ["replicate"]


def replicate(network, n):
    """
    Return replicas of a module that share its parameters.

    Assignments to attributes in a replica do not affect the module. Parameters are the same objects, so all replicas
    accumulate into the same gradients. The first replica has the buffers of the module; the others have copies, so that
    no two threads modify the same buffer.

    Parameters
    ----------
    network : Module
    n : int
        Number of replicas.

    Returns
    -------
    list of Module

    Raises
    ------
    TypeError
        If `network` is not a Module.

    Examples
    --------
    >>> copies = nn.parallel.replicate(nn.Linear(3, 2), 2)
    >>> copies[0].weight.data_ptr() == copies[1].weight.data_ptr()
    True
    """
    if not isinstance(network, Module):
        raise TypeError(f"replicate: only a Module can be copied (got {type(network).__name__}).")
    return [_replica(network, first, {}) for first in [True, *[False] * (n - 1)]]


def _replica(module, first, made):
    """Return a replica of the module and its descendants; a module that occurs twice is copied once."""
    found = made.get(id(module))
    if found is not None:
        return found
    twin = made[id(module)] = object.__new__(type(module))
    values = twin.__dict__
    values.update(module.__dict__)
    for part in ("_parameters", "_buffers", "_modules"):
        values[part] = dict(values[part])
    for name, child in values["_modules"].items():
        if child is not None:
            values["_modules"][name] = _replica(child, first, made)
    if not first:
        values["_buffers"] = {name: None if value is None else value.detach().clone()
                              for name, value in values["_buffers"].items()}
    return twin
