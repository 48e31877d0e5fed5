"""Modules as functions of their parameters."""

from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.table.operator import operators
from cygrad.func.batched import Batched
from cygrad.nn.normalization import _BatchNorm
from cygrad.nn.utils.stateless import functional_call

__all__ = ["debug_unwrap", "functional_call", "functionalize", "replace_all_batch_norm_modules_", "stack_module_state"]


@names_arguments
def stack_module_state(models):
    """
    Stack the parameters and buffers of several modules, for `vmap` over the modules.

    Parameters
    ----------
    models : list of Module
        All of the same class, and all in training mode or all in evaluation mode.

    Returns
    -------
    parameters, buffers : dict of str to Tensor
        Tensors by name, with the modules in a new first dimension. Parameters are leaves that require grad where those
        of the modules do.

    Raises
    ------
    RuntimeError
        If there are no modules, or they differ in class, mode or `requires_grad`.

    Examples
    --------
    >>> models = [nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = cygrad.func.stack_module_state(models)
    >>> parameters["weight"].shape == (3, 1, 2)
    True
    >>> def call(parameters, x):
    ...     return cygrad.func.functional_call(models[0], parameters, (x,))
    >>> cygrad.vmap(call, in_dims=(0, None))(parameters, cygrad.ones(4, 2)).shape == (3, 4, 1)
    True
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: expected at least one module (got an empty sequence).")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: modules must all be in the same mode (got training and evaluation "
                           "mode). Call train() or eval() on all of them.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: modules must be of the same class (got "
                           f"{sorted({type(model).__name__ for model in models})}).")
    parameters = {name: _stacked(models, name, [dict(model.named_parameters())[name] for model in models])
                  for name, _ in models[0].named_parameters()}
    buffers = {name: _stacked(models, name, [dict(model.named_buffers())[name] for model in models])
               for name, _ in models[0].named_buffers()}
    return parameters, buffers


def _stacked(models, name, tensors):
    needs = {tensor.requires_grad for tensor in tensors}
    if len(needs) > 1:
        raise RuntimeError(f"stack_module_state: requires_grad of {name!r} must be the same in all modules (got both).")
    stacked = operators.stack(list(tensors), 0).detach()
    return stacked.requires_grad_() if needs.pop() else stacked


def functionalize(func, *, remove="mutations"):
    """
    Return the function itself: its in-place operations need no replacement.

    Parameters
    ----------
    func : callable
    remove : {"mutations", "mutations_and_views"}, default "mutations"
        Ignored.

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If `remove` is unknown.

    Examples
    --------
    >>> cygrad.func.functionalize(lambda x: x.clone().add_(1))(cygrad.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: remove must be 'mutations' or 'mutations_and_views' (got {remove!r}).")
    return func


@names_arguments
def replace_all_batch_norm_modules_(root):
    """
    Make all batch normalizations of a module use batch statistics instead of running statistics, for `vmap`.

    Parameters
    ----------
    root : Module
        Changed.

    Returns
    -------
    Module
        Itself.

    Examples
    --------
    >>> model = cygrad.func.replace_all_batch_norm_modules_(cygrad.nn.BatchNorm1d(2))
    >>> model.running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor, *, recurse=True):
    """
    Return the batched tensor of a tensor under `vmap`, for debugging.

    Parameters
    ----------
    tensor : Tensor
    recurse : bool, default True
        Whether to return the tensor with the batches of all levels.

    Returns
    -------
    Tensor
        The tensor itself if it is not batched.

    Examples
    --------
    >>> seen = []
    >>> _ = cygrad.vmap(lambda x: seen.append(cygrad.func.debug_unwrap(x)) or x)(cygrad.ones(3))
    >>> seen
    [tensor([1., 1., 1.])]
    """
    while isinstance(tensor, Batched):
        tensor = tensor._value
        if not recurse:
            break
    return tensor
