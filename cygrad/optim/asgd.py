"""Averaged stochastic gradient descent."""

from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """
    Stochastic gradient descent that also averages the parameters from step `t0` on (Polyak and Juditsky, 1992).

    The average is ``optimizer.state[parameter]['ax']``.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1e-2
    lambd : float, default 1e-4
        Decay term, which also reduces the learning rate.
    alpha : float, default 0.75
        Exponent of the learning rate.
    t0 : float, default 1e6
        The step at which averaging starts.
    weight_decay : float, default 0
    maximize : bool, default False
        Maximize the objective.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None,
                 maximize=False, differentiable=False, capturable=False):
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0,
                                  "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "weight_decay")

    def update(self, group):
        optimize.asgd(group["params"], self.state, group["lr"], group["lambd"], group["alpha"], group["t0"],
                             group["weight_decay"], group["maximize"])
