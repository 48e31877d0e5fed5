"""Adam, and Adam with decoupled weight decay."""

from cygrad._core import optimise
from cygrad.optim.optimizer import Optimizer, check_not_negative

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """
    Steps scaled by running averages of the gradient and of its square (Kingma and Ba, 2015).

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
        How much of the averages stays in each step.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
    amsgrad : bool, default False
        Divide by the largest average so far (Reddi et al., 2018).
    maximize : bool, default False
        Go uphill.
    decoupled_weight_decay : bool, default False
        Weight decay shrinks the parameter instead of entering the gradient, as in `AdamW`.

    Examples
    --------
    >>> import cygrad
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *,
                 maximize=False, decoupled_weight_decay=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "amsgrad": amsgrad, "maximize": maximize,
                                  "decoupled_weight_decay": decoupled_weight_decay})

    def check_options(self, group):
        """Raise ValueError for options that make no sense."""
        check_not_negative(self, group, "lr", "eps", "weight_decay")
        for number, beta in enumerate(group["betas"]):
            if not 0 <= beta < 1:
                raise ValueError(f"{type(self).__name__}: invalid beta parameter at index {number} "
                                 f"(got {beta}, expected in [0, 1)).")

    def update(self, group):
        """Change the parameters of one group."""
        beta1, beta2 = group["betas"]
        optimise.adam(group["params"], self.state, group["lr"], beta1, beta2, group["eps"], group["weight_decay"],
                      group["amsgrad"], group["maximize"], group["decoupled_weight_decay"])


class AdamW(Adam):
    """
    Adam whose weight decay shrinks the parameters themselves (Loshchilov and Hutter, 2019).

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
        As for `Adam`.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
                         decoupled_weight_decay=True)
