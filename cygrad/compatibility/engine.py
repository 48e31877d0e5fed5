"""What programs for PyTorch ask of its engine and of its bookkeeping of views."""

import contextlib

import cygrad
from cygrad._core.dispatch import tangents
from cygrad._core.engine.plan_inspection import reaches, running
from cygrad._core.graph.inplace import set_version
from cygrad._core.graph.saved import SavedTensor

__all__ = [
    "SavedTensor", "_current_graph_task_id", "_force_original_view_tracking", "_is_multithreading_enabled",
    "_set_fwd_grad_enabled", "_unsafe_preserve_version_counter", "_will_engine_execute_node",
    "is_multithreading_enabled", "is_view_replay_enabled", "set_multithreading_enabled",
]


def _current_graph_task_id():
    """A number of the backward that this thread is inside of; -1 outside."""
    return next(iter(running()), -1)


def _will_engine_execute_node(node):
    """Whether the backward that this thread is inside of needs a node."""
    if not running():
        raise RuntimeError("_will_engine_execute_node: this is asked from within a backward (got none).")
    return reaches(node)


class _Switch:
    """A block, or a call, that sets something which is only remembered: it makes no difference here."""

    def __init__(self, mode):
        self._former, type(self)._mode = type(self)._mode, bool(mode)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        type(self)._mode = self._former


class set_multithreading_enabled(_Switch):
    """Whether backward may use other threads. Python code never runs on them; see ``cygrad.set_num_threads``."""

    _mode = True


class _force_original_view_tracking(_Switch):
    """Whether views are made again by the calls that made them. Their strides say how, here."""

    _mode = False


def is_multithreading_enabled():
    """What `set_multithreading_enabled` has set."""
    return set_multithreading_enabled._mode


_is_multithreading_enabled = is_multithreading_enabled


def is_view_replay_enabled():
    """What `_force_original_view_tracking` has set."""
    return _force_original_view_tracking._mode


def _set_fwd_grad_enabled(mode):
    """A block in which no tangents are computed if `mode` is False; what is there goes on after it."""
    return contextlib.nullcontext() if mode else tangents.paused()


@contextlib.contextmanager
def _unsafe_preserve_version_counter(tensor):
    """A block whose changes in place of a tensor, or several, are not counted."""
    tensors = (tensor,) if isinstance(tensor, cygrad.Tensor) else tuple(tensor)
    versions = [part._version for part in tensors]
    try:
        yield
    finally:
        for part, version in zip(tensors, versions, strict=True):
            set_version(part, version)
