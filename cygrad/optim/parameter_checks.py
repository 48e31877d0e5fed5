"""Checks of the parameters and options of a group."""

from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_number, described
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["check_betas", "check_execution", "check_not_negative", "names_and_parameters", "refuse_capture",
           "sparse_tensors"]

sparse_tensors = []            # not empty after a sparse tensor was created; see cygrad.sparse.tensor


def names_and_parameters(params, operation, differentiable=False):
    """Return the names (or None) and the parameters of a group."""
    if isinstance(params, Tensor):
        params = [params]
    elif isinstance(params, set):
        raise TypeError(f"{operation}: parameters must be ordered (got a set, whose order differs between runs). Use "
                        "a list.")
    params = list(params)
    named = [isinstance(param, tuple) for param in params]
    names = [param[0] for param in params] if named and all(named) else None
    if any(named) and not names:
        raise ValueError(f"{operation}: all optimizer params should be with/without names. Some param names are "
                         "missing.")
    if names:
        params = [param[1] for param in params]
    for param in params:
        if not isinstance(param, Tensor):
            raise TypeError(f"{operation}: optimizer can only optimize Tensors, but one of the params is "
                            f"{type(param).__name__}. Pass model.parameters().")
        if not param.is_leaf and not param.retains_grad and not differentiable:
            raise ValueError(f"{operation}: can't optimize a non-leaf Tensor (got one created by "
                             f"{param.grad_fn.name()}).")
    if len(set(params)) != len(params):
        warn_user(f"{operation}: optimizer contains a parameter group with duplicate parameters, which are updated "
                  "once for each occurrence.")
    return names, params


def check_execution(optimizer, group):
    """Check the options that select the execution: foreach, fused, differentiable."""
    name = type(optimizer).__name__
    if group.get("differentiable") and group.get("fused"):
        raise RuntimeError(f"{name}: `fused` does not support `differentiable` (got True for both). Leave fused None.")
    if group.get("foreach") and group.get("fused"):
        raise RuntimeError(f"{name}: `fused` and `foreach` cannot be `True` together. Leave both None: steps are "
                           "fused.")


def refuse_capture(optimizer, args, options):
    """Raise before a step with capturable=True, as PyTorch on a CPU."""
    if any(group.get("capturable") for group in optimizer.param_groups):
        raise RuntimeError(f"{type(optimizer).__name__}: capturable=True is not supported on CPU tensors (got "
                           "parameters on the CPU). Set it to False.")


def check_not_negative(optimizer, group, *names):
    """Check that options are not negative or nan."""
    for name in names:
        value = group[name]
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"{type(optimizer).__name__}: Tensor {name} must be 1-element (got shape "
                             f"{tuple(value.shape)}).")
        if not as_number(type(optimizer).__name__, name, value) >= 0:
            what = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"{type(optimizer).__name__}: Invalid {what}: {value} (expected at least 0).")


def as_pair(optimizer, group, name):
    """Return the option as a pair of numbers."""
    pair, operation = group[name], type(optimizer).__name__
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"{operation}: argument '{name}' must be a pair of numbers (got {described(pair)}).")
    return [as_number(operation, name, value) for value in pair]


def check_betas(optimizer, group):
    """Check that decay rates are in [0, 1)."""
    for number, beta in enumerate(as_pair(optimizer, group, "betas")):
        if not 0 <= beta < 1:
            raise ValueError(f"{type(optimizer).__name__}: Invalid beta parameter at index {number}: {beta} (expected "
                             "in [0, 1)).")
