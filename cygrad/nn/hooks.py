"""Functions that a module calls before and after its forward."""

from __future__ import annotations

import warnings

from cygrad._core.node import RemovableHandle
from cygrad.nn.backward_hooks import BackwardHooks

__all__ = ["ModuleHooks"]


class ModuleHooks:
    """The hooks of one module, in the order in which they run; made when the first one is registered."""

    __slots__ = ("after", "backward_after", "backward_before", "before")

    def __init__(self):
        self.before = {}              # id -> (hook, with_kwargs)
        self.after = {}               # id -> (hook, with_kwargs, always_call)
        self.backward_before = {}     # id -> (hook,)
        self.backward_after = {}      # id -> (hook,)

    def call(self, module, args, kwargs):
        """Run the hooks around ``module.forward``: those of all modules first, then these."""
        pending = {**ALL_MODULES.after, **self.after}
        result = None
        try:
            backward = self._backward_hooks(module)
            for hook, with_kwargs in [*ALL_MODULES.before.values(), *self.before.values()]:
                args, kwargs = _run_before(hook, with_kwargs, module, args, kwargs)
            if backward is not None:
                args = backward.watch_inputs(args)
            result = module.forward(*args, **kwargs)
            for key, (hook, with_kwargs, _) in list(pending.items()):
                del pending[key]
                changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
                if changed is not None:
                    result = changed
            return result if backward is None else backward.watch_outputs(result)
        except BaseException:
            _run_always(pending, module, args, kwargs, result)
            raise

    def _backward_hooks(self, module):
        """What watches the gradients of this call, or None."""
        before = [hook for (hook,) in [*ALL_MODULES.backward_before.values(), *self.backward_before.values()]]
        after = [hook for (hook,) in [*ALL_MODULES.backward_after.values(), *self.backward_after.values()]]
        return BackwardHooks(module, before, after) if before or after else None


class AllModulesHooks(ModuleHooks):
    """The hooks that all modules share. While there are any, modules without hooks of their own have `WITHOUT_OWN`."""

    __slots__ = ()

    def any(self):
        """Is there any such hook?"""
        return bool(self.before or self.after or self.backward_before or self.backward_after)


ALL_MODULES = AllModulesHooks()
WITHOUT_OWN = ModuleHooks()


def register(hooks, entry, prepend):
    """Add an entry to a dict of hooks, at its front if `prepend`; -> the handle to remove it."""
    if not callable(entry[0]):
        raise TypeError(f"register hook: the hook must be callable (got {type(entry[0]).__name__}).")
    others = dict(hooks) if prepend else {}
    handle = RemovableHandle(hooks, entry)
    for key, other in others.items():      # those before it move behind it
        del hooks[key]
        hooks[key] = other
    return handle


def _run_before(hook, with_kwargs, module, args, kwargs):
    if with_kwargs:
        changed = hook(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if isinstance(changed, tuple) and len(changed) == 2:
            return changed
        raise RuntimeError("forward pre-hook: a hook that takes keyword arguments must return None or a tuple "
                           f"(args, kwargs) (got {changed!r}).")
    changed = hook(module, args)
    if changed is None:
        return args, kwargs
    return changed if isinstance(changed, tuple) else (changed,), kwargs


def _run_always(pending, module, args, kwargs, result):
    """Forward or a hook has failed: run those that want to run anyway."""
    for hook, with_kwargs, always_call in pending.values():
        if not always_call:
            continue
        try:
            hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        except Exception as error:
            warnings.warn(f"forward hook: a hook with always_call=True failed as well: {error!r}", stacklevel=4)
