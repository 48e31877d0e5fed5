"""Stochastic gradient descent."""

from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["SGD"]


class SGD(Optimizer):
    """
    Stochastic gradient descent, optionally with momentum.

    With gradient g, parameter p and velocity v, one step is ``g += weight_decay * p``,
    ``v = momentum * v + (1 - dampening) * g`` (the first velocity is g itself), and ``p -= lr * v``, or with
    `nesterov` ``p -= lr * (g + momentum * v)``.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    momentum, dampening, weight_decay : float, default 0
    nesterov : bool, default False
        Requires momentum and zero dampening.
    maximize : bool, default False
        Maximize the objective.
    foreach, differentiable, fused : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None, differentiable=False, fused=None):
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening,
                                  "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                                  "foreach": foreach, "differentiable": differentiable, "fused": fused})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(f"SGD: Nesterov momentum requires a momentum and zero dampening (got {group['momentum']} "
                             f"and {group['dampening']}).")

    def update(self, group):
        optimize.sgd(group["params"], self.state, group["lr"], group["momentum"], group["dampening"],
                     group["weight_decay"], group["nesterov"], group["maximize"])
