"""Steps with sparse gradients, which update some rows or elements only."""

from collections.abc import Callable

import cygrad
from cygrad.optim.adagrad import Adagrad
from cygrad.optim.sgd import SGD

__all__ = ["update_all"]


def update_all(optimizer, group):
    """Run the step of an optimizer for a group that may have sparse gradients."""
    sparse = [param for param in group["params"] if _is_sparse(param.grad)]
    if not sparse:
        return optimizer.update(group)
    rule = next((rule for kind, rule in RULES.items() if isinstance(optimizer, kind)), None)
    if rule is None:
        raise RuntimeError(f"{type(optimizer).__name__}: sparse gradients are not supported. Use SparseAdam, SGD or "
                           "Adagrad, or sparse=False.")
    optimizer.update({**group, "params": [param for param in group["params"] if not _is_sparse(param.grad)]})
    if group["weight_decay"]:
        raise RuntimeError(f"{type(optimizer).__name__}: weight_decay is not compatible with sparse gradients (got "
                           f"{group['weight_decay']}).")
    with cygrad.no_grad():
        for param in sparse:
            grad = param.grad.coalesce()
            rule(param, tuple(grad._indices()), -grad._values() if group["maximize"] else grad._values(),
                 optimizer.state[param], group)


def _is_sparse(gradient):
    from cygrad.sparse import SparseTensor
    return isinstance(gradient, SparseTensor)


def _sgd(param, rows, values, state, group):
    """Update rows with a gradient, or all rows with momentum."""
    if not group["momentum"]:
        # Rows are unique, and only these are updated.
        param[rows] = param[rows].add(values, alpha=-float(group["lr"]))
        return
    velocity = state.get("momentum_buffer")
    if velocity is None:
        velocity = state["momentum_buffer"] = cygrad.zeros_like(param).index_put_(rows, values)
    else:
        velocity.mul_(group["momentum"]).index_put_(rows, values * (1 - group["dampening"]), accumulate=True)
    param.add_(velocity, alpha=-float(group["lr"]) * (group["momentum"] if group["nesterov"] else 1))
    if group["nesterov"]:
        param.index_put_(rows, values * -float(group["lr"]), accumulate=True)


def _adagrad(param, rows, values, state, group):
    """Update rows with a gradient and their sums."""
    state["step"] += 1
    rate = float(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
    sums = state["sum"][rows] = state["sum"][rows] + values * values
    param[rows] = param[rows].addcdiv(values, sums.sqrt() + group["eps"], value=-rate)


RULES: dict[type, Callable] = {SGD: _sgd, Adagrad: _adagrad}
