"""Muon (Jordan et al., 2024)."""

import cygrad
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["Muon"]

FACTORS = {
    None: lambda rows, columns: max(1, rows / columns) ** 0.5,
    "original": lambda rows, columns: max(1, rows / columns) ** 0.5,
    "match_rms_adamw": lambda rows, columns: 0.2 * max(rows, columns) ** 0.5,
}


class Muon(Optimizer):
    """
    Muon: orthogonalize the momentum of matrices by Newton-Schulz iterations.

    Computes in the dtype of the parameters, unlike PyTorch, which uses bfloat16.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        Matrices only; see `Optimizer`.
    lr : float, default 1e-3
    weight_decay : float, default 0.1
    momentum : float, default 0.95
    nesterov : bool, default True
    ns_coefficients : (float, float, float)
        Coefficients of the Newton-Schulz polynomial.
    eps : float, default 1e-7
        Lower bound of the norm.
    ns_steps : int, default 5
        Number of Newton-Schulz iterations.
    adjust_lr_fn : {None, "original", "match_rms_adamw"}
        How the learning rate depends on the shape of the matrix.

    Examples
    --------
    >>> w = cygrad.eye(2, requires_grad=True)
    >>> optimizer = cygrad.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool((w.diagonal() < 1).all())
    True
    """

    def __init__(self, params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                 ns_coefficients=(3.4445, -4.7750, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
                                  "adjust_lr_fn": adjust_lr_fn})

    def check_options(self, group):
        """Check the options, and that parameters are matrices."""
        check_not_negative(self, group, "lr", "weight_decay", "momentum")
        if group["adjust_lr_fn"] not in FACTORS:
            raise ValueError(f"Muon: unknown adjust_lr_fn (got {group['adjust_lr_fn']!r}, expected one of "
                             f"{', '.join(map(str, FACTORS))}).")
        for param in group.get("params", ()):
            if param.ndim != 2:
                raise ValueError(f"Muon: parameters must be matrices (got shape {tuple(param.shape)}). Use another "
                                 "optimizer for the others.")

    @cygrad.no_grad()
    def update(self, group):
        """Update the parameters of one group."""
        lr, momentum = float(group["lr"]), group["momentum"]
        for param in group["params"]:
            if param.grad is None:
                continue
            state = self.state[param]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = cygrad.zeros_like(param.grad)
            velocity = state["momentum_buffer"].lerp_(param.grad, 1 - momentum)
            change = param.grad.lerp(velocity, momentum) if group["nesterov"] else velocity
            change = _orthogonal(change, group["ns_coefficients"], group["ns_steps"], group["eps"])
            param.mul_(1 - lr * group["weight_decay"])
            param.add_(change, alpha=-lr * FACTORS[group["adjust_lr_fn"]](*param.shape))


def _orthogonal(matrix, coefficients, steps, eps):
    """Orthogonalize a matrix approximately by Newton-Schulz iterations."""
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.t() if tall else matrix
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        squares = x @ x.t()
        x = a * x + (b * squares + c * (squares @ squares)) @ x
    return x.t() if tall else x
