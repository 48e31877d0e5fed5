"""L-BFGS."""

import cygrad
from cygrad._core.graph.argument_errors import as_integer
from cygrad.optim.hooks import hooked
from cygrad.optim.line_search import Point, strong_wolfe
from cygrad.optim.optimizer import Optimizer
from cygrad.optim.parameter_checks import check_not_negative

__all__ = ["LBFGS"]

MIN_CURVATURE = 1e-10                # smaller curvatures do not update the Hessian
MIN_INTERVAL = 1e-9                  # minimum change of parameters in a line search


class LBFGS(Optimizer):
    """
    L-BFGS: the limited-memory Broyden-Fletcher-Goldfarb-Shanno method (Liu and Nocedal, 1989).

    Requires a deterministic objective (full batches) and a single parameter group. Each step runs several iterations,
    each of which calls the closure.

    Parameters
    ----------
    params : iterable of Tensor or of (str, Tensor)
        Complex parameters count as pairs of real numbers.
    lr : float, default 1
        Step length, or first step length of the line search.
    max_iter : int, default 20
        Maximum number of iterations of a step.
    max_eval : int, optional
        Maximum number of calls of the closure in a step; ``max_iter * 1.25`` if None.
    tolerance_grad : float, default 1e-7
        Stop if the maximum of the gradient is not larger.
    tolerance_change : float, default 1e-9
        Stop if parameters or loss change less.
    history_size : int, default 100
        Number of updates in the approximation of the Hessian.
    line_search_fn : {None, "strong_wolfe"}
        Line search.

    Examples
    --------
    >>> w = cygrad.tensor([-1.0, 1.5], requires_grad=True)
    >>> optimizer = cygrad.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     _ = optimizer.step(closure)
    >>> w.detach().round(decimals=3)
    tensor([1., 1.])
    """

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None):
        if max_eval is None:
            max_eval = as_integer("LBFGS", "max_iter", max_iter) * 5 // 4
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
                                  "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS: only a single parameter group is supported (got several). Pass all parameters in "
                             "one list.")

    def check_options(self, group):
        check_not_negative(self, group, "lr")
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(f"LBFGS: only 'strong_wolfe' is supported (got {group['line_search_fn']!r}).")

    @hooked
    def step(self, closure):
        """
        Run up to ``max_iter`` iterations.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns
        -------
        The first result of the closure.
        """
        if len(self.param_groups) != 1:
            raise RuntimeError(f"LBFGS: expected exactly one parameter group (got {len(self.param_groups)}).")
        with cygrad.no_grad():
            return _Step(self, closure).run()


class _Step:
    """One step, with options and state."""

    def __init__(self, optimizer, closure):
        self.options = optimizer.param_groups[0]
        self.parameters = self.options["params"]
        self.closure = closure
        self.rate = float(self.options["lr"])
        self.state = optimizer.state[self.parameters[0]]    # create it here, so that loading converts its dtype
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)

    def run(self):
        """Iterate until a stopping condition holds."""
        options, state = self.options, self.state
        first_loss, value, gradient = self.evaluate()
        evaluations = 1
        state["func_evals"] += 1
        if self.small(gradient, options["tolerance_grad"]):
            return first_loss
        for iteration in range(1, options["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self.direction(gradient)
            state["prev_flat_grad"], state["prev_loss"] = gradient, value
            length = self.rate
            if state["n_iter"] == 1:                       # no scale is known
                length *= 1.0 / max(1.0, float(gradient.abs().sum()))
            slope = float(gradient.dot(direction))
            state["d"], state["t"] = direction, length
            if slope > -options["tolerance_change"]:
                break
            before, asked = value, 0
            if options["line_search_fn"] is not None:
                best, asked = self.search(direction, Point(0, value, gradient, slope), length,
                                          options["max_eval"] - evaluations)
                length, value, gradient = best.step, best.value, best.gradient
                state["t"] = length
                self.move(direction, length)
            else:
                self.move(direction, length)
                if iteration != options["max_iter"]:       # for the next iteration
                    _, value, gradient = self.evaluate()
                    asked = 1
            evaluations += asked
            state["func_evals"] += asked
            if (evaluations >= options["max_eval"] or self.small(gradient, options["tolerance_grad"])
                    or self.small(direction * length, options["tolerance_change"])
                    or abs(value - before) < options["tolerance_change"]):
                break
        return first_loss

    def direction(self, gradient):
        """Return the negative product of inverse Hessian and gradient."""
        state = self.state
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1.0
            return -gradient
        changes, steps, weights = state["old_dirs"], state["old_stps"], state["ro"]
        change = gradient - state["prev_flat_grad"]
        step = state["d"] * state["t"]
        curvature = float(change.dot(step))
        if curvature > MIN_CURVATURE:
            if len(changes) == self.options["history_size"]:
                for memory in changes, steps, weights:
                    memory.pop(0)
            if self.options["history_size"] > 0:
                changes.append(change)
                steps.append(step)
                weights.append(1.0 / curvature)
            state["H_diag"] = curvature / float(change.dot(change))
        # Two-loop recursion of Nocedal.
        direction = -gradient
        shares = [0.0] * len(steps)
        for i in reversed(range(len(steps))):
            shares[i] = float(steps[i].dot(direction)) * weights[i]
            direction.add_(changes[i], alpha=-shares[i])
        direction.mul_(state["H_diag"])
        for i in range(len(steps)):
            direction.add_(steps[i], alpha=shares[i] - float(changes[i].dot(direction)) * weights[i])
        return direction

    def search(self, direction, start, length, most_evaluations):
        """Return the best point of a line search and restore the parameters."""
        values = [parameter.detach().clone() for parameter in self.parameters]

        def at(length):
            self.move(direction, length)
            _, value, gradient = self.evaluate()
            for parameter, former in zip(self.parameters, values, strict=True):
                parameter.copy_(former)
            return Point(length, value, gradient, float(gradient.dot(direction)))

        return strong_wolfe(at, start, length, float(direction.abs().max()), MIN_INTERVAL, most_evaluations)

    def evaluate(self):
        """Return the result of the closure, its value as a float, and all gradients as one vector."""
        with cygrad.enable_grad():
            loss = self.closure()
        return loss, float(loss), cygrad.cat([_flat(parameter.grad, parameter) for parameter in self.parameters])

    def move(self, direction, length):
        """Update the parameters."""
        start = 0
        for parameter in self.parameters:
            values = cygrad.view_as_real(parameter) if parameter.is_complex() else parameter
            values.add_(direction[start:start + values.numel()].view(values.shape), alpha=length)
            start += values.numel()

    @staticmethod
    def small(vector, bound):
        """Return whether no element exceeds the bound; False for nan."""
        return float(vector.abs().max()) <= bound


def _flat(gradient, parameter):
    """Return the gradient of a parameter as a real vector, or zeros."""
    if gradient is None:
        gradient = cygrad.zeros_like(parameter, requires_grad=False)
    gradient = gradient.detach()
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    return (cygrad.view_as_real(gradient) if gradient.is_complex() else gradient).reshape(-1)
