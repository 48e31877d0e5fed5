"""Hooks of tensors and nodes, and retained gradients: registration, and the calls in backward."""

from cygrad._core.arrays.array cimport array_t, same_shape
from cygrad._core.arrays.dtype cimport dtype_object, is_complex
from cygrad._core.graph.boxing cimport is_entry
from cygrad._core.graph.native cimport fit_recorded
from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport (
    INFERENCE_VIEW, NO_GRAD_VIEW, SLOT_ADD, Tensor, data_escapes, describe, grad_fn_of, hooks_of, is_meta, protocol,
    set_gradient,
)

import weakref
from collections import OrderedDict
from cygrad._core.graph.node import RemovableHandle


cdef Tensor separated(Tensor tensor):
    if tensor.node is not None:
        separate = getattr(getattr(tensor.node, "_forward_cls", None), "_separate_result", None)
        if separate is not None:
            separate(tensor.node, tensor, tensor.node.hooks is not None)
    return tensor


# ----------------------------------------------------------------------------------------------------------- hook calls

# Calls of the hooks of a node.

cdef object fit_gradients(Node node, Hooks hooks, list grads):
    """Convert the gradient of a result whose memory was replaced: the node expects its original shape and dtype."""
    cdef Tensor gradient, meta
    for output_nr, meta in hooks.fitted.items():
        gradient = grads[output_nr]
        if gradient is None:
            continue
        if is_complex(gradient.array.dtype) and not is_complex(meta.array.dtype):
            raise RuntimeError(f"{node.name()}: its result was real, but .data was set to complex elements "
                               f"(got a gradient that is a {describe(gradient)}, expected one like a "
                               f"{describe(meta)}). Compute with a new tensor instead of .data.")
        if gradient.array.ndim < meta.array.ndim:          # leading dimensions of size 1 are ignored
            gradient = gradient.reshape((1,) * (meta.array.ndim - gradient.array.ndim) + gradient.shape)
        grads[output_nr] = fit_recorded(meta.array, gradient)


cdef tuple _shape(object grad):
    cdef array_t *array
    cdef int i
    if grad is None:
        return None
    array = (<Tensor>grad).array
    return tuple([array.shape[i] for i in range(array.ndim)])


cdef int _check_shapes(Node node, str kind, list grads, list shapes) except -1:
    """Raise an error if a hook has changed the shape of a gradient in place (``grad.t_()``)."""
    for grad, shape in zip(grads, shapes, strict=True):
        if _shape(grad) != shape and grad is not None:
            raise RuntimeError(f"{kind}: a hook of {node.name()} changed the shape of a gradient in place (got "
                               f"{_shape(grad)}, expected {shape}). Return a new tensor of that shape.")
    return 0


cdef object call_tensor_hooks(Node node, Hooks hooks, list grads):
    cdef list shapes = [_shape(grad) for grad in grads]
    for output_nr, registered in list(hooks.tensor.items()):
        for hook in list(registered.values()):
            data_escapes()
            result = hook(grads[output_nr])
            if result is not None:
                grads[output_nr] = _replacement(node, "register_hook", result, grads[output_nr])
    _check_shapes(node, "register_hook", grads, shapes)


cdef list call_prehooks(Node node, Hooks hooks, list grads):
    cdef list shapes = [_shape(grad) for grad in grads]
    for hook in list(hooks.before.values()):
        data_escapes()
        result = hook(tuple(grads))
        if result is not None:
            grads = _replacements(node, "register_prehook", result, grads)
    _check_shapes(node, "register_prehook", grads, shapes)
    return grads


cdef list call_posthooks(Node node, Hooks hooks, list results, list grads):
    cdef list shapes = [_shape(grad) for grad in results]
    for hook in list(hooks.after.values()):
        data_escapes()
        replaced = hook(tuple(results), tuple(grads))
        if replaced is not None:
            results = _replacements(node, "register_hook", replaced, results)
    _check_shapes(node, "register_hook", results, shapes)
    return results


