"""ReduceLROnPlateau."""

import math

from cygrad._core.graph.argument_errors import as_number
from cygrad._core.graph.user_warnings import warn_user
from cygrad.optim.lr_scheduler.base import LRScheduler, check_optimizer, current, one_for_each_group, set_option

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """
    Multiply the learning rate by `factor` when a metric has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
    mode : {"min", "max"}
        Whether a lower or a higher metric is better.
    factor : float, default 0.1
        Less than 1.
    patience : int, default 10
        Number of steps without improvement to tolerate.
    threshold : float, default 1e-4
        Minimum improvement.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is relative to the best metric.
    cooldown : int, default 0
        Number of steps to wait after a reduction.
    min_lr : float or list of float, default 0
        Minimum learning rate.
    eps : float, default 1e-8
        Smaller reductions are skipped.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cygrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel",
                 cooldown=0, min_lr=0, eps=1e-8):
        if as_number("ReduceLROnPlateau", "factor", factor) >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: Factor should be < 1.0 (got {factor}).")
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        self.min_lrs = one_for_each_group(self, "min_lr", optimizer, min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._init_is_better(mode, threshold, threshold_mode)
        self._last_lr = current(optimizer, "lr")
        self._reset()

    def _init_is_better(self, mode, threshold, threshold_mode):
        """Check and store the criterion of improvement."""
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode {mode} is unknown! (expected 'min' or 'max')")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: threshold mode {threshold_mode} is unknown! (expected 'rel' "
                             "or 'abs')")
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf

    def _reset(self):
        """Reset all counters and the best metric."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None):  # type: ignore[override]
        """
        Record the metric, and reduce the learning rates if it has stopped improving.

        Parameters
        ----------
        metrics : float or Tensor with one element
        epoch : int, optional
            Deprecated.
        """
        measure = float(metrics)
        if epoch is not None:
            warn_user("scheduler.step(): the parameter epoch is deprecated, because schedulers count epochs. Call "
                      "step() without it.")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(measure, self.best):
            self.best = measure
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = current(self.optimizer, "lr")

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"ReduceLROnPlateau: the number of parameter groups has changed (got {len(groups)}, "
                                   f"expected {len(self.min_lrs)}). Set `min_lrs`.")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            rate = max(before * self.factor, least)
            if before - rate > self.eps:
                set_option(group, "lr", rate)

    @property
    def in_cooldown(self):
        """Return whether the cooldown after the last reduction is active."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Return whether the metric `a` is an improvement."""
        sign = -1 if self.mode == "min" else 1
        bound = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return a < bound if self.mode == "min" else a > bound

    def _is_better(self, a, best):
        return self.is_better(a, best)          # subclasses override this name since PyTorch 2.13
