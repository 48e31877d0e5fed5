"""Handles of registered hooks of tensors, nodes, modules and optimizers."""

from libc.stdint cimport int64_t
from cygrad._core.memory.atomic cimport atomic_add

cdef int64_t _handles = 0


class RemovableHandle:
    """
    Removes a registered hook: by ``remove()``, which may be called twice, or on exit as a context manager.

    Parameters
    ----------
    hooks : dict
        Hooks by their numbers.
    hook : callable, optional
        Registered in `hooks`, under a number that no other handle has.
    extra_dict : dict or list of dict, optional
        Further dicts from which ``remove()`` deletes the number.
    """

    def __init__(self, hooks, hook=None, *, extra_dict=()):
        # One step, so that handles have unique numbers without a GIL.
        self.id = atomic_add(&_handles, 1)
        self.hooks = hooks
        self.extra = (extra_dict,) if isinstance(extra_dict, dict) else tuple(extra_dict)
        if hook is not None:
            hooks[self.id] = hook

    @property
    def hooks_dict_ref(self):
        """Return the dict of the hooks."""
        return lambda: self.hooks

    def __getstate__(self):
        return self.hooks, self.id

    def __setstate__(self, state):
        self.hooks, self.id = state
        self.extra = ()

    def remove(self):
        """Remove the hook."""
        for hooks in (self.hooks, *self.extra):
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()
