"""Full backward hooks of modules."""

from cygrad import Tensor, is_grad_enabled
from cygrad._core.graph.user_warnings import warn_user
from cygrad.autograd import Function
from cygrad.autograd.per_backward import PerBackward

__all__ = ["BackwardHooks"]


class BackwardHookFunction(Function):
    """The identity; its backward passes gradients to the module's hooks."""

    @staticmethod
    def forward(ctx, watch, materialize, *tensors):
        """Return the tensors unchanged."""
        ctx.watch = watch
        ctx.set_materialize_grads(materialize)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        """Return the gradients after the hooks."""
        return None, None, *ctx.watch(grads)


class BackwardHooks:
    """
    Backward hooks of one call of a module.

    Stores the gradients of the outputs, for each backward, until the gradients of the inputs are available.
    """

    def __init__(self, module, before, after):
        self.module = module
        self.before = before
        self.after = after
        self.inputs = []                   # positions of the arguments that require grad
        self.n_inputs = 0
        self.outputs = []                  # positions of the results that require grad
        self.n_outputs = 0
        self.grad_outputs = PerBackward()

    # ---- in forward

    def watch_inputs(self, args):
        """Return the arguments, with hooks on those that require grad."""
        self.n_inputs = len(args)
        self.inputs, args = _watched(args, self._inputs_done, True)
        return args

    def watch_outputs(self, result):
        """Return the result, with hooks on the tensors that require grad."""
        if not isinstance(result, (Tensor, tuple)):
            warn_user("backward hooks are not called, because forward did not return a Tensor or a tuple of Tensors "
                      f"(got {type(result)}).")
            return result
        results = (result,) if isinstance(result, Tensor) else result
        self.n_outputs = len(results)
        self.outputs, results = _watched(results, self._outputs_done, False)
        return results[0] if isinstance(result, Tensor) else results

    # ---- in backward

    def _outputs_done(self, grads):
        grads = _spread(self.outputs, grads, self.n_outputs)
        for hook in self.before:
            grads = _replaced("full backward pre-hook", "grad_output", hook(self.module, grads), grads)
        if self.after and self.inputs:
            self.grad_outputs.set(grads)
        elif self.after:
            self._without_inputs(grads)
        return [grads[position] for position in self.outputs]

    def _inputs_done(self, grads):
        grad_outputs = self.grad_outputs.take()
        if grad_outputs is None:           # a second derivative: backward bypassed the outputs
            return grads
        grads = _spread(self.inputs, grads, self.n_inputs)
        for hook in self.after:
            grads = _replaced("full backward hook", "grad_input", hook(self.module, grads, grad_outputs), grads)
        return [grads[position] for position in self.inputs]

    def _without_inputs(self, grad_outputs):
        warn_user("the full backward hook is called before the gradients of inputs exist, because no input requires "
                  f"grad (of {type(self.module).__name__}).")
        for hook in self.after:
            result = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(item is None for item in result)):
                raise RuntimeError("full backward hook: no input of the module requires grad, so no gradient can be "
                                   f"replaced (got {type(result).__name__}, expected None or a tuple of None).")


def _watched(values, watch, materialize):
    """Return the positions of the tensors that require grad, and the values with these replaced by hooked ones."""
    positions = [position for position, value in enumerate(values)
                 if isinstance(value, Tensor) and value.requires_grad] if is_grad_enabled() else []
    if not positions:
        return positions, values
    watched = list(values)
    tensors = BackwardHookFunction.apply(watch, materialize, *(values[position] for position in positions))
    for position, tensor in zip(positions, tensors, strict=True):
        watched[position] = tensor
    return positions, tuple(watched) if type(values) is tuple else type(values)(*watched)


def _spread(positions, grads, size):
    """Return the gradients at their positions, None elsewhere."""
    spread = [None] * size
    for position, grad in zip(positions, grads, strict=True):
        spread[position] = grad
    return tuple(spread)


def _replaced(kind, name, result, former):
    """Return the gradients after a hook."""
    if result is None:
        return former
    if isinstance(result, Tensor):
        result = (result,)
    if not isinstance(result, (tuple, list)):
        raise TypeError(f"{kind}: expected None or a tuple with one gradient for each {name} (got "
                        f"{type(result).__name__}).")
    if len(result) != len(former):
        raise RuntimeError(f"{kind}: the hook returned an invalid number of {name} (got {len(result)}, expected "
                           f"{len(former)}).")
    for new, old in zip(result, former, strict=True):
        if new is not None and not isinstance(new, Tensor):
            raise TypeError(f"{kind}: the hook must return Tensors and None (got {type(new).__name__}).")
        if new is not None and old is not None and (new.shape != old.shape or new.dtype != old.dtype):
            raise RuntimeError(f"{kind}: the hook changed the dtype or shape of a gradient (got {new.dtype} of shape "
                               f"{tuple(new.shape)}, expected {old.dtype} of shape {tuple(old.shape)}).")
    return tuple(result)
