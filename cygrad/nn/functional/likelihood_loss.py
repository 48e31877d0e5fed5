"""Negative log-likelihood losses."""

import math

import cygrad
from cygrad._core.graph.argument_errors import as_number
from cygrad._core.table.docstrings import documented
from cygrad.composite.mixed_precision import rounded_once
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.layers import linear
from cygrad.nn.functional.loss import cross_entropy, reduced, resolve_reduction

__all__ = ["gaussian_nll_loss", "linear_cross_entropy", "poisson_nll_loss"]


@rounded_once
@documented()
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """
    Compute the negative log-likelihood of counts under Poisson distributions, without the term ``log(target!)``.

    Parameters
    ----------
    input : Tensor
        Logarithms of the expected counts, or the expected counts if not `log_input`.
    target : Tensor
        Counts.
    log_input : bool, default True
    full : bool, default False
        Whether that term is added, by Stirling's approximation, for targets above 1.
    eps : float, default 1e-8
        Keeps the logarithm of expected counts finite.

    Examples
    --------
    >>> F.poisson_nll_loss(cygrad.tensor([0.0, 1.0]), cygrad.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    reduction = resolve_reduction(size_average, reduce, reduction, "poisson_nll_loss")
    as_tensor_argument("poisson_nll_loss", "input", input)
    as_tensor_argument("poisson_nll_loss", "target", target)
    losses = cygrad.exp(input) - target * input if log_input else input - target * cygrad.log(input + eps)
    if full:
        counts = cygrad.where(target > 1, target, 1)
        stirling = counts * cygrad.log(counts) - counts + 0.5 * cygrad.log(2 * math.pi * counts)
        losses = losses + cygrad.where(target > 1, stirling, 0)
    return reduced(losses, reduction, "poisson_nll_loss")


@rounded_once
@documented()
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """
    Compute the negative log-likelihood under normal distributions, without the constant ``log(2 * pi) / 2``.

    Parameters
    ----------
    input : Tensor
        Expected values.
    target : Tensor
        Values.
    var : Tensor or float
        Variances, of the shape of the input, or with last size 1, or without the last dimension.
    full : bool, default False
        Whether the constant is added.
    eps : float, default 1e-6
        Lower bound of the variances; ignored by the derivative.

    Raises
    ------
    ValueError
        If a variance is negative, or the shape of `var` is wrong.

    Examples
    --------
    >>> F.gaussian_nll_loss(cygrad.tensor([1.0]), cygrad.tensor([2.0]), cygrad.tensor([1.0]))
    tensor(0.5000)
    """
    as_tensor_argument("gaussian_nll_loss", "input", input)
    as_tensor_argument("gaussian_nll_loss", "target", target)
    if not isinstance(var, cygrad.Tensor):
        if as_number("gaussian_nll_loss", "var", var) < 0:
            raise ValueError(f"gaussian_nll_loss: var has negative entry/entries (got {var}).")
        var = cygrad.full_like(input, float(var))
    elif (var < 0).any().item():
        raise ValueError("gaussian_nll_loss: var has negative entry/entries.")
    if var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or [other for size, other in zip(input.shape, var.shape, strict=True)
                                        if size != other] != [1]:
            raise ValueError(f"gaussian_nll_loss: var is of incorrect size (got {tuple(var.shape)}, expected "
                             f"{tuple(input.shape)}, or 1 for one dimension).")
    # Clamp the value but not the derivative of variances below eps.
    var = var + cygrad.where(var < eps, eps - var, 0).detach()
    losses = 0.5 * (cygrad.log(var) + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, "gaussian_nll_loss")


@documented()
def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
                         ignore_index=None, label_smoothing=0.0, options=None):
    """
    Compute `cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Parameters
    ----------
    input : Tensor of shape (N, features) or (features,)
    linear_weight : Tensor of shape (C, ..., features)
        Maps the input to logits of shape (N, C, ...).
    target : Tensor
        As for `cross_entropy`.
    linear_bias : Tensor of shape (C,) or (C, ...), optional
        Added to the logits.
    weight, reduction, label_smoothing : optional
        As for `cross_entropy`.
    ignore_index : int, optional
        As for `cross_entropy`, for targets that are classes.
    options : None
        Not supported.

    Examples
    --------
    >>> x, w = cygrad.tensor([[1.0, 0.0]]), cygrad.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> cygrad.nn.functional.linear_cross_entropy(x, w, cygrad.tensor([0]))
    tensor(0.1269)
    """
    if options is not None:
        raise NotImplementedError("linear_cross_entropy: options are not supported, because there is one "
                                  f"implementation (got {options!r}). Omit it.")
    if linear_weight.ndim > 2 and input.ndim != 2:
        raise RuntimeError(f"linear_cross_entropy: a K-dimensional loss, which linear_weight of shape "
                           f"{tuple(linear_weight.shape)} defines, requires batched input (got shape "
                           f"{tuple(input.shape)}, expected (N, {linear_weight.shape[-1]})).")
    scores = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1])).reshape(
        *input.shape[:-1], *linear_weight.shape[:-1])
    if linear_bias is not None:
        scores = scores + linear_bias.reshape(*linear_bias.shape, *(1,) * (linear_weight.ndim - 1 - linear_bias.ndim))
    return cross_entropy(scores, target, weight, reduction=reduction, label_smoothing=label_smoothing,
                         ignore_index=-100 if ignore_index is None else ignore_index)
