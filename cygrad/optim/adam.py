"""Adam and AdamW."""

from cygrad import Tensor
from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_betas, check_not_negative

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """
    Adam: scale updates by running averages of the gradient and of its square (Kingma and Ba, 2015).

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
        Decay rates of the running averages.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
    amsgrad : bool, default False
        Divide by the maximum of the averages (Reddi et al., 2018).
    foreach, capturable, differentiable, fused : optional
        See `Optimizer`.
    maximize : bool, default False
        Maximize the objective.
    decoupled_weight_decay : bool, default False
        Weight decay shrinks the parameter instead of entering the gradient, as in `AdamW`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *,
                 foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
                 decoupled_weight_decay=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                                  "capturable": capturable, "differentiable": differentiable, "fused": fused,
                                  "decoupled_weight_decay": decoupled_weight_decay})

    def check_options(self, group):
        if isinstance(group["lr"], Tensor) and group["foreach"] and not group["capturable"]:
            raise ValueError(f"{type(self).__name__}: lr as a Tensor is not supported for capturable=False and "
                             "foreach=True. Pass a number, or leave foreach out.")
        check_not_negative(self, group, "lr", "eps", "weight_decay")
        check_betas(self, group)

    def update(self, group):
        beta1, beta2 = group["betas"]
        optimize.adam(group["params"], self.state, group["lr"], beta1, beta2, group["eps"], group["weight_decay"],
                      group["amsgrad"], group["maximize"], group["decoupled_weight_decay"])


class AdamW(Adam):
    """
    AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    weight_decay : float, default 1e-2
    amsgrad : bool, default False
    maximize : bool, default False
    foreach, capturable, differentiable, fused : optional
        As for `Adam`.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> optimizer = cygrad.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
    >>> model.weight.grad is None
    True
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None, capturable=False, differentiable=False, fused=None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)
