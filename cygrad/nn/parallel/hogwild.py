"""Weights shared by several training loops (Niu, Recht, Ré and Wright, 2011)."""

from copy import deepcopy
from itertools import chain

__all__ = ["share_weights"]


def share_weights(module):
    """
    Return a copy of a module over the same memory, for a training loop on another thread.

    All loops see each change immediately. But each has gradients of its own, so that they do not mix; and changes are
    counted apart, so that autograd does not object when another loop changes weights between forward and backward: that
    this makes no difference is the very idea of Hogwild. Buffers are shared likewise.

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
