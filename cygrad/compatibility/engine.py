"""Private functions of PyTorch's engine and view tracking."""

import contextlib
import weakref

import cygrad
from cygrad._core.custom.function import FunctionNode as BackwardCFunction
from cygrad._core.dispatch import tangents
from cygrad._core.engine.plan import captures, current_node, current_order, keeps_graph, reaches, running
from cygrad._core.graph.inplace import set_version
from cygrad._core.graph.node import AccumulateGrad, Node
from cygrad._core.graph.saved import SavedTensor, refuse_hooks
from cygrad.autograd.function import DelayedError as Delayed
from cygrad.autograd.function import Function

__all__ = [
    "AccumulateGrad",
    "BackwardCFunction",
    "DelayedError",
    "Resize",
    "SavedTensor",
    "UndefinedGrad",
    "_WeakTensorRef",
    "_add_cached_tensor",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_force_original_view_tracking",
    "_get_current_graph_task_keep_graph",
    "_is_cached_tensor",
    "_is_checkpoint_valid",
    "_is_fwd_grad_enabled",
    "_is_multithreading_enabled",
    "_is_view_replay_enabled",
    "_remove_cached_tensor",
    "_saved_tensors_hooks_is_enabled",
    "_set_cached_tensors_enabled",
    "_set_fwd_grad_enabled",
    "_unsafe_preserve_version_counter",
    "_unsafe_set_version_counter",
    "_vmap",
    "_will_engine_execute_node",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "set_multithreading_enabled",
]


def _current_graph_task_id():
    """Return the id of the innermost backward of this thread; -1 outside."""
    return next(iter(running()), -1)


def _get_current_graph_task_keep_graph():
    """Return whether the innermost backward of this thread retains the graph; raise outside of backward."""
    if not running():
        raise RuntimeError("_get_current_graph_task_keep_graph: this thread is not inside of a backward. Call it from "
                           "a hook or a custom backward.")
    return keeps_graph()


def _current_autograd_node():
    """Return the node whose hooks or backward this thread is inside of; None outside of backward."""
    return current_node()


def _current_graph_task_execution_order():
    """Return the nodes that the current backward runs, in its order."""
    if not running():
        raise RuntimeError("_current_graph_task_execution_order: should only be called during the backward pass (got "
                           "a call outside). Call it from a hook or a custom backward.")
    if set_multithreading_enabled._mode:
        raise RuntimeError("_current_graph_task_execution_order: expects the current backward to be executed with "
                           "multithreading disabled, because threads share its nodes. Call it within "
                           "set_multithreading_enabled(False).")
    return current_order()


def _will_engine_execute_node(node):
    """Return whether the backward that this thread is inside of runs a node."""
    if not running():
        raise RuntimeError("_will_engine_execute_node: can only be called during the backward pass (got a call "
                           "outside). Call it from a hook or a custom backward.")
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node: expects an grad_fn (got {type(node).__name__}).")
    needed = reaches(node)
    if needed and captures() and isinstance(node, AccumulateGrad):
        raise RuntimeError("_will_engine_execute_node: a leaf node was passed, but we are currently running "
                           "autograd.grad(), which accumulates into no leaf. Ask about the nodes before it.")
    return needed


def _saved_tensors_hooks_is_enabled():
    """Return whether this thread may set hooks for saved tensors."""
    message = refuse_hooks(None)
    refuse_hooks(message)
    return message is None


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor):
        self._reference = weakref.ref(tensor)

    def expired(self):
        """Return whether the tensor is gone."""
        return self._reference() is None


class _Switch(contextlib.ContextDecorator):
    """A setting as a call, a context manager or a decorator; stored without effect unless `_set` is overridden."""

    def __init__(self, mode):
        self.mode, self._former = bool(mode), self._get()
        self._set(self.mode)

    @classmethod
    def _get(cls):
        return cls._mode

    @classmethod
    def _set(cls, mode):
        cls._mode = mode

    def __call__(self, function):
        self.__exit__()                          # as a decorator it has no effect outside of the function
        return super().__call__(function)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._set(self._former)

    def clone(self):
        """Return a new manager with the same mode."""
        return type(self)(self.mode)

    _recreate_cm = clone                         # of ContextDecorator: a decorated function enters a new manager


class set_multithreading_enabled(_Switch):
    """Accept whether backward may use other threads; see ``cygrad.set_num_threads``."""

    _mode = True


