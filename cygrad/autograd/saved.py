"""How tensors are saved for backward within a block: hooks for all of them, on the CPU, or not at all."""

import contextlib

from cygrad._core.saved import pop_hooks, push_hooks, refuse_hooks

__all__ = ["disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801  (the name that users know)
    """
    Let a pair of hooks decide how tensors are saved within the block, in this thread.

    The innermost pair wins where blocks are nested. The hooks stay with what was saved inside: unpack may be called
    long after the block.

    Parameters
    ----------
    pack_hook : callable
        Called once for each tensor that is saved, without recording; what it returns is kept in the tensor's place.
    unpack_hook : callable
        Called with that each time the tensor is needed; must return a tensor of the same content.

    Examples
    --------
    >>> import cygrad
    >>> def pack(x):
    ...     print("packing", x)
    ...     return x
    >>> a = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
    ...     y = a.exp()
    packing tensor([2.7183, 2.7183])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        pop_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """
    Save copies within the block: what is saved stays as it is even if the tensor is changed in place later.

    Parameters
    ----------
    pin_memory : bool, default False
        Accepted for programs that pass it; all memory is the CPU's.
    device_type : str, default "cpu"
        Likewise.

    Examples
    --------
    >>> import cygrad
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = x * 1
    >>> with cygrad.autograd.graph.save_on_cpu():
    ...     z = y.pow(2)
    >>> _ = y.zero_()
    >>> cygrad.autograd.grad(z.sum(), x)
    (tensor([2., 2.]),)
    """

    def __init__(self, pin_memory=False, device_type="cpu"):
        super().__init__(lambda tensor: tensor.detach().clone(), lambda copy: copy)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """
    Let no hooks for saved tensors be set within the block, in this thread.

    A context manager and a decorator.

    Parameters
    ----------
    error_message : str
        What the RuntimeError of an attempt says; it is raised at once if there are hooks already.

    Examples
    --------
    >>> import cygrad
    >>> with cygrad.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with cygrad.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
    ...         pass
    Traceback (most recent call last):
    ...
    RuntimeError: no hooks here
    """
    former = refuse_hooks(error_message)
    try:
        yield
    finally:
        refuse_hooks(former)
