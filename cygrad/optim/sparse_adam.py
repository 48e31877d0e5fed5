"""SparseAdam."""

import cygrad
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_betas, check_not_negative

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """
    Lazy Adam for sparse gradients: update only rows with a gradient, and their averages.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    maximize : bool, default False
        Maximize the objective.

    Examples
    --------
    >>> table = cygrad.nn.Embedding(3, 1, sparse=True)
    >>> optimizer = cygrad.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(cygrad.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (before - table.weight.detach()).flatten()
    tensor([0.0000, 0.1000, 0.0000])
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "eps")
        check_betas(self, group)

    @cygrad.no_grad()
    def step(self, closure=None):
        """Update all parameters that have a gradient; see `Optimizer.step`."""
        loss = None
        if closure is not None:
            with cygrad.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    self._change(param, group)
        return loss

    def _change(self, param, group):
        if not isinstance(param.grad, cygrad.sparse.SparseTensor):
            raise RuntimeError("SparseAdam: gradients must be sparse (got a dense one). Use Adam, or a layer with "
                               "sparse=True.")
        state, (beta1, beta2) = self.state[param], group["betas"]
        if not state:
            state.update(step=0, exp_avg=cygrad.zeros_like(param), exp_avg_sq=cygrad.zeros_like(param))
        state["step"] += 1
        grad = param.grad.coalesce()
        rows, values = tuple(grad._indices()), -grad._values() if group["maximize"] else grad._values()
        if not len(values):
            return
        mean = state["exp_avg"][rows].lerp(values, 1 - beta1)
        square = state["exp_avg_sq"][rows].lerp(values * values, 1 - beta2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
        rate = group["lr"] * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        param[rows] = param[rows].addcdiv(mean, square.sqrt() + group["eps"], value=-float(rate))
