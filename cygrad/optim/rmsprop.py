"""RMSprop."""

from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """
    RMSprop: divide gradients by the root of their running mean square (Hinton, 2012).

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1e-2
    alpha : float, default 0.99
        Decay rates of the running averages.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay, momentum : float, default 0
    centered : bool, default False
        Divide by an estimate of the standard deviation instead.
    maximize : bool, default False
        Maximize the objective.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False, foreach=None, maximize=False, differentiable=False):
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
                                  "momentum": momentum, "centered": centered, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "differentiable": differentiable})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "eps", "weight_decay", "momentum", "alpha")

    def update(self, group):
        optimize.rmsprop(group["params"], self.state, group["lr"], group["alpha"], group["eps"],
                                group["weight_decay"], group["momentum"], group["centered"], group["maximize"])
