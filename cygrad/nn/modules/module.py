"""Global hooks of all modules, for debugging and profiling."""

from cygrad._core.graph.node import RemovableHandle
from cygrad.nn.hooks import ALL_MODULES, WITHOUT_OWN
from cygrad.nn.module import Module
from cygrad.nn.registry import BUFFER, MODULE, PARAMETER, REGISTERING

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class SharedHandle(RemovableHandle):
    """Handle of a global hook; removing the last one removes the overhead of calls."""

    def remove(self):
        super().remove()
        if not ALL_MODULES.any():
            Module._hooks = None


def _register(hooks, entry):
    if not callable(entry[0]):
        raise TypeError(f"register hook: the hook must be callable (got {type(entry[0]).__name__}).")
    handle = SharedHandle(hooks, entry)
    Module._hooks = WITHOUT_OWN
    return handle


def register_module_forward_pre_hook(hook):
    """
    Call ``hook(module, args)`` before the forward of every module and its own hooks.

    Parameters
    ----------
    hook : callable
        As for ``Module.register_forward_pre_hook``.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> from cygrad.nn.modules.module import register_module_forward_pre_hook
    >>> with register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)):
    ...     _ = nn.Sequential(nn.Tanh(), nn.ReLU())(cygrad.ones(1))
    Sequential
    Tanh
    ReLU
    """
    return _register(ALL_MODULES.before, (hook, False))


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """
    Call ``hook(module, args, result)`` after the forward of every module, before its own hooks.

    Parameters
    ----------
    hook : callable
        As for ``Module.register_forward_hook``.
    with_kwargs, always_call : bool, default False
        As for ``Module.register_forward_hook``.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> seen = []
    >>> with nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module).__name__)):
    ...     y = nn.ReLU()(cygrad.ones(2))
    >>> seen
    ['ReLU']
    """
    return _register(ALL_MODULES.after, (hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook):
    """
    Call ``hook(module, grad_output)`` for every module, before its own hooks.

    Parameters
    ----------
    hook : callable
        As for ``Module.register_full_backward_pre_hook``.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> seen = []
    >>> with nn.modules.module.register_module_full_backward_pre_hook(lambda module, _: seen.append(module)):
    ...     nn.Tanh()(2 * cygrad.ones(2, requires_grad=True)).sum().backward()
    >>> seen
    [Tanh()]
    """
    return _register(ALL_MODULES.backward_before, (hook,))


def register_module_full_backward_hook(hook):
    """
    Call ``hook(module, grad_input, grad_output)`` for every module, before its own hooks.

    Parameters
    ----------
    hook : callable
        As for ``Module.register_full_backward_hook``.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> seen = []
    >>> with nn.modules.module.register_module_full_backward_hook(lambda module, *_: seen.append(module)):
    ...     nn.Tanh()(2 * cygrad.ones(2, requires_grad=True)).sum().backward()
    >>> seen
    [Tanh()]
    """
    return _register(ALL_MODULES.backward_after, (hook, True))


def register_module_backward_hook(hook):
    """
    Call ``hook(module, grad_input, grad_output)`` for every module, after the node of its result has run.

    Parameters
    ----------
    hook : callable
        As for ``Module.register_backward_hook``.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> seen = []
    >>> with nn.modules.module.register_module_backward_hook(lambda module, *_: seen.append(module)):
    ...     nn.Tanh()(2 * cygrad.ones(2, requires_grad=True)).sum().backward()
    >>> seen
    [Tanh()]
    """
    return _register(ALL_MODULES.backward_after, (hook, False))


_REGISTRATION = """
    Call ``hook(module, name, {kind})`` when a {kind} is registered with any module.

    Parameters
    ----------
    hook : callable
        May return a {kind} to register instead.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> from cygrad.nn.modules.module import {register}
    >>> names = []
    >>> with {register}(lambda module, name, value: names.append(name)):
    ...     model = nn.Sequential(nn.BatchNorm1d(2))
    >>> names
    {names}
    """
# Names in the example: those registered with a Sequential of one BatchNorm1d.
_SHOWN = {"parameter": ["weight", "bias"], "buffer": ["running_mean", "running_var", "num_batches_tracked"],
          "module": ["0"]}


def _registration(name, kind):
    def register(hook):
        if not callable(hook):
            raise TypeError(f"{register.__name__}: the hook must be callable (got {type(hook).__name__}).")
        return RemovableHandle(REGISTERING[kind], hook)

    register.__name__ = register.__qualname__ = f"register_module_{name}_registration_hook"
    register.__doc__ = _REGISTRATION.format(kind=name if name != "module" else "submodule",
                                             register=register.__name__, names=_SHOWN[name])
    return register


register_module_parameter_registration_hook = _registration("parameter", PARAMETER)
register_module_buffer_registration_hook = _registration("buffer", BUFFER)
register_module_module_registration_hook = _registration("module", MODULE)
