"""Hooks as ``torch.utils.hooks`` has them: the handle that takes one away."""

from cygrad._core.graph.node import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(function):
    """Mark a hook that shall not be saved with its tensor; hooks are never saved here."""
    function.__torch_unserializable__ = True
    return function


def warn_if_has_hooks(tensor):
    """Warn of hooks that will not be saved; hooks are never saved here."""
