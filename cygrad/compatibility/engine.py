"""Private functions of PyTorch's engine and view tracking."""

import contextlib

import cygrad
from cygrad._core.dispatch import tangents
from cygrad._core.engine.plan import captures, current_node, current_order, reaches, running
from cygrad._core.graph.inplace import set_version
from cygrad._core.graph.node import AccumulateGrad
from cygrad._core.graph.saved import SavedTensor

__all__ = [
    "SavedTensor", "_current_autograd_node", "_current_graph_task_execution_order", "_current_graph_task_id",
    "_force_original_view_tracking", "_is_fwd_grad_enabled", "_is_multithreading_enabled", "_is_view_replay_enabled",
    "_set_fwd_grad_enabled", "_unsafe_preserve_version_counter", "_unsafe_set_version_counter",
    "_vmap", "_will_engine_execute_node",
    "is_multithreading_enabled", "is_view_replay_enabled", "set_multithreading_enabled",
]


def _current_graph_task_id():
    """Return the id of the innermost backward of this thread; -1 outside."""
    return next(iter(running()), -1)


def _current_autograd_node():
    """Return the node whose hooks or backward this thread is inside of; None outside of backward."""
    return current_node()


def _current_graph_task_execution_order():
    """Return the nodes that the current backward runs, in its order."""
    if not running():
        raise RuntimeError("_current_graph_task_execution_order: this thread is not inside of a backward. Call it "
                           "from a hook or a custom backward.")
    return current_order()


def _will_engine_execute_node(node):
    """Return whether the backward that this thread is inside of runs a node."""
    if not running():
        raise RuntimeError("_will_engine_execute_node: this thread is not inside of a backward. Call it from a hook "
                           "or a custom backward.")
    needed = reaches(node)
    if captures() and isinstance(node, AccumulateGrad):
        raise RuntimeError("_will_engine_execute_node: a leaf node was passed, but we are currently running "
                           "autograd.grad(), which accumulates into no leaf. Ask about the nodes before it.")
    return needed


class _Switch:
    """A context manager or call whose setting is stored without effect."""

    def __init__(self, mode):
        self._former, type(self)._mode = type(self)._mode, bool(mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        type(self)._mode = self._former


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


class _set_fwd_grad_enabled:
    """
    Set whether this thread computes tangents: a function or a context manager.
    """

    def __init__(self, mode):
        self._former = tangents.enabled()
        tangents.set_enabled(mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        tangents.set_enabled(self._former)


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
    """Set the counts of in-place operations of tensors."""
    for part, version in zip(tensors, versions, strict=True):
        set_version(part, version)


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
