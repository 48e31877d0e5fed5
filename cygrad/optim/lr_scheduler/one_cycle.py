"""One-cycle policy (Smith and Topin, 2018)."""

import math

from cygrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, one_for_each_group
from cygrad.optim.lr_scheduler.momentum import Momentum

__all__ = ["OneCycleLR"]


def along_cosine(start, end, share):
    """Interpolate from `start` to `end` along half a cosine."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def along_line(start, end, share):
    """Interpolate from `start` to `end` linearly."""
    return (end - start) * share + start


WAYS = {"cos": along_cosine, "linear": along_line}


class OneCycleLR(Momentum, LRScheduler):
    """
    One-cycle policy: increase the learning rate to `max_lr`, then decrease it to nearly zero, and the momentum
    inversely. Call ``step()`` after each batch.

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float or list of float
        Maximum learning rate.
    total_steps : int, optional
        Total number of steps.
    epochs, steps_per_epoch : int, optional
        Total number of steps as a product, if `total_steps` is None.
    pct_start : float, default 0.3
        Fraction of the steps that increase the learning rate.
    anneal_strategy : {"cos", "linear"}
        Interpolation of the values.
    cycle_momentum : bool, default True
        Whether to cycle the momentum, which the optimizer must have.
    base_momentum, max_momentum : float or list of float, default 0.85 and 0.95
    div_factor : float, default 25
        The initial learning rate is ``max_lr / div_factor``.
    final_div_factor : float, default 1e4
        The final learning rate is the initial one divided by it.
    three_phase : bool, default False
        Whether to decrease to the initial learning rate symmetrically first, then to the final one.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = cygrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(round(schedule.get_last_lr()[0], 3)); optimizer.step(); schedule.step()
    >>> rates
    [0.04, 0.812, 0.283]
    """

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):
        check_optimizer(optimizer)
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("OneCycleLR: expected total_steps, or epochs and steps_per_epoch (got neither).")
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if total_steps is None else {
            "total_steps": total_steps}
        for name, value in given.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"OneCycleLR: Expected positive integer {name}, but got {value}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start must be a float from 0 to 1 (got {pct_start}).")
        if anneal_strategy not in WAYS:
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear' (got {anneal_strategy}).")
        self.total_steps = math.prod(given.values())
        self._anneal_func_type = anneal_strategy
        top = float(pct_start * self.total_steps) - 1
        # End of each phase, and its bounds of learning rate and momentum.
        rise = (top, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        self._phases = [rise, (self.total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if three_phase:
            self._phases = [
                rise, (float(2 * pct_start * self.total_steps) - 2, "max_lr", "initial_lr", "base_momentum",
                       "max_momentum"),
                (self.total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        rates = one_for_each_group(self, "max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(rates, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Compute the learning rates of the step and set the momentum."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: the schedule has ended (got step {step}, expected at most "
                             f"total_steps={self.total_steps}).")
        start, phase = 0.0, 0
        while step > self._phases[phase][0] and phase < len(self._phases) - 1:
            start = self._phases[phase][0]
            phase += 1
        end, *names = self._phases[phase]
        share = (step - start) / (end - start)
        way, rates = WAYS[self._anneal_func_type], []
        for group in self.optimizer.param_groups:
            rates.append(way(group[names[0]], group[names[1]], share))
            if self.cycle_momentum:
                self._set_momentum(group, way(group[names[2]], group[names[3]], share))
        return rates
