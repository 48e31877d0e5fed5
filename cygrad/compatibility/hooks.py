"""``torch.utils.hooks``: handles that remove hooks."""

from cygrad._core.graph.node import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(function):
    """Mark a hook that is not saved with its tensor; hooks are never saved."""
    function.__torch_unserializable__ = True
    return function


def warn_if_has_hooks(tensor):
    """Warn about hooks that are not saved; hooks are never saved."""
