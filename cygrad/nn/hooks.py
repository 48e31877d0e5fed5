"""Module hooks, called before and after forward and backward."""

from __future__ import annotations

import functools

from cygrad import Tensor
from cygrad._core.graph.node import RemovableHandle
from cygrad._core.graph.user_warnings import warn_user
from cygrad.nn.backward_hooks import BackwardHooks
from cygrad.nn.registry import LiveDict

__all__ = ["VIEWS", "ModuleHooks"]


class ModuleHooks:
    """Hooks of one module, in execution order; created with the first hook."""

    __slots__ = ("after", "backward_after", "backward_before", "before")

    def __init__(self):
        self.before = {}              # id -> (hook, with_kwargs)
        self.after = {}               # id -> (hook, with_kwargs, always_call)
        self.backward_before = {}     # id -> (hook,)
        self.backward_after = {}      # id -> (hook, is_full)

    def call(self, module, args, kwargs):
        """Run ``module.forward`` with the global hooks, then the hooks of the module."""
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
            _register_early(module, [*ALL_MODULES.backward_after.values(), *self.backward_after.values()], args, result)
            return result if backward is None else backward.watch_outputs(result)
        except BaseException:
            _run_always(pending, module, args, kwargs, result)
            raise

    def _backward_hooks(self, module):
        """Return the backward hooks of this call, or None."""
        before = [hook for (hook,) in [*ALL_MODULES.backward_before.values(), *self.backward_before.values()]]
        after = [hook for hook, full in [*ALL_MODULES.backward_after.values(), *self.backward_after.values()] if full]
        return BackwardHooks(module, before, after) if before or after else None


class AllModulesHooks(ModuleHooks):
    """Global hooks of all modules. While there are any, modules without hooks use `WITHOUT_OWN`."""

    __slots__ = ()

    def any(self):
        """Return whether there is a global hook."""
        return bool(self.before or self.after or self.backward_before or self.backward_after)


ALL_MODULES = AllModulesHooks()
WITHOUT_OWN = ModuleHooks()


def register(hooks, entry, prepend):
    """Add an entry to a dict of hooks, first if `prepend`, and return its handle."""
    if not callable(entry[0]):
        raise TypeError(f"register hook: the hook must be callable (got {type(entry[0]).__name__}).")
    others = dict(hooks) if prepend else {}
    handle = RemovableHandle(hooks, entry)
    for key, other in others.items():      # move the other hooks after it
        del hooks[key]
        hooks[key] = other
    return handle


def _missed_gradients(args, result, node):
    """Return why a non-full hook on `node` misses gradients, and which; None if it gets all gradients."""
    results = (result,) if isinstance(result, Tensor) else result
    for values, verb, missed in ((results, "return", "grad_output"), (args, "take", "grad_input")):
        if not isinstance(values, tuple) or not all(isinstance(value, Tensor) for value in values):
            return f"the module does not {verb} a single Tensor or a tuple of Tensors", missed
    nodes = {value.grad_fn for value in results} - {None}
    if len(nodes) > 1:
        return "different autograd Nodes made the outputs", "grad_output"
    if {arg.grad_fn for arg in args} - {None} != {target for target, _ in node.next_functions}:
        return "forward contains multiple autograd Nodes", "grad_input"
    return None


def _register_early(module, entries, args, result):
    """Register non-full backward hooks on the node of the result, or of its first tensor."""
    hooks = [hook for hook, full in entries if not full]
    if not hooks:
        return
    returned = result
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next((value for value in result.values() if isinstance(value, Tensor)), None)
        else:
            result = result[0] if isinstance(result, (tuple, list)) and result else None
        if result is None:
            return
    if result.grad_fn is None:
        return
    for hook in hooks:
        result.grad_fn.register_hook(functools.partial(hook, module))
    found = _missed_gradients(args, returned, result.grad_fn)
    if found is not None:
        warn_user(f"register_backward_hook: a non-full backward hook is missing some of the {found[1]}, because "
                  f"{found[0]} (in {type(module).__name__}). Use register_full_backward_hook.", FutureWarning)


class HookDict(LiveDict):
    """View of the hooks of one kind of a module, or of one of their flags, by id."""

    __slots__ = ("_module", "_part")

    def __init__(self, module, part):
        self._module = module
        self._part = part

    def _entries(self, ensure=False):
        part = self._part
        hooks = getattr(self._module, f"_ensure{part.place}")() if ensure else self._module.__dict__.get(part.place)
        return {} if hooks is None else getattr(hooks, part.slot)

    def pairs(self):
        """Return a snapshot of ids and hooks."""
        index = self._part.index
        found = [(key, entry if index is None else entry[index]) for key, entry in self._entries().items()]
        return [pair for pair in found if pair[1] is not False]

    def __getitem__(self, key):
        return dict(self.pairs())[key]

    def __setitem__(self, key, hook):
        entries = self._entries(ensure=True)
        if self._part.index:
            entry = list(entries[key])
            entry[self._part.index] = bool(hook)
            entries[key] = tuple(entry)
        else:
            entries[key] = hook if self._part.index is None else (hook, *self._part.flags)

    def __delitem__(self, key):
        if self._part.index:
            self[key] = False
        else:
            del self._entries()[key]


class HookPart:
    """Property that returns a `HookDict`; assigning a dict replaces its content."""

    def __init__(self, place, slot, index=0, flags=()):
        self.place, self.slot, self.index, self.flags = place, slot, index, flags

    def __get__(self, module, cls=None):
        return self if module is None else HookDict(module, self)

    def __set__(self, module, hooks):
        hooks, found = dict(hooks), HookDict(module, self)
        found.clear()
        found.update(hooks)


# PyTorch's attributes of modules that hold hooks.
VIEWS = {
    "_forward_pre_hooks": HookPart("_hooks", "before", 0, (False,)),
    "_forward_pre_hooks_with_kwargs": HookPart("_hooks", "before", 1),
    "_forward_hooks": HookPart("_hooks", "after", 0, (False, False)),
    "_forward_hooks_with_kwargs": HookPart("_hooks", "after", 1),
    "_forward_hooks_always_called": HookPart("_hooks", "after", 2),
    "_backward_pre_hooks": HookPart("_hooks", "backward_before"),
    "_backward_hooks": HookPart("_hooks", "backward_after", 0, (True,)),
    "_state_dict_pre_hooks": HookPart("_state_hooks", "before_save", None),
    "_state_dict_hooks": HookPart("_state_hooks", "saved", 0, (True,)),
    "_load_state_dict_pre_hooks": HookPart("_state_hooks", "before_load", None),
    "_load_state_dict_post_hooks": HookPart("_state_hooks", "loaded", None),
}


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
    """Run the always_call hooks after an error in forward or a hook."""
    for hook, with_kwargs, always_call in pending.values():
        if not always_call:
            continue
        try:
            hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        except Exception as error:
            warn_user(f"forward hook: a hook with always_call=True failed as well: {error!r}")