cdef Tensor _replacement(Node node, str kind, object result, object former):
    cdef Tensor tensor
    if not isinstance(result, Tensor):
        raise TypeError(f"{kind}: a hook of {node.name()} must return a Tensor or None (got {type(result).__name__}).")
    tensor = <Tensor>result
    if former is None:
        raise RuntimeError(f"{kind}: a hook of {node.name()} can't replace a None gradient with a non-None value (got "
                           f"a {describe(tensor)}, expected None). There is no gradient here: return None.")
    if not (tensor.array.dtype == (<Tensor>former).array.dtype and same_shape(tensor.array, (<Tensor>former).array)):
        raise RuntimeError(f"{kind}: a hook of {node.name()} changed the shape or dtype of a gradient (got a "
                           f"{describe(tensor)}, expected a {describe(former)}).")
    if is_meta(tensor.array) and not is_meta((<Tensor>former).array):
        if hasattr(tensor, "as_gradient"):
            return tensor.to_dense()             # sparse
        if not is_entry(tensor):
            raise RuntimeError(f"{kind}: a hook of {node.name()} returned a gradient on another device (got meta, "
                               "expected cpu).")
    return tensor


cdef list _replacements(Node node, str kind, object result, list former):
    if not isinstance(result, tuple):
        raise TypeError(f"{kind}: a hook of {node.name()} must return a tuple of Tensors or None "
                        f"(got {type(result).__name__}).")
    if len(result) != len(former):
        raise RuntimeError(f"{kind}: a hook of {node.name()} has returned an incorrect number of values "
                           f"(got {len(result)}, but expected {len(former)}).")
    return [None if new is None else _replacement(node, kind, new, old) for new, old in zip(result, former)]


cdef object retain_gradients(Hooks hooks, list grads, bint recorded):
    cdef Tensor kept
    for output_nr, reference in list(hooks.retained.items()):
        tensor = reference()
        if tensor is None or grads[output_nr] is None:
            continue
        kept = <Tensor>tensor
        if kept.gradient != NULL and kept.gradient.value != NULL:
            set_gradient(kept, protocol.binary(SLOT_ADD, kept.grad, grads[output_nr]))
        else:
            set_gradient(kept, <Tensor>grads[output_nr] if recorded else (<Tensor>grads[output_nr]).clone())


cdef object call_accumulated(Hooks hooks, object leaf):
    for hook in list(hooks.accumulated.values()):
        data_escapes()
        result = hook(leaf)
        if result is not None:
            error = RuntimeError if isinstance(result, Tensor) else TypeError
            raise error("register_post_accumulate_grad_hook: hooks should return None (got "
                        f"{type(result).__name__}). Modify the leaf's .grad in place, or set it.")


# --------------------------------------------------------------------------------------------------------- tensor hooks

# Hooks of tensors, and retained gradients of non-leaves: methods of Tensor.

def retains_grad(Tensor self not None):
    """Whether backward will retain the gradient of this non-leaf.

    Examples
    --------
    >>> x = 2 * cygrad.ones(2, requires_grad=True)
    >>> x.retain_grad()
    >>> x.retains_grad
    True
    """
    cdef Node node = self.node
    if node is None or node.hooks is None:
        return False
    kept = node.hooks.retained.get(self.output_nr)
    return kept is not None and kept() is self


