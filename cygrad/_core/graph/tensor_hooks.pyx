"""Hooks of tensors, and retained gradients of non-leaves: methods of Tensor."""

from cygrad._core.graph.node cimport Node
from cygrad._core.graph.tensor cimport INFERENCE_VIEW, NO_GRAD_VIEW, Tensor, describe, grad_fn_of, hooks_of

import weakref
from collections import OrderedDict

from cygrad._core.graph.node import RemovableHandle


def retains_grad(Tensor self not None):
    """Whether backward will retain the gradient of this non-leaf."""
    cdef Node node = self.node
    if node is None or node.hooks is None:
        return False
    kept = node.hooks.retained.get(self.output_nr)
    return kept is not None and kept() is self


def retain_grad(Tensor self not None):
    """Retain the gradient of this non-leaf in ``.grad`` during backward (no-op for a leaf)."""
    cdef Node node
    if self.node is None and self.view_kind in (NO_GRAD_VIEW, INFERENCE_VIEW) and self.requires_grad:
        return                      # a leaf, also if its base was modified since
    node = grad_fn_of(self)
    if not self.requires_grad:
        raise RuntimeError("retain_grad: the tensor does not require grad "
                           f"(got a {describe(self)}). Set requires_grad=True on what it is computed from.")
    if node is not None:
        node.ensure_hooks().retained[self.output_nr] = weakref.ref(self)


def register_hook(Tensor self not None, hook):
    """
    Call ``hook(grad)`` whenever a gradient for this tensor has been computed.

    Parameters
    ----------
    hook : callable
        Takes the gradient; may return a tensor that replaces it. It must not change it in place.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    RuntimeError
        If the tensor does not require grad.

    Examples
    --------
    >>> import cygrad
    >>> v = cygrad.zeros(3, requires_grad=True)
    >>> handle = v.register_hook(lambda grad: grad * 2)
    >>> v.backward(cygrad.tensor([1., 2., 3.]))
    >>> v.grad
    tensor([2., 4., 6.])
    """
    if not callable(hook):
        raise TypeError(f"register_hook: the hook must be callable (got {type(hook).__name__}).")
    if not self.requires_grad:
        raise RuntimeError("register_hook: the tensor does not require grad "
                           f"(got a {describe(self)}), so no gradient will ever be computed for it.")
    return RemovableHandle(hooks_of(self).tensor.setdefault(self.output_nr, {}), hook)


def register_post_accumulate_grad_hook(Tensor self not None, hook):
    """
    Call ``hook(tensor)`` after a gradient has been added to this leaf's ``.grad``.

    Parameters
    ----------
    hook : callable
        Takes the leaf; its result is ignored.

    Returns
    -------
    RemovableHandle

    Raises
    ------
    RuntimeError
        If the tensor is not a leaf that requires grad.
    """
    if not callable(hook):
        raise TypeError("register_post_accumulate_grad_hook: the hook must be callable "
                        f"(got {type(hook).__name__}).")
    if grad_fn_of(self) is not None or not self.requires_grad:
        raise RuntimeError("register_post_accumulate_grad_hook: only leaves that require grad accumulate a "
                           f"gradient (got a {'non-leaf' if self.node is not None else 'tensor without grad'}). "
                           "Use register_hook for other tensors.")
    return RemovableHandle(hooks_of(self).accumulated, hook)


def backward_hooks(Tensor self not None):
    """The hooks of `register_hook`, by their ids; None if there are none."""
    cdef Node node = grad_fn_of(self)
    if node is None and not self.leaf_requires_grad:
        return None
    hooks = hooks_of(self).tensor.get(self.output_nr)
    return OrderedDict(hooks) if hooks else None


def set_backward_hooks(Tensor self not None, hooks):
    """Replace the hooks of `register_hook`; None removes them."""
    cdef Node node = grad_fn_of(self)
    if hooks is None and node is None and self.leaf_hooks is None:
        return
    present = hooks_of(self).tensor.setdefault(self.output_nr, {})
    present.clear()
    present.update(hooks or {})


def _refuse_deletion(name, advice):
    def refuse(self):
        raise RuntimeError(f"{name}: cannot be deleted. {advice}")
    return refuse


def grad_fn_of_tensor(Tensor self not None):
    """Return the node that created the tensor."""
    return grad_fn_of(self)


def set_grad_fn(Tensor self not None, value):
    """Remove the tensor from the graph: None is the only value."""
    if value is not None:
        raise RuntimeError(f"_grad_fn: can be only set to None (got {type(value).__name__}).")
    self.detach_()


def post_accumulate_grad_hooks(Tensor self not None):
    """The hooks of `register_post_accumulate_grad_hook`, by their ids; None if there are none."""
    hooks = hooks_of(self).accumulated if grad_fn_of(self) is None and self.leaf_requires_grad else None
    return OrderedDict(hooks) if hooks else None


METHODS = {
    "_backward_hooks": property(backward_hooks, set_backward_hooks, _refuse_deletion(
        "_backward_hooks", "Set it to None, or call remove() of the handles.")),
    "_grad_fn": property(grad_fn_of_tensor, set_grad_fn, _refuse_deletion(
        "_grad_fn", "Use detach_() to remove a tensor from the graph."), "The node."),
    "_post_accumulate_grad_hooks": property(post_accumulate_grad_hooks),
    "retains_grad": property(retains_grad), "retain_grad": retain_grad, "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
