"""Adafactor (Shazeer and Stern, 2018)."""

import cygrad
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """
    Adafactor: scale gradients by the mean of their squares, factored into rows and columns for matrices.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        See `Optimizer`.
    lr : float, default 1e-2
        Maximum relative step size; step n is at most ``1 / sqrt(n)``.
    beta2_decay : float, default -0.8
        Exponent of the weight of gradient n in the mean, ``n ** beta2_decay``.
    eps : (float or None, float), default (None, 1e-3)
        Lower bounds of the root mean square of gradients (the machine epsilon if None) and of parameters.
    d : float, default 1.0
        Maximum root mean square of an update.
    weight_decay : float, default 0.0
    foreach : bool, optional
        See `Optimizer`.
    maximize : bool, default False
        Maximize the objective.

    Examples
    --------
    >>> w = cygrad.tensor([1.0], requires_grad=True)
    >>> optimizer = cygrad.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *, foreach=None,
                 maximize=False):
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                                  "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def check_options(self, group):
        check_not_negative(self, group, "lr", "weight_decay")
        first, second = group["eps"]
        for wrong, what, value in (
                (group["beta2_decay"] > 0, "beta2_decay should be <= 0", group["beta2_decay"]),
                (not group["d"] >= 1, "Clipping threshold d should be >= 1", group["d"]),
                (first is not None and first < 0, "epsilon1 should be >= 0", first),
                (second is not None and second < 0, "epsilon2 should be >= 0", second)):
            if wrong:
                raise ValueError(f"Adafactor: {what} but is: {value}")

    @cygrad.no_grad()
    def update(self, group):
        """Update the parameters of one group."""
        for param in group["params"]:
            if param.grad is None:
                continue
            if param.is_complex():
                raise RuntimeError("Adafactor: parameters must be real (got a complex one).")
            self._change(param, -param.grad if group["maximize"] else param.grad, self.state[param], float(group["lr"]),
                         group)

    def _change(self, param, grad, state, lr, group):
        if not state:
            state["step"] = cygrad.zeros(())
            if grad.ndim > 1:
                state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
                state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
            else:
                state["variance"] = cygrad.zeros_like(grad)
        state["step"] += 1
        step = float(state["step"])                  # states may hold a number
        weight = step ** group["beta2_decay"]
        least = group["eps"][0]
        if least is None:
            least = cygrad.finfo(param.dtype).eps  # type: ignore[attr-defined]
        rate = max(group["eps"][1], _rms(param)) * min(lr, step ** -0.5)
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        if grad.ndim > 1:
            squares = grad * grad
            state["row_var"].lerp_(squares.mean(-1, keepdim=True), weight)
            state["col_var"].lerp_(squares.mean(-2, keepdim=True), weight)
            mean = state["row_var"] @ state["col_var"]
            mean /= state["row_var"].mean(-2, keepdim=True).clamp(min=least)
        else:
            state["variance"].lerp_(grad * grad, weight)
            mean = state["variance"]
        change = mean.clamp(min=least * least).rsqrt() * grad
        param.add_(change, alpha=-rate / max(1.0, _rms(change) / group["d"]))


def _rms(tensor):
    """Return the root mean square."""
    return tensor.norm(2).item() / tensor.numel() ** 0.5