def retain_grad(Tensor self not None):
    """Retain the gradient of this non-leaf in ``.grad`` during backward (no-op for a leaf).

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> y = 2 * x
    >>> y.retain_grad()
    >>> (y * y).sum().backward()
    >>> y.grad
    tensor([4., 4.])
    """
    cdef Node node
    if self.node is None and self.view_kind in (NO_GRAD_VIEW, INFERENCE_VIEW) and self.requires_grad:
        return                      # a leaf, also if its base was modified since
    node = grad_fn_of(separated(self))
    if not self.requires_grad:
        raise RuntimeError("retain_grad: can't retain_grad on Tensor that has requires_grad=False "
                           f"(got a {describe(self)}). Set requires_grad=True on its inputs.")
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
    >>> v = cygrad.zeros(3, requires_grad=True)
    >>> handle = v.register_hook(lambda grad: grad * 2)
    >>> v.backward(cygrad.tensor([1., 2., 3.]))
    >>> v.grad
    tensor([2., 4., 6.])
    """
    if not callable(hook):
        raise TypeError(f"register_hook: the hook must be callable (got {type(hook).__name__}).")
    if not self.requires_grad:
        raise RuntimeError("register_hook: cannot register a hook on a tensor that doesn't require gradient "
                           f"(got a {describe(self)}).")
    return RemovableHandle(hooks_of(separated(self)).tensor.setdefault(self.output_nr, {}), hook)


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

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
    >>> x.sum().backward()
    tensor([1., 1.])
    """
    if not callable(hook):
        raise TypeError("register_post_accumulate_grad_hook: the hook must be callable "
                        f"(got {type(hook).__name__}).")
    if grad_fn_of(self) is not None or not self.requires_grad:
        raise RuntimeError("register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on "
                           f"non-leaf tensors or tensors that don't require grad (got a {describe(self)}). Use "
                           "register_hook for other tensors.")
    return RemovableHandle(hooks_of(self).accumulated, hook)


def backward_hooks(Tensor self not None):
    """The dict of the hooks of `register_hook`, by their ids; None if there have been none."""
    if grad_fn_of(self) is None and self.leaf_hooks is None:
        return None
    return hooks_of(self).tensor.get(self.output_nr)


def set_backward_hooks(Tensor self not None, hooks):
    """Replace the dict of the hooks of `register_hook`, which the tensor keeps; None removes it."""
    if hooks is None and grad_fn_of(self) is None and self.leaf_hooks is None:
        return
    if hooks is None:
        hooks_of(self).tensor.pop(self.output_nr, None)
    elif isinstance(hooks, dict):
        hooks_of(self).tensor[self.output_nr] = hooks
    else:
        raise TypeError(f"_backward_hooks: can only be set to a dict or None (got {type(hooks).__name__}).")


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


def grad_dtype(Tensor self not None):
    """
    The dtype of ``.grad`` of a leaf: its own. It cannot be set to another one.

    Examples
    --------
    >>> cygrad.ones(2, dtype=cygrad.float64).grad_dtype
    cygrad.float64
    """
    if grad_fn_of(self) is not None:
        raise RuntimeError("grad_dtype: can only be accessed on leaf tensors (got a result of "
                           f"{grad_fn_of(self).name()}).")
    return dtype_object(self.array.dtype)


def set_grad_dtype(Tensor self not None, value):
    """Accept the dtype of the leaf, which gradients are converted to."""
    if value is not grad_dtype(self):
        raise NotImplementedError(f"grad_dtype: gradients have the dtype of their leaf (got {value}, expected "
                                  f"{grad_dtype(self)}). Convert them in a hook, or the leaf with to().")


def post_accumulate_grad_hooks(Tensor self not None):
    """The hooks of `register_post_accumulate_grad_hook`, by their ids; None if there are none."""
    hooks = hooks_of(self).accumulated if grad_fn_of(self) is None and self.leaf_requires_grad else None
    return OrderedDict(hooks) if hooks else None


METHODS = {
    "_backward_hooks": property(backward_hooks, set_backward_hooks, _refuse_deletion(
        "_backward_hooks", "Set it to None, or call remove() of the handles.")),
    "_grad_fn": property(grad_fn_of_tensor, set_grad_fn, _refuse_deletion(
        "_grad_fn", "Use detach_() to remove a tensor from the graph."), "The node."),
    "grad_dtype": property(grad_dtype, set_grad_dtype),
    "_post_accumulate_grad_hooks": property(post_accumulate_grad_hooks),
    "retains_grad": property(retains_grad), "retain_grad": retain_grad, "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
}
