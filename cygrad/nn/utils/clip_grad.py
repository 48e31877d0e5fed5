"""Gradient clipping."""

from types import GeneratorType

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import names_arguments
from cygrad._core.graph.user_warnings import warn_user

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

MARGIN = 1e-6              # keeps the clipped norm below max_norm, and avoids division by zero


@names_arguments
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """
    Return the norm of all tensors, concatenated to one vector.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
    norm_type : float, default 2
        Order of the norm; ``inf`` for the maximum.
    error_if_nonfinite : bool, default False
        Whether to raise if the norm is infinite or nan.
    foreach : bool, optional
        Accepted and ignored.

    Returns
    -------
    Tensor
        0-dimensional.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite`.

    Examples
    --------
    >>> cygrad.nn.utils.get_total_norm([cygrad.tensor([3.0]), cygrad.tensor([[0.0, 4.0]])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not tensors:
        return cygrad.tensor(0.0)
    # The maximum of an empty tensor is not defined.
    norms = [cygrad.norm(tensor, order) if tensor.numel() else cygrad.zeros((), dtype=tensor.abs().dtype)
             for tensor in tensors]
    total = cygrad.norm(cygrad.stack(norms), order)
    if error_if_nonfinite and not cygrad.isfinite(total):
        raise RuntimeError(f"get_total_norm: The total norm of order {order} is non-finite, so gradients cannot be "
                           f"clipped (got {total.item()}). Set `error_if_nonfinite=False` to scale them anyway.")
    return total


@names_arguments
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """
    Scale gradients so that their total norm is at most `max_norm`, given the norm.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without gradient are ignored.
    max_norm : float
        Maximum norm.
    total_norm : Tensor
        The norm, as returned by `get_total_norm`.
    foreach : bool, optional
        Accepted and ignored.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (3 * x[0] + 4 * x[1]).backward()
    >>> nn.utils.clip_grads_with_norm_([x], 1.0, nn.utils.get_total_norm([x.grad]))
    >>> x.grad.norm().round(decimals=3)
    tensor(1.)
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    with cygrad.no_grad():
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if gradients:
            scale = cygrad.clamp(float(max_norm) / (total_norm + MARGIN), max=1.0)
            for gradient in gradients:
                gradient.mul_(scale)


@names_arguments
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """
    Scale all gradients by one factor so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
    max_norm : float
        Maximum norm.
    norm_type, error_if_nonfinite, foreach : optional
        See `get_total_norm`.

    Returns
    -------
    Tensor
        The norm before clipping.

    Examples
    --------
    >>> w = cygrad.zeros(2, requires_grad=True)
    >>> w.grad = cygrad.tensor([3.0, 4.0])
    >>> cygrad.nn.utils.clip_grad_norm_(w, 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    generated = isinstance(parameters, GeneratorType)
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if generated and not parameters:
        warn_user("clip_grad_norm_: the generator of parameters is empty; no gradient is clipped.")
    with cygrad.no_grad():
        total = get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None], norm_type,
                               error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@names_arguments
def clip_grad_value_(parameters, clip_value, foreach=None):
    """
    Clamp all elements of the gradients to ``[-clip_value, clip_value]``.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        With real gradients.
    clip_value : float
        Bound of the absolute values.
    foreach : bool, optional
        Accepted and ignored.

    Examples
    --------
    >>> x = cygrad.ones(2, requires_grad=True)
    >>> (10 * x).sum().backward()
    >>> nn.utils.clip_grad_value_([x], 1.0)
    >>> x.grad
    tensor([1., 1.])
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    bound = float(clip_value)
    with cygrad.no_grad():
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated name of `clip_grad_norm_`.

    Examples
    --------
    >>> x = cygrad.nn.Parameter(cygrad.zeros(2))
    >>> x.grad = cygrad.tensor([3.0, 4.0])
    >>> cygrad.nn.utils.clip_grad_norm_(x, 1.0)
    tensor(5.)
    """
    warn_user("clip_grad_norm: deprecated. Use clip_grad_norm_.", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)
