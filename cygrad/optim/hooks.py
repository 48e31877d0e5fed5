"""Optimizer hooks of step, state_dict and load_state_dict."""

import threading
from functools import wraps

from cygrad._core.graph.node import RemovableHandle

__all__ = ["OptimizerHooks", "hooked", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class OptimizerHooks:
    """Hooks of an optimizer: a dict for each kind, in execution order."""

    __slots__ = ("after_load", "after_step", "before_load", "before_save", "before_step", "saved")     # read by guards

    def __init__(self):
        self.before_step, self.after_step = {}, {}
        self.before_save, self.saved = {}, {}
        self.before_load, self.after_load = {}, {}

    @staticmethod
    def register(hooks, hook, prepend=False):
        """Add a hook to one of the dicts and return its handle."""
        if not callable(hook):
            raise TypeError(f"register hook: the hook must be callable (got {type(hook).__name__}).")
        others = dict(hooks) if prepend else {}
        handle = RemovableHandle(hooks, hook)
        for key, other in others.items():      # move the other hooks after it
            del hooks[key]
            hooks[key] = other
        return handle


ALL_OPTIMIZERS = OptimizerHooks()
NONE = OptimizerHooks()
_running = threading.local()


def hooked(step):
    """Wrap ``step`` to run the hooks and to set the flag that schedulers read."""

    @wraps(step)
    def with_hooks(self, *args, **kwargs):
        self._opt_called = True
        own = self._hooks
        if own is None and not ALL_OPTIMIZERS.before_step and not ALL_OPTIMIZERS.after_step:
            return step(self, *args, **kwargs)
        running = _running.__dict__.setdefault("optimizers", set())
        if id(self) in running:                # the step of a subclass calls that of its base class
            return step(self, *args, **kwargs)
        running.add(id(self))
        try:
            own = own or NONE
            for hook in [*ALL_OPTIMIZERS.before_step.values(), *own.before_step.values()]:
                changed = hook(self, args, kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(f"step pre-hook: expected None or a pair (args, kwargs) (got {changed!r}).")
                args, kwargs = changed
            result = step(self, *args, **kwargs)
            for hook in [*own.after_step.values(), *ALL_OPTIMIZERS.after_step.values()]:
                hook(self, args, kwargs)
            return result
        finally:
            running.discard(id(self))

    return with_hooks


def register_optimizer_step_pre_hook(hook):
    """
    Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    Parameters
    ----------
    hook : callable
        May return new ``(args, kwargs)`` for the step.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> from cygrad.optim.optimizer import register_optimizer_step_pre_hook
    >>> steps = []
    >>> w = cygrad.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> with register_optimizer_step_pre_hook(lambda optimizer, *_: steps.append(type(optimizer).__name__)):
    ...     cygrad.optim.SGD([w], lr=0.1).step()
    >>> steps
    ['SGD']
    """
    return OptimizerHooks.register(ALL_OPTIMIZERS.before_step, hook)


def register_optimizer_step_post_hook(hook):
    """
    Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer.

    Parameters
    ----------
    hook : callable

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> from cygrad.optim.optimizer import register_optimizer_step_post_hook
    >>> steps = []
    >>> w = cygrad.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> with register_optimizer_step_post_hook(lambda optimizer, *_: steps.append(type(optimizer).__name__)):
    ...     cygrad.optim.SGD([w], lr=0.1).step()
    >>> steps
    ['SGD']
    """
    return OptimizerHooks.register(ALL_OPTIMIZERS.after_step, hook)
