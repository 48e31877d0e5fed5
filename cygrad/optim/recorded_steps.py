"""
Differentiable steps: update rules as tensor operations, for ``differentiable=True``.

State is never modified in place, because operations of earlier steps have saved it. Parameters are, because they must
stay the same objects, so they must not be leaves that require grad.
"""

import math

import cygrad
from cygrad import Tensor

__all__ = ["recorded_update"]


def _zeros(parameter):
    return cygrad.zeros_like(parameter, requires_grad=False)


def _count(state):
    """Increment and return the step."""
    state["step"] = cygrad.tensor(float(state.get("step", 0)) + 1)
    return float(state["step"])


def _decayed(group, parameter, gradient):
    """Return the gradient with weight decay, or apply decoupled weight decay to the parameter."""
    decay = group.get("weight_decay", 0)
    if decay == 0:
        return gradient
    if group.get("decoupled_weight_decay"):
        parameter.mul_(1 - group["lr"] * decay)
        return gradient
    return gradient + decay * parameter


def _mean(state, name, parameter, value, keep):
    """Update and return a running mean."""
    state[name] = state.get(name, _zeros(parameter)) * keep + value * (1 - keep)
    return state[name]


def _sgd(group, parameter, gradient, state):
    gradient = _decayed(group, parameter, gradient)
    momentum = group["momentum"]
    if momentum:
        former = state.get("momentum_buffer")
        velocity = gradient if former is None else former * momentum + gradient * (1 - group["dampening"])
        state["momentum_buffer"] = velocity
        gradient = gradient + momentum * velocity if group["nesterov"] else velocity
    parameter.sub_(group["lr"] * gradient)


def _adam(group, parameter, gradient, state):
    step, (beta1, beta2) = _count(state), group["betas"]
    gradient = _decayed(group, parameter, gradient)
    mean = _mean(state, "exp_avg", parameter, gradient, beta1)
    square = _mean(state, "exp_avg_sq", parameter, gradient * gradient, beta2)
    if group["amsgrad"]:
        square = state["max_exp_avg_sq"] = cygrad.maximum(state.get("max_exp_avg_sq", _zeros(parameter)), square)
    scale = square.sqrt() / math.sqrt(1 - beta2 ** step) + group["eps"]
    parameter.sub_(group["lr"] / (1 - beta1 ** step) * mean / scale)


def _adagrad(group, parameter, gradient, state):
    step = _count(state)
    gradient = _decayed(group, parameter, gradient)
    state["sum"] = state.get("sum", _zeros(parameter) + group["initial_accumulator_value"]) + gradient * gradient
    rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
    parameter.sub_(rate * gradient / (state["sum"].sqrt() + group["eps"]))


def _rmsprop(group, parameter, gradient, state):
    _count(state)
    gradient = _decayed(group, parameter, gradient)
    square = _mean(state, "square_avg", parameter, gradient * gradient, group["alpha"])
    if group["centered"]:
        mean = _mean(state, "grad_avg", parameter, gradient, group["alpha"])
        square = square - mean * mean
    change = gradient / (square.sqrt() + group["eps"])
    if group["momentum"] > 0:
        change = state.get("momentum_buffer", _zeros(parameter)) * group["momentum"] + change
        state["momentum_buffer"] = change
    parameter.sub_(group["lr"] * change)


