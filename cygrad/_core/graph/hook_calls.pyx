"""Calls of the hooks of a node."""

from cygrad._core.arrays.array cimport same_shape
from cygrad._core.arrays.dtype cimport is_complex
from cygrad._core.graph.gradients cimport set_gradient
from cygrad._core.graph.native cimport fit_recorded
from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport SLOT_ADD, Tensor, data_escapes, describe, protocol


cdef object fit_gradients(Node node, Hooks hooks, list grads):
    """Convert the gradient of a result whose memory was replaced: the node expects its original shape and dtype."""
    cdef Tensor gradient, meta
    for output_nr, meta in hooks.fitted.items():
        gradient = grads[output_nr]
        if gradient is None:
            continue
        if is_complex(gradient.array.dtype) and not is_complex(meta.array.dtype):
            raise RuntimeError(f"{node.name()}: its result was real and has been given complex elements by .data = "
                               f"(got a gradient that is a {describe(gradient)}, expected one like a "
                               f"{describe(meta)}). Compute with a new tensor instead of .data.")
        if gradient.array.ndim < meta.array.ndim:          # leading dimensions of size 1 do not count
            gradient = gradient.reshape((1,) * (meta.array.ndim - gradient.array.ndim) + gradient.shape)
        grads[output_nr] = fit_recorded(meta.array, gradient)


cdef object call_tensor_hooks(Node node, Hooks hooks, list grads):
    for output_nr, registered in list(hooks.tensor.items()):
        for hook in list(registered.values()):
            data_escapes()
            result = hook(grads[output_nr])
            if result is not None:
                grads[output_nr] = _replacement(node, "register_hook", result, grads[output_nr])


cdef list call_prehooks(Node node, Hooks hooks, list grads):
    for hook in list(hooks.before.values()):
        data_escapes()
        result = hook(tuple(grads))
        if result is not None:
            grads = _replacements(node, "register_prehook", result, grads)
    return grads


cdef list call_posthooks(Node node, Hooks hooks, list results, list grads):
    for hook in list(hooks.after.values()):
        data_escapes()
        replaced = hook(tuple(results), tuple(grads))
        if replaced is not None:
            results = _replacements(node, "register_hook", replaced, results)
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
        raise RuntimeError(f"{kind}: a hook of {node.name()} changed what the gradient looks like (got a "
                           f"{describe(tensor)}, expected a {describe(former)}).")
    return tensor


cdef list _replacements(Node node, str kind, object result, list former):
    if not isinstance(result, tuple):
        raise TypeError(f"{kind}: a hook of {node.name()} must return a tuple of Tensors or None "
                        f"(got {type(result).__name__}).")
    if len(result) != len(former):
        raise RuntimeError(f"{kind}: a hook of {node.name()} returned the wrong number of gradients "
                           f"(got {len(result)}, expected {len(former)}).")
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
            raise error("register_post_accumulate_grad_hook: the hooks should return None (got "
                        f"{type(result).__name__}). Modify the leaf's .grad in place, or set it.")
