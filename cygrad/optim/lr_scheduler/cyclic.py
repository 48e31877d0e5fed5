"""Cyclical learning rates (Smith, 2017)."""

import math

from cygrad._core.graph.argument_errors import as_number
from cygrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    load_functions,
    one_for_each_group,
    saved_functions,
    set_option,
)
from cygrad.optim.lr_scheduler.momentum import Momentum

__all__ = ["CyclicLR"]

MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(Momentum, LRScheduler):
    """
    Cycle the learning rate linearly between two bounds, and the momentum inversely.

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : float or list of float
        Minimum and maximum learning rate.
    step_size_up : int, default 2000
        Steps of the increasing half of a cycle.
    step_size_down : int, optional
        Steps of the decreasing half; `step_size_up` if None.
    mode : {"triangular", "triangular2", "exp_range"}
        Constant amplitude, amplitude halved after each cycle, or amplitude ``gamma ** step``.
    gamma : float, default 1
    scale_fn : callable, optional
        Function that returns the relative amplitude; overrides `mode`.
    scale_mode : {"cycle", "iterations"}
        Whether `scale_fn` gets the cycle or the step.
    cycle_momentum : bool, default True
        Whether to cycle the momentum, which the optimizer must have.
    base_momentum, max_momentum : float or list of float, default 0.8 and 0.9
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = cygrad.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(schedule.get_last_lr()[0], 3)); optimizer.step(); schedule.step()
    >>> rates
    [0.1, 0.3, 0.5, 0.3, 0.1]
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular",
                 gamma=1.0, scale_fn=None, scale_mode="cycle", cycle_momentum=True, base_momentum=0.8,
                 max_momentum=0.9, last_epoch=-1):
        check_optimizer(optimizer)
        if mode not in MODES and scale_fn is None:
            raise ValueError(f"CyclicLR: unknown mode without scale_fn (got {mode!r}, expected one of "
                             f"{MODES}).")
        base_lrs = one_for_each_group(self, "base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = one_for_each_group(self, "max_lr", optimizer, max_lr)
        for name, rates in (("base_lr", base_lrs), ("max_lr", self.max_lrs)):
            for rate in rates:
                as_number("CyclicLR", name, rate)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(optimizer, base_momentum, max_momentum,
                                                                           last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """Return the relative amplitude of cycle or step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 2.0 ** (1 - x) if self.mode == "triangular2" else 0,
                "exp_range": self.gamma ** x if self.mode == "exp_range" else 0}[self.mode]

    def get_lr(self):
        """Compute the learning rates of the step and set the momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        share = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        share *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups,
                                        strict=True):
                self._set_momentum(group, high - (high - low) * share)
        return [low + (high - low) * share for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self):
        """Return all attributes except the optimizer; for `scale_fn`, the attributes of a callable object."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        state["_scale_fn_custom"] = None if function is None else saved_functions([function])[0]
        return state

    def load_state_dict(self, state_dict):
        """Load the result of `state_dict`; the function stays."""
        saved = dict(state_dict)
        load_functions([self._scale_fn_custom], [saved.pop("_scale_fn_custom", None)])
        super().load_state_dict(saved)
