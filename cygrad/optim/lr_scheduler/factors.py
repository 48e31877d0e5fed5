"""Schedulers that multiply learning rates by a factor."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable

from cygrad._core.graph.argument_errors import as_items, as_number
from cygrad.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    load_functions,
    one_for_each_group,
    saved_functions,
)

__all__ = ["ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR",
           "StepLR"]


class _Factor(LRScheduler):
    """Base class of schedulers that multiply learning rates by ``_factor()`` at each step; their product is "
      "``_share()``."""

    _factor: Callable
    _share: Callable

    def get_lr(self):
        """Compute the learning rates from the current ones."""
        self._warn_outside_step()
        factor = self._factor()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        share = self._share()
        return [rate * share for rate in self.base_lrs]


class _Functions(LRScheduler):
    """Schedules that call a function for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch):
        check_optimizer(optimizer)
        self.lr_lambdas = one_for_each_group(self, "lr_lambda", optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"{type(self).__name__}: lr_lambda must be callable (got {type(function).__name__}).")
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Return all attributes except the optimizer; for functions, the attributes of callable objects."""
        return {**super().state_dict(), "lr_lambdas": saved_functions(self.lr_lambdas)}

    def load_state_dict(self, state_dict):
        """Load the result of `state_dict`; the functions stay."""
        saved = dict(state_dict)
        load_functions(self.lr_lambdas, saved.pop("lr_lambdas"))
        super().load_state_dict(saved)


class LambdaLR(_Functions):
    """
    Set the learning rate to the initial one times a function of the step.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callables
        Step -> factor; one for all groups, or a list with one for each.
    last_epoch : int, default -1
        See `LRScheduler`.

    Raises
    ------
    ValueError
        If the length of the list is not the number of groups.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> rates = []
    >>> for _ in range(2):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5]
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self):
        """Compute the learning rates of the step."""
        self._warn_outside_step()
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_Functions):
    """
    Multiply the learning rate by a function of the step.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callables
        Step -> factor; one for all groups, or a list with one for each.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 0.25]
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self):
        """Compute the learning rates from the current ones."""
        self._warn_outside_step()
        return [group["lr"] * (1 if self._is_initial else function(self.last_epoch))
                for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)]


class StepLR(_Factor):
    """
    Multiply the learning rate by `gamma` every `step_size` steps.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
    gamma : float, default 0.1
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _share(self):
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Factor):
    """
    Multiply the learning rate by `gamma` at each milestone.

    Parameters
    ----------
    optimizer : Optimizer
    milestones : iterable of int
        Steps; duplicates count twice.
    gamma : float, default 0.1
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(as_items("MultiStepLR", "milestones", milestones, object))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else 1

    def _share(self):
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_Factor):
    """
    Multiply the learning rate by `factor` for the first `total_iters` steps.

    Parameters
    ----------
    optimizer : Optimizer
    factor : float, default 1/3
        In [0, 1].
    total_iters : int, default 5
        Number of steps.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= as_number("ConstantLR", "factor", factor) <= 1:
            raise ValueError(f"ConstantLR: factor must be from 0 to 1 (got {factor}).")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _share(self):
        return 1 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(_Factor):
    """
    Change the factor of the learning rate linearly from one value to another.

    Parameters
    ----------
    optimizer : Optimizer
    start_factor : float, default 1/3
        In (0, 1].
    end_factor : float, default 1
        In [0, 1].
    total_iters : int, default 5
        Number of steps.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.75, 1.0]
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < as_number("LinearLR", "start_factor", start_factor) <= 1:
            raise ValueError(f"LinearLR: start_factor must be positive and at most 1 (got {start_factor}).")
        if not 0 <= as_number("LinearLR", "end_factor", end_factor) <= 1:
            raise ValueError(f"LinearLR: end_factor must be from 0 to 1 (got {end_factor}).")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        return 1 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _share(self):
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(_Factor):
    """
    Multiply the learning rate by `gamma` at each step.

    Parameters
    ----------
    optimizer : Optimizer
    gamma : float
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 0.25]
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return 1 if self._is_initial else self.gamma

    def _share(self):
        return self.gamma ** self.last_epoch


class PolynomialLR(_Factor):
    """
    Decay the learning rate to zero by a power of the remaining steps.

    Parameters
    ----------
    optimizer : Optimizer
    total_iters : int, default 5
        Number of steps.
    power : float, default 1
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.5, 0.0]
    """

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        before = 1 - (self.last_epoch - 1) / self.total_iters
        return ((1 - self.last_epoch / self.total_iters) / before) ** self.power

    def _share(self):
        return (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
