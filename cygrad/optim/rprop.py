"""Rprop."""

from cygrad._core.optimizers import optimize
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import as_pair, check_not_negative

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """
    Rprop: resilient backpropagation, which uses only the signs of gradients (Riedmiller and Braun, 1993).

    Each element has a step size, which grows while its gradient keeps its sign. If the sign changes, the step size
    shrinks and the element is not updated.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        See `Optimizer`.
    lr : float, default 1e-2
        Initial step size.
    etas : (float, float), default (0.5, 1.2)
        Factors that decrease and increase step sizes.
    step_sizes : (float, float), default (1e-6, 50)
        Minimum and maximum step size.
    maximize : bool, default False
        Maximize the objective.
    foreach, capturable, differentiable : optional
        See `Optimizer`.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False, foreach=None,
                 maximize=False, differentiable=False):
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "differentiable": differentiable})

    def check_options(self, group):
        check_not_negative(self, group, "lr")
        shrink, grow = as_pair(self, group, "etas")
        if not 0 < shrink < 1 < grow:
            raise ValueError(f"{type(self).__name__}: Invalid eta values: {shrink}, {grow} (expected one in (0, 1) "
                             "and one above 1).")

    def update(self, group):
        optimize.rprop(group["params"], self.state, group["lr"], *group["etas"], *group["step_sizes"],
                              group["maximize"])
