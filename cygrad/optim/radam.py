"""RAdam."""

from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_betas, check_not_negative

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """
    RAdam: Adam with rectified variance of the adaptive learning rate (Liu et al., 2020). The first steps follow the
    mean gradient.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running averages.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
    decoupled_weight_decay : bool, default False
        Decouple weight decay from the gradient, as in `AdamW`.
    maximize : bool, default False
        Maximize the objective.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False,
                 *, foreach=None, maximize=False, capturable=False, differentiable=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "differentiable": differentiable})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "eps", "weight_decay")
        check_betas(self, group)

    def update(self, group):
        beta1, beta2 = group["betas"]
        optimize.radam(group["params"], self.state, group["lr"], beta1, beta2, group["eps"], group["weight_decay"],
                       group["decoupled_weight_decay"], group["maximize"])
