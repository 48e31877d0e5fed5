"""Cosine annealing (Loshchilov and Hutter, 2017)."""

import math

from cygrad.optim.lr_scheduler.base import LRScheduler

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    """
    Anneal the learning rate between its initial value and `eta_min` along a cosine.

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
        Steps of half a period, from maximum to minimum.
    eta_min : float, default 0
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(round(schedule.get_last_lr()[0], 3)); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 0.0]
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Compute the learning rates from the current ones."""
        self._warn_outside_step()
        groups, step, half = self.optimizer.param_groups, self.last_epoch, self.T_max
        if self._is_initial:
            return [group["lr"] for group in groups]
        if self._step_count == 1 and step > 0:
            return self._get_closed_form_lr()
        if (step - 1 - half) % (2 * half) == 0:            # after the minimum, where the ratio below is 0 / 0
            return [group["lr"] + (rate - self.eta_min) * (1 - math.cos(math.pi / half)) / 2
                    for rate, group in zip(self.base_lrs, groups, strict=True)]
        ratio = (1 + math.cos(math.pi * step / half)) / (1 + math.cos(math.pi * (step - 1) / half))
        return [ratio * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self):
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (rate - self.eta_min) * share for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """
    Anneal the learning rate along a cosine with warm restarts.

    Parameters
    ----------
    optimizer : Optimizer
    T_0 : int
        Steps of the first period.
    T_mult : int, default 1
        Ratio of the lengths of successive periods.
    eta_min : float, default 0
        Minimum learning rate.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(schedule.get_last_lr()[0], 3)); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 must be a positive integer (got {T_0}).")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"CosineAnnealingWarmRestarts: T_mult must be a positive integer (got {T_mult}).")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"CosineAnnealingWarmRestarts: eta_min must be a number (got {eta_min} of type "
                             f"{type(eta_min)}).")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        """Compute the learning rates of the step."""
        self._warn_outside_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * share for rate in self.base_lrs]

    def step(self, epoch=None):
        """
        Set the learning rates of the next step, or of `epoch`.

        Parameters
        ----------
        epoch : float, optional
            Step to set instead; may be fractional.
        """
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"CosineAnnealingWarmRestarts: Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = self._descent_at(epoch)
        self.last_epoch = math.floor(epoch)
        with self._computing():
            rates = self.get_lr()
        self._set_rates(rates)

    def _descent_at(self, epoch):
        """Return the position within the period at `epoch`, and its length."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_i
        # The first n periods have T_0 * (1 + m + ... + m**(n - 1)) steps.
        number = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        before = self.T_0 * (self.T_mult ** number - 1) / (self.T_mult - 1)
        return epoch - before, self.T_0 * self.T_mult ** number
