"""Implementation of state_dict and load_state_dict."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import cygrad
from cygrad import Tensor
from cygrad._core.graph.user_warnings import warn_user
from cygrad.nn.parameter import Parameter, is_lazy

__all__ = ["collect", "load", "load_own", "save_own"]

EXTRA = "_extra_state"                 # key of get_extra_state() in a state dict


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Result of `load_state_dict`: missing and unexpected keys."""

    __slots__ = ()

    def __repr__(self):
        return "<All keys matched successfully>" if not any(self) else super().__repr__()

    __str__ = __repr__


def collect(module, destination, prefix, keep_vars):
    """Return the parameters and persistent buffers of the module and all descendants."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    hooks = module._state_hooks
    versions, metadata = getattr(destination, "_metadata", None), {"version": module._version}
    if versions is not None:
        versions[prefix[:-1]] = metadata
    for hook in list(hooks.before_save.values()) if hooks is not None else ():
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, replaces in list(hooks.saved.values()) if hooks is not None else ():
        changed = hook(module, destination, prefix, metadata)
        if changed is not None:
            if not replaces:
                raise RuntimeError(f"state_dict: post-hook must return None (got {type(changed).__name__}). Modify the "
                                   "dict in-place.")
            destination = changed
    return destination


def save_own(module, destination, prefix, keep_vars):
    """Save the parameters, buffers and extra state of the module itself."""
    for name, value in own_state(module).items():
        if value is not None:
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
    if has_extra(module, "get"):
        destination[prefix + EXTRA] = module.get_extra_state()


def has_extra(module, verb):
    """Return whether the class of a module defines ``get_extra_state`` or ``set_extra_state``."""
    return any(f"{verb}_extra_state" in kind.__dict__ for kind in type(module).__mro__ if kind.__name__ != "Stateful")


def own_state(module):
    """Return the parameters and persistent buffers of the module itself by name; values may be None."""
    left_out = module._non_persistent_buffers_set
    buffers = {name: value for name, value in module._buffers.items() if name not in left_out}
    return {**module._parameters, **buffers}


def load(module, state_dict, strict, assign):
    """Copy or assign the values of `state_dict` to the module and all descendants."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"load_state_dict: expected a mapping from path to tensor (got {type(state_dict).__name__}).")
    missing, unexpected, errors = [], [], []
    versions = getattr(state_dict, "_metadata", {})
    state_dict = OrderedDict(state_dict)                   # hooks may modify it
    with cygrad.no_grad():
        _load_tree(module, state_dict, versions, strict, assign, missing, unexpected, errors)
    problems = list(errors)
    if strict and unexpected:
        problems.insert(0, "Unexpected key(s) in state_dict: " + _quoted(unexpected))
    if strict and missing:
        problems.insert(0, "Missing key(s) in state_dict: " + _quoted(missing))
    if problems:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    return IncompatibleKeys(missing, unexpected)


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys) + ". "


def _load_tree(root, state_dict, versions, strict, assign, missing, unexpected, errors):
    """
    Load the modules from the root; run the post-hooks of a module after loading its descendants.

    Modules load with ``strict=True``, so that the lists are complete; `load` evaluates `strict` at the end. Hooks get
    the caller's `strict`.
    """
    stack = [("", root, state_dict, False, ())]
    while stack:
        prefix, module, state_dict, loaded, above = stack.pop()
        hooks = module._state_hooks
        if loaded:
            for hook in list(hooks.loaded.values()):
                if hook(module, IncompatibleKeys(missing, unexpected)) is not None:
                    raise RuntimeError("load_state_dict: a post-hook must return None (got another value). "
                                       "Modify the lists in place.")
            continue
        metadata = {**versions.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
        for hook in list(hooks.before_load.values()) if hooks is not None else ():
            hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)
        module._load_from_state_dict(state_dict, prefix, metadata, True, missing, unexpected, errors)
        if hooks is not None and hooks.loaded:
            stack.append((prefix, module, None, True, above))
        above = below_of("load_state_dict", module, prefix, above)
        below = [(f"{prefix}{name}.", child) for name, child in module._modules.items() if child is not None]
        for path, child in reversed(below):
            part = OrderedDict((key, value) for key, value in state_dict.items() if key.startswith(path))
            stack.append((path, child, part, False, above))


def below_of(operation, module, path, above):
    """Return the ancestors of the children of a module; raise if it contains itself."""
    if module in above:
        raise RuntimeError(f"{operation}: a module contains itself (got a {type(module).__name__} at {path!r}, which "
                           f"is its own ancestor). Remove it.")
    return *above, module


def load_own(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
    """Load the parameters, buffers and extra state of the module itself; report problems in the three lists."""
    own = {name: value for name, value in own_state(module).items() if value is not None}
    for name, value in own.items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing.append(key)
            continue
        given = state_dict[key]
        if not isinstance(given, Tensor):
            errors.append(f'While copying the parameter named "{key}", expected a Tensor from checkpoint but '
                          f"received {type(given).__name__}")
        elif not is_lazy(value) and is_lazy(given):
            errors.append(f"{key}: the parameter is uninitialized in the checkpoint and initialized in the model. "
                          "Call the model once before saving it.")
        elif not is_lazy(value) and given.shape != value.shape:
            errors.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                          f"the shape in current model is {value.shape}.")
        elif metadata.get("assign_to_params_buffers"):
            _assign(module, name, value, given)
        elif not is_lazy(given):
            if value.is_meta and not given.is_meta:
                warn_user(f"load_state_dict: for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                          "parameter in the current model, which is a no-op. Pass assign=True to assign it instead.")
            value.copy_(given)
    extra = has_extra(module, "set")
    if extra and prefix + EXTRA in state_dict:
        module.set_extra_state(state_dict[prefix + EXTRA])
    elif extra and strict:
        missing.append(prefix + EXTRA)
    if not strict:
        return
    known = set(own) | set(module._modules) | ({EXTRA} if extra else set())
    for key in state_dict:
        if key.startswith(prefix):
            name, _, rest = key[len(prefix):].partition(".")
            if name not in known or (name in own and rest):
                unexpected.append(key)


def _assign(module, name, value, given):
    if isinstance(value, Parameter) and not isinstance(given, Parameter):
        given = Parameter(given, requires_grad=value.requires_grad)
    setattr(module, name, given)
