"""Adadelta."""

from cygrad._core.graph.argument_errors import as_number
from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """
    Adadelta: scale gradients by running mean squares of gradients and updates (Zeiler, 2012).

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1.0
        Factor of each update.
    rho : float, default 0.9
        Decay rate of the mean squares.
    eps : float, default 1e-6
        Added to the mean squares.
    weight_decay : float, default 0
    maximize : bool, default False
        Maximize the objective.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adadelta([w], lr=50.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8419], requires_grad=True)
    """

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False,
                 maximize=False, differentiable=False):
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                                  "maximize": maximize, "foreach": foreach, "capturable": capturable,
                                  "differentiable": differentiable})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "eps", "weight_decay")
        if not 0 <= as_number(type(self).__name__, "rho", group["rho"]) <= 1:
            raise ValueError(f"{type(self).__name__}: Invalid rho value: {group['rho']} (expected in [0, 1]).")

    def update(self, group):
        optimize.adadelta(group["params"], self.state, group["lr"], group["rho"], group["eps"],
                                 group["weight_decay"], group["maximize"])