class _force_original_view_tracking(_Switch):
    """Accept how views are regenerated, which uses their strides here."""

    _mode = False


def is_multithreading_enabled():
    """Return the setting of `set_multithreading_enabled`."""
    return set_multithreading_enabled._mode


_is_multithreading_enabled = is_multithreading_enabled


def is_view_replay_enabled():
    """Return the setting of `_force_original_view_tracking`."""
    return _force_original_view_tracking._mode


_is_view_replay_enabled = is_view_replay_enabled


class _set_fwd_grad_enabled(_Switch):
    """
    Set whether this thread computes tangents: a function, a context manager or a decorator.
    """

    _get, _set = staticmethod(tangents.enabled), staticmethod(tangents.set_enabled)


def _is_fwd_grad_enabled():
    """Return whether tangents are computed in this thread."""
    return tangents.enabled()


@contextlib.contextmanager
def _unsafe_preserve_version_counter(tensor):
    """Keep the version counter of a tensor, or several, unchanged by in-place operations in the block."""
    tensors = (tensor,) if isinstance(tensor, cygrad.Tensor) else tuple(tensor)
    versions = [part._version for part in tensors]
    try:
        yield
    finally:
        _unsafe_set_version_counter(tensors, versions)


def _unsafe_set_version_counter(tensors, versions):
    """Set the counts of in-place operations of tensors, or of one."""
    if isinstance(tensors, cygrad.Tensor):
        tensors, versions = (tensors,), (versions,)
    for part, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"_unsafe_set_version_counter: Cannot set a version to a negative number (got "
                               f"{version}).")
        set_version(part, version)


class Resize(Function):
    """View a tensor in another shape of as many elements."""

    @staticmethod
    def forward(ctx, tensor, sizes):
        """Return the view."""
        ctx.shape = tensor.shape
        if cygrad.Size(sizes).numel() != tensor.numel():
            raise RuntimeError(f"Resize: expected a shape of {tensor.numel()} elements (got {tuple(sizes)}).")
        return tensor.contiguous().view(sizes)

    @staticmethod
    def backward(ctx, grad):
        """Return the gradient in the shape of the tensor."""
        return grad.contiguous().view(ctx.shape), None


_cached = weakref.WeakValueDictionary()                # by id


def _set_cached_tensors_enabled(enabled):
    """Accept whether cached tensors are told apart; there is no difference here."""


def _add_cached_tensor(tensor):
    """Mark a tensor as one that a cache holds."""
    _cached[id(tensor)] = tensor


def _remove_cached_tensor(tensor):
    """Remove the mark of a tensor."""
    _cached.pop(id(tensor), None)


def _is_cached_tensor(tensor):
    """Return whether a tensor is marked."""
    return id(tensor) in _cached


class UndefinedGrad:
    """Return tensors as they are; their gradients are undefined."""

    def __call__(self, *tensors):
        outputs = _Undefined.apply(*tensors)
        return outputs[0] if len(outputs) == 1 else outputs


class _Undefined(Function):

    @staticmethod
    def forward(ctx, *tensors):
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


class DelayedError:
    """Return tensors as they are; a backward through them raises RuntimeError with a message."""

    def __init__(self, message, num_inputs):
        self.message = message

    def __call__(self, *tensors):
        outputs = Delayed.apply(self.message, *[tensor if tensor.requires_grad else tensor.detach().requires_grad_()
                                                for tensor in tensors])
        return outputs[0] if len(outputs) == 1 else outputs


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """Return `cygrad.vmap` of a function; outputs may be None if `allow_none_pass_through`."""
    from cygrad.func import vmap
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def mapped(*args):
        present = []                             # for each output whether it is a tensor

        def without_none(*values):
            outputs = func(*values)
            present[:] = [output is not None for output in (outputs if isinstance(outputs, tuple) else (outputs,))]
            return tuple(output for output in (outputs if isinstance(outputs, tuple) else (outputs,))
                         if output is not None)
        found = iter(vmap(without_none, in_dims, out_dims)(*args))
        outputs = tuple(next(found) if there else None for there in present)
        return outputs if len(outputs) != 1 else outputs[0]
    return mapped


def _is_checkpoint_valid():
    """Return whether the backward of this thread accumulates gradients, which reentrant checkpoints need."""
    return not captures()
