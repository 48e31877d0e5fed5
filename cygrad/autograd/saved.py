"""Context managers that set hooks for saved tensors."""

import contextlib
import weakref

from cygrad._core.graph.saved import HooksBlock, memory_of, refuse_hooks, set_guard

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks(HooksBlock):
    """
    Apply a pair of hooks to the tensors that are saved within the block, in this thread.

    The innermost pair of nested blocks applies. unpack_hook can be called after the end of the block.

    Parameters
    ----------
    pack_hook : callable
        Called once for each saved tensor, without recording; the result is saved instead of the tensor.
    unpack_hook : callable
        Called with that result each time the tensor is needed; must return a tensor with the same values.

    Examples
    --------
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


class save_on_cpu(saved_tensors_hooks):
    """
    Save copies within the block, so that later in-place operations do not affect backward.

    Parameters
    ----------
    pin_memory : bool, default False
        Accepted and ignored.
    device_type : str, default "cpu"
        Likewise.

    Examples
    --------
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
    Raise an error if hooks for saved tensors are set within the block, in this thread.

    Usable as context manager and decorator.

    Parameters
    ----------
    error_message : str
        Message of the RuntimeError; raised immediately if hooks are active.

    Examples
    --------
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


class Keeper:
    """A saved tensor that is copied before its memory is modified."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.version = memory_of(tensor)[1]


class Mutations:
    """Tensors saved in a block of `allow_mutation_on_saved_tensors`, by memory."""

    def __init__(self):
        self.keepers = {}            # id of a memory -> metadata of a tensor in it -> its keeper
        self.cloned = weakref.WeakKeyDictionary()
        self.open = True

    def pack(self, tensor):
        """Keep a tensor, without a copy yet."""
        memory, version = memory_of(tensor)
        looks = (version, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        keepers = self.keepers.setdefault(memory, weakref.WeakValueDictionary())
        keeper = keepers.get(looks)
        if keeper is None:           # shared by all saves of a tensor, to copy it once
            keeper = keepers[looks] = Keeper(tensor)
        return keeper

    def unpack(self, keeper):
        """Return the tensor with its saved values."""
        if not self.open:
            raise AssertionError("allow_mutation_on_saved_tensors: Trying to backward outside of the "
                                 "'allow_mutation_on_saved_tensors' context in which the graph was recorded. Call "
                                 "backward inside.")
        if memory_of(keeper.tensor)[1] != keeper.version:
            raise RuntimeError("allow_mutation_on_saved_tensors: a saved tensor was modified in place outside the "
                               f"block (got version {memory_of(keeper.tensor)[1]}, expected {keeper.version}). Modify "
                               "it inside of the block.")
        return keeper.tensor

    def before_change(self, memory):
        """Copy the saved tensors of a memory."""
        for keeper in list(self.keepers.pop(memory, {}).values()):
            keeper.tensor = keeper.tensor.clone()
            keeper.version = memory_of(keeper.tensor)[1]
            self.cloned[keeper] = True

    @property
    def tid_to_weakhandle(self):
        """The saved tensors, by memory, version and layout."""
        return {looks: keeper for keepers in self.keepers.values() for looks, keeper in keepers.items()}

    def clear(self):
        """Free all tensors and copies."""
        self.open = False
        for keeper in self.cloned:
            keeper.tensor = None
        self.cloned.clear()
        self.keepers.clear()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """
    Allow in-place operations on saved tensors within the block, in this thread.

    Saved tensors are copied before their first modification. backward must run within the block, which frees the copies
    at its end.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> with cygrad.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y.pow(2).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    mutations = Mutations()
    former = set_guard(mutations.before_change)
    if isinstance(getattr(former, "__self__", None), Mutations):
        set_guard(former)
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested (got a second one inside the "
                           "first).")
    try:
        with saved_tensors_hooks(mutations.pack, mutations.unpack):
            yield mutations
    finally:
        set_guard(former)             # ends a trace, like other hooks for saved tensors
        mutations.clear()
