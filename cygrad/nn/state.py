"""The state of a module as a dict from path to tensor, and back."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import cygrad
from cygrad import Tensor
from cygrad.nn.parameter import Parameter
from cygrad.nn.registry import TRANSIENT

__all__ = ["collect", "load", "load_own", "save_own"]


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found: paths without a value, and values without a place."""

    __slots__ = ()

    def __repr__(self):
        return "<All keys matched successfully>" if not any(self) else super().__repr__()

    __str__ = __repr__


def collect(module, destination, prefix, keep_vars):
    """The parameters and persistent buffers of the module and of all below it."""
    if destination is None:
        destination = OrderedDict()
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    return destination


def save_own(module, destination, prefix, keep_vars):
    """The module's own part."""
    for name, value in own_state(module).items():
        if value is not None:
            destination[prefix + name] = value if keep_vars else value.detach()


def own_state(module):
    """Parameters, then persistent buffers, by name; None where one is left out."""
    kinds = module.__dict__["_kinds"]
    buffers = {name: value for name, value in module._buffers.items() if kinds[name] != TRANSIENT}
    return {**module._parameters, **buffers}


def load(module, state_dict, strict, assign):
    """Copy (or put) the values of `state_dict` into the module and all below it."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"load_state_dict: expected a mapping from path to tensor (got {type(state_dict).__name__}).")
    missing, unexpected, errors = [], [], []
    with cygrad.no_grad():
        _load_tree(module, state_dict, {"assign_to_params_buffers": assign}, strict, missing, unexpected, errors)
    problems = list(errors)
    if strict and missing:
        problems.insert(0, "Missing key(s) in state_dict: " + _quoted(missing))
    if strict and unexpected:
        problems.insert(0, "Unexpected key(s) in state_dict: " + _quoted(unexpected))
    if problems:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    return IncompatibleKeys(missing, unexpected)


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys) + ". "


def _load_tree(root, state_dict, metadata, strict, missing, unexpected, errors):
    stack = [("", root)]
    while stack:
        prefix, module = stack.pop()
        module._load_from_state_dict(state_dict, prefix, metadata, strict, missing, unexpected, errors)
        below = [(f"{prefix}{name}.", child) for name, child in module._modules.items() if child is not None]
        stack.extend(reversed(below))


def load_own(module, state_dict, prefix, metadata, missing, unexpected, errors):
    """The module's own part; adds what it finds wrong to the three lists."""
    own = {name: value for name, value in own_state(module).items() if value is not None}
    for name, value in own.items():
        key = prefix + name
        if key not in state_dict:
            missing.append(key)
            continue
        given = state_dict[key]
        if not isinstance(given, Tensor):
            errors.append(f'While copying the parameter named "{key}", expected a Tensor from checkpoint but '
                          f"received {type(given).__name__}")
        elif given.shape != value.shape:
            errors.append(f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
                          f"the shape in current model is {value.shape}.")
        elif metadata.get("assign_to_params_buffers"):
            _assign(module, name, value, given)
        else:
            value.copy_(given)
    known = set(own) | set(module._modules)
    for key in state_dict:
        if key.startswith(prefix):
            name, _, rest = key[len(prefix):].partition(".")
            if name not in known or (name in own and rest):
                unexpected.append(key)


def _assign(module, name, value, given):
    if isinstance(value, Parameter) and not isinstance(given, Parameter):
        given = Parameter(given, requires_grad=value.requires_grad)
    setattr(module, name, given)
