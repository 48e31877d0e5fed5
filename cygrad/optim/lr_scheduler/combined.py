"""Combinations of schedulers."""

from bisect import bisect_right

from cygrad._core.graph.argument_errors import described
from cygrad.optim.lr_scheduler.base import LRScheduler, current, set_option
from cygrad.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Combined(LRScheduler):
    """Base class of combinations of schedulers of one optimizer."""

    def _begin(self, optimizer, schedulers):
        name = type(self).__name__
        if not isinstance(schedulers, (list, tuple)):
            raise TypeError(f"{name}: argument 'schedulers' must be a list of schedulers (got "
                            f"{described(schedulers)}).")
        if len(schedulers) < 1:
            raise ValueError(f"{name}: expected one or more schedulers (got none).")
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name}: scheduler at index {number} should have `optimizer` as its attribute "
                                f"(got {type(scheduler).__name__}).")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{name}: does not support `ReduceLROnPlateau` scheduler, whose step needs a metric "
                                 f"(got one at index {number}).")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"{name}: all schedulers must belong to the same optimizer (got another at index "
                                 f"{number}).")
        self.optimizer = optimizer
        self._schedulers = list(schedulers)

    def _initial_step(self):
        """Run the initial step of all schedulers."""
        for scheduler in self._schedulers:
            scheduler._step_count = 0
        super()._initial_step()

    def state_dict(self):
        """Return all attributes except the optimizer, and the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict):
        saved = dict(state_dict)
        for scheduler, state in zip(self._schedulers, saved.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict(saved)


class ChainedScheduler(_Combined):
    """
    Chain schedulers: each step runs the steps of all.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
    optimizer : Optimizer, optional
        The optimizer of the schedulers.

    Examples
    --------
    >>> from cygrad.optim import lr_scheduler
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lr_scheduler.ChainedScheduler([
    ...     lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.5)])
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.25, 0.25]
    """

    def __init__(self, schedulers, optimizer=None):
        self._begin(optimizer, schedulers)
        self._last_lr = current(self.optimizer, "lr")

    def step(self):  # type: ignore[override]
        """Step all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = current(self.optimizer, "lr")


class SequentialLR(_Combined):
    """
    Run schedulers one after another.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : list of LRScheduler
    milestones : list of int
        Steps at which the next scheduler starts.
    last_epoch : int, default -1
        See `LRScheduler`.

    Examples
    --------
    >>> from cygrad.optim import SGD
    >>> from cygrad.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = SequentialLR(optimizer, [ConstantLR(optimizer, 0.25, 10), ExponentialLR(optimizer, 0.5)], [2])
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.25]
    [0.25]
    [1.0]
    [0.5]
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._begin(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: expected one milestone less than schedulers (got {len(schedulers)} "
                             f"schedulers and {len(milestones)} milestones).")
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # Constructors ran the initial step of each scheduler. Undo it, then run that of the first.
        for group in self.optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        _take_back(self._schedulers)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self):  # type: ignore[override]
        """Step the current scheduler."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _take_back(schedulers):
    for scheduler in schedulers:
        if isinstance(scheduler, _Combined):
            _take_back(scheduler._schedulers)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1