def _rprop(group, parameter, gradient, state):
    _count(state)
    (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
    agreed = (gradient * state.get("prev", _zeros(parameter))).sign()
    factor = 1 + (agreed > 0).to(agreed.dtype) * (grow - 1) + (agreed < 0).to(agreed.dtype) * (shrink - 1)
    state["step_size"] = (state.get("step_size", _zeros(parameter) + group["lr"]) * factor).clamp(least, most)
    gradient = gradient.masked_fill(agreed < 0, 0)
    state["prev"] = gradient
    parameter.sub_(gradient.sign() * state["step_size"])


def _asgd(group, parameter, gradient, state):
    step = _count(state)
    gradient = _decayed(group, parameter, gradient)
    rate, share = state.get("eta", cygrad.as_tensor(group["lr"])), state.get("mu", 1.0)
    rate = rate if isinstance(group["lr"], Tensor) else float(rate)
    parameter.mul_(1 - group["lambd"] * rate).sub_(rate * gradient)
    former = state.get("ax", _zeros(parameter))
    state["ax"] = parameter.clone() if float(share) == 1 else former + (parameter - former) * float(share)
    rate = group["lr"] / (1 + group["lambd"] * group["lr"] * step) ** group["alpha"]
    state["eta"] = cygrad.as_tensor(rate)
    state["mu"] = cygrad.tensor(1 / max(1.0, step - group["t0"]))


def _adadelta(group, parameter, gradient, state):
    _count(state)
    gradient, keep = _decayed(group, parameter, gradient), group["rho"]
    square = _mean(state, "square_avg", parameter, gradient * gradient, keep)
    former = state.get("acc_delta", _zeros(parameter))
    change = (former + group["eps"]).sqrt() / (square + group["eps"]).sqrt() * gradient
    _mean(state, "acc_delta", parameter, change * change, keep)
    parameter.sub_(group["lr"] * change)


def _adamax(group, parameter, gradient, state):
    step, (beta1, beta2) = _count(state), group["betas"]
    gradient = _decayed(group, parameter, gradient)
    mean = _mean(state, "exp_avg", parameter, gradient, beta1)
    state["exp_inf"] = cygrad.maximum(state.get("exp_inf", _zeros(parameter)) * beta2, gradient.abs() + group["eps"])
    parameter.sub_(group["lr"] / (1 - beta1 ** step) * mean / state["exp_inf"])


def _nadam(group, parameter, gradient, state):
    step, (beta1, beta2) = _count(state), group["betas"]
    gradient = _decayed(group, parameter, gradient)
    momentum, following = (beta1 * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (step, step + 1))
    product = state["mu_product"] = cygrad.as_tensor(state.get("mu_product", 1.0)) * momentum
    mean = _mean(state, "exp_avg", parameter, gradient, beta1)
    square = _mean(state, "exp_avg_sq", parameter, gradient * gradient, beta2)
    scale = (square / (1 - beta2 ** step)).sqrt() + group["eps"]
    parameter.sub_(group["lr"] * (1 - momentum) / (1 - product) * gradient / scale)
    parameter.sub_(group["lr"] * following / (1 - product * following) * mean / scale)


def _radam(group, parameter, gradient, state):
    step, (beta1, beta2) = _count(state), group["betas"]
    gradient = _decayed(group, parameter, gradient)
    mean = _mean(state, "exp_avg", parameter, gradient, beta1) / (1 - beta1 ** step)
    square = _mean(state, "exp_avg_sq", parameter, gradient * gradient, beta2)
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)
    if length > 5:
        rectified = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        mean = mean * rectified * math.sqrt(1 - beta2 ** step) / (square.sqrt() + group["eps"])
    parameter.sub_(group["lr"] * mean)


_RULES = {"SGD": _sgd, "Adam": _adam, "AdamW": _adam, "Adagrad": _adagrad, "RMSprop": _rmsprop, "Rprop": _rprop,
          "ASGD": _asgd, "Adadelta": _adadelta, "Adamax": _adamax, "NAdam": _nadam, "RAdam": _radam}


def recorded_update(optimizer, group):
    """
    Update the parameters of one group by recorded operations.

    Parameters
    ----------
    optimizer : Optimizer
    group : dict
    """
    rule = next((_RULES[cls.__name__] for cls in type(optimizer).__mro__ if cls.__name__ in _RULES), None)
    name = type(optimizer).__name__
    if rule is None:
        raise RuntimeError(f"{name}: differentiable=True is not supported by this optimizer. Leave it False.")
    for parameter in group["params"]:
        gradient = parameter.grad
        if gradient is None:
            continue
        if parameter.is_complex():
            raise RuntimeError(f"{name}: differentiable=True does not support complex parameters (got "
                               f"{parameter.dtype}). Use view_as_real().")
        state = optimizer.state[parameter]
        for key, value in state.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.dtype is not parameter.dtype:
                state[key] = value.to(parameter.dtype)
        rule(group, parameter, -gradient if group["maximize"] else gradient, state)
