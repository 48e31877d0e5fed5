"""functional_call: calling a module with given parameters."""

from contextlib import ExitStack, contextmanager

from cygrad._core.graph.argument_errors import names_arguments

__all__ = ["functional_call"]


@names_arguments
def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """
    Call a module with given tensors in place of its parameters and buffers; differentiable in them.

    The tensors of the module are replaced during the call, so it is not thread-safe.

    Parameters
    ----------
    module : Module
    parameters_and_buffers : dict, or tuple of dicts
        Path to tensor.
    args : any or tuple
        Positional arguments.
    kwargs : dict, optional
    tie_weights : bool, default True
        Whether replacing a tied tensor at one path replaces it at all its paths.
    strict : bool, default False
        Whether missing and unexpected paths are errors.

    Returns
    -------
    The result of the module.

    Raises
    ------
    RuntimeError
        If `strict` and paths are missing or unexpected.
    ValueError
        If a tensor is given two values.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> w = cygrad.tensor([[2.0, 3.0]], requires_grad=True)
    >>> out = nn.utils.stateless.functional_call(model, {"weight": w, "bias": cygrad.zeros(1)}, cygrad.ones(2))
    >>> out
    tensor([5.], grad_fn=<...>)
    """
    if isinstance(parameters_and_buffers, (tuple, list)):
        given = {}
        for part in parameters_and_buffers:
            repeated = given.keys() & part.keys()
            if repeated:
                raise ValueError(f"functional_call: {sorted(repeated)} appear in multiple dictionaries. "
                                 "Give each tensor once.")
            given.update(part)
    else:
        given = dict(parameters_and_buffers)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, _all_paths(module, given, tie_weights, strict)):
        return module(*args, **(kwargs or {}))


def _all_paths(module, given, tie_weights, strict):
    """Return the values for all paths, including those of tied tensors."""
    own = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    unexpected, missing = given.keys() - own.keys(), own.keys() - given.keys()
    tied = {}
    if tie_weights:
        for path, tensor in own.items():
            tied.setdefault(tensor, []).append(path)
    values = {}
    for path, value in given.items():
        for other in tied.get(own.get(path), [path]):
            if other in given and given[other] is not value:
                raise ValueError(f"functional_call: {path!r} and {other!r} are one tensor, but got two values. "
                                 "Pass it once, or set tie_weights=False.")
            values[other] = value
            missing.discard(other)
    if strict and (missing or unexpected):
        raise RuntimeError(f"functional_call: Error(s) in replacing tensors: missing key(s) {sorted(missing)}, "
                           f"unexpected key(s) {sorted(unexpected)}.")
    for path in unexpected:
        if not hasattr(module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]):
            raise AttributeError(f"functional_call: {type(module).__name__} has no attribute {path!r}.")
    return values


@contextmanager
def _replaced(module, values):
    """Replace the tensors within the context."""
    with ExitStack() as stack:
        for path, value in values.items():
            prefix, _, name = path.rpartition(".")
            owner = module.get_submodule(prefix)
            part = next((part for part in (owner._parameters, owner._buffers, vars(owner)) if name in part), None)
            if part is not None:
                stack.callback(part.__setitem__, name, part[name])
                part[name] = value
            else:                      # a parametrized tensor
                raise RuntimeError(f"functional_call: {path!r} is computed from other tensors (got a value for it). "
                                   "Pass the original ones.")
        yield
