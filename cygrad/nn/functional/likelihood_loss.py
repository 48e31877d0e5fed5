"""Minus the logarithm of a probability density, for models that predict its parameters."""

import math

import cygrad
from cygrad.composite.out_forms import as_tensor_argument
from cygrad.nn.functional.loss import reduced, resolve_reduction

__all__ = ["gaussian_nll_loss", "poisson_nll_loss"]


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                     reduction="mean"):
    """
    Minus the log-probability of counts under Poisson distributions, without the term that knows the target alone.

    Parameters
    ----------
    input : Tensor
        Logarithms of the expected counts; the counts themselves unless `log_input`.
    target : Tensor
        Counts.
    log_input : bool, default True
    full : bool, default False
        Whether that term is added, by Stirling's approximation, for counts above 1.
    size_average, reduce : bool, optional
        Old names for `reduction`.
    eps : float, default 1e-8
        Keeps the logarithm of expected counts finite.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor
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


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """
    Minus the log-density of values under normal distributions, without its constant.

    Parameters
    ----------
    input : Tensor
        Expected values.
    target : Tensor
        Values.
    var : Tensor or float
        Variances: of the shape of the input, or with a last size of 1, or without that dimension.
    full : bool, default False
        Whether the constant is added.
    eps : float, default 1e-6
        What variances are at least taken to be; for the derivative they count as they are.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        For negative variances, or those of another shape.
    """
    as_tensor_argument("gaussian_nll_loss", "input", input)
    as_tensor_argument("gaussian_nll_loss", "target", target)
    if not isinstance(var, cygrad.Tensor):
        if var < 0:
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
    # Variances below eps are replaced in the value alone: their derivative is not cut off.
    var = var + (cygrad.clamp_min(var, eps) - var).detach()
    losses = 0.5 * (cygrad.log(var) + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, "gaussian_nll_loss")
