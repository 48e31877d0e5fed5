"""Adagrad."""

import cygrad
from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """
    Adagrad: divide gradients by the root of the sum of all their squares (Duchi, Hazan and Singer, 2011).

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1e-2
    lr_decay, weight_decay : float, default 0
    initial_accumulator_value : float, default 0
        Initial value of the sums.
    eps : float, default 1e-10
        Added to the denominator.
    maximize : bool, default False
        Maximize the objective.
    foreach, differentiable, fused : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *, maximize=False, differentiable=False, fused=None):
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
                                  "foreach": foreach, "differentiable": differentiable, "fused": fused})

        for group in self.param_groups:
            for param in group["params"]:
                start = group["initial_accumulator_value"]
                self.state[param] = {"step": cygrad.zeros(()), "sum": cygrad.full_like(
                    param, complex(start, start) if param.is_complex() else start, requires_grad=False)}

    def share_memory(self):
        """Do nothing, because threads share all memory."""

    def check_options(self, group):
        check_not_negative(self, group, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def update(self, group):
        optimize.adagrad(group["params"], self.state, group["lr"], group["lr_decay"], group["weight_decay"],
                                group["initial_accumulator_value"], group["eps"], group["maximize"])
