"""Hogwild: weights shared by several training loops (Niu, Recht, Ré and Wright, 2011)."""

from copy import deepcopy
from itertools import chain

__all__ = ["share_weights"]


def share_weights(module):
    """
    Return a copy of a module that shares its memory, for a training loop on another thread.

    All copies see each update immediately. Each copy has its own gradients and version counters, so autograd does not
    raise if another loop modifies weights between forward and backward, which Hogwild permits. Buffers are shared too.

    Parameters
    ----------
    module : Module

    Returns
    -------
    Module

    Examples
    --------
    >>> model = nn.Linear(1, 1)
    >>> other = nn.parallel.share_weights(model)
    >>> _ = nn.init.constant_(other.weight, 3.0)
    >>> model.weight.item()
    3.0
    """
    twin = deepcopy(module)
    for own, shared in zip(chain(twin.parameters(), twin.buffers()), chain(module.parameters(), module.buffers()),
                           strict=True):
        own.data = shared.data
    return twin
