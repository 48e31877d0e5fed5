"""Data parallelism on threads."""

from cygrad import get_num_threads
from cygrad.nn.module import Module
from cygrad.nn.parallel.parallel_apply import parallel_apply
from cygrad.nn.parallel.replicate import replicate
from cygrad.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """
    Split each batch, run replicas of a module on threads, and concatenate the results.

    Replicas share the parameters of the module, so gradients are those of one pass over the batch. Use it for modules
    of many small operations; large operations use all threads already.

    Of thread-local settings, replicas inherit only grad mode, inference mode and `autocast`. Set others, such as saved
    tensor hooks, in the ``forward`` of the module.

    Parameters
    ----------
    module : Module
    device_ids : int or list, optional
        Number of replicas, or a list of this length. The number of threads by default.
    output_device : optional
        The CPU.
    dim : int, default 0
        The batch dimension.

    Attributes
    ----------
    module : Module

    Examples
    --------
    >>> model = nn.DataParallel(nn.Linear(3, 1), device_ids=2)
    >>> model(cygrad.ones(4, 3)).shape
    (4, 1)
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = _parts(device_ids)
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        """Run the module on the whole batch."""
        return data_parallel(self.module, inputs, self.device_ids, self.output_device, self.dim, kwargs)

    def extra_repr(self):
        """Return the number of replicas, or None."""
        return "" if self.device_ids is None else f"device_ids={self.device_ids}"


def _parts(device_ids):
    """Return the number of replicas, or None."""
    if device_ids is None:
        return None
    n = len(device_ids) if isinstance(device_ids, (list, tuple, range)) else device_ids
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"DataParallel: device_ids must be a positive integer or a list (got {device_ids!r}).")
    return n


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """
    Run replicas of a module on parts of a batch; see `DataParallel`.

    Parameters
    ----------
    module : Module
    inputs : Tensor or tuple
        Positional arguments.
    device_ids, output_device, dim : optional
        See `DataParallel`.
    module_kwargs : dict, optional
        Keyword arguments.

    Returns
    -------
    Tensor or structure

    Examples
    --------
    >>> nn.parallel.data_parallel(nn.Linear(3, 2), cygrad.ones(6, 3), device_ids=2).shape
    (6, 2)
    """
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    n = _parts(device_ids) or get_num_threads()
    parts, named = scatter_kwargs(inputs, module_kwargs, n, dim) if n > 1 else ([], [])
    if len(parts) < 2:
        return module(*inputs, **(module_kwargs or {}))
    return gather(parallel_apply(replicate(module, len(parts)), parts, named), dim)
