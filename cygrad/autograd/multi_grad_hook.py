"""One hook for the gradients of several tensors."""

import weakref

from cygrad._core.engine.engine import get_gradient_edge
from cygrad._core.engine.plan import reaches
from cygrad._core.graph.node import RemovableHandle
from cygrad.autograd.per_backward import PerBackward

__all__ = ["register_multi_grad_hook"]


class MultiHandle(RemovableHandle):
    """Handle that removes a hook from several tensors."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        """Remove the hook; repeated calls do nothing."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class Place:
    """Weak reference to the edge of a tensor's gradient."""

    __slots__ = ("is_leaf", "reference")

    def __init__(self, tensor):
        # The node of a leaf depends on its graphs; that of another tensor is the one that the hook is
        # registered on, whatever happens to the tensor later.
        self.is_leaf = tensor.grad_fn is None
        self.reference = weakref.ref(tensor if self.is_leaf else get_gradient_edge(tensor).node)

    def reached(self):
        """Return whether the running backward computes this gradient."""
        found = self.reference()
        if found is not None and self.is_leaf:
            found = get_gradient_edge(found).node if found.requires_grad else None
        return found is not None and reaches(found)


class Gathering:
    """Gradients that one backward has computed so far."""

    __slots__ = ("gradients", "missing")

    def __init__(self, places):
        self.gradients = [None] * len(places)
        self.missing = sum(place.reached() for place in places)


def _register_all(tensors, function):
    places = [Place(tensor) for tensor in tensors]
    gatherings = PerBackward()

    def hook_of(position):
        def hook(gradient):
            gathering = gatherings.get()
            if gathering is None:
                gathering = Gathering(places)
                gatherings.set(gathering)
            gathering.gradients[position] = gradient
            gathering.missing -= 1
            if gathering.missing == 0:
                gatherings.take()
                function(gathering.gradients)
        return hook

    return [tensor.register_hook(hook_of(position)) for position, tensor in enumerate(tensors)]


def _register_any(tensors, function):
    called = PerBackward()

    def hook(gradient):
        if not called.get(False):
            called.set(True)
            function(gradient)

    return [tensor.register_hook(hook) for tensor in tensors if tensor.requires_grad]


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """
    Call a function once per backward, when the gradients of several tensors have been computed.

    Parameters
    ----------
    tensors : sequence of Tensor
        With ``mode="all"`` each must require grad.
    fn : callable
        With ``mode="all"``, called as ``fn(grads)`` after the last gradient is computed, with a list of one for each
        tensor, or None if this backward does not compute it. With ``mode="any"``, called as ``fn(grad)`` with the first
        gradient. The result is ignored. It must not modify gradients in place.
    mode : {"all", "any"}, default "all"

    Returns
    -------
    handle
        Its ``remove()`` removes the hook; as a context manager, it does so on exit.

    Raises
    ------
    ValueError
        If `mode` is unknown.
    RuntimeError
        If a tensor does not require grad (``mode="all"``).

    Examples
    --------
    >>> a = cygrad.rand(2, 3, requires_grad=True)
    >>> b = cygrad.rand(2, 3, requires_grad=True)
    >>> c, d = a * b, a * b
    >>> handle = cygrad.autograd.graph.register_multi_grad_hook(
    ...     (a, b, c, d), lambda grads: print([grad is not None for grad in grads]))
    >>> c.sum().backward(retain_graph=True)
    [True, True, True, False]
    >>> c.sum().backward(inputs=(a,), retain_graph=True)
    [True, False, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError("register_multi_grad_hook: Expects mode to be one of ('all', 'any') but got "
                         f"{mode}.")
    if not callable(fn):
        raise TypeError(f"register_multi_grad_hook: the hook must be callable (got {type(fn).__name__}).")
    tensors = tuple(tensors)
    return MultiHandle((_register_all if mode == "all" else _register_any)(tensors, fn))
