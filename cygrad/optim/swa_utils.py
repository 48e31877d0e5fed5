"""Weight averaging: SWA (Izmailov et al., 2018) and EMA."""

import math
from copy import deepcopy
from itertools import chain

import cygrad
from cygrad._core import public_dir as _public_dir
from cygrad.nn.module import Module
from cygrad.optim.lr_scheduler.base import LRScheduler, one_for_each_group

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]
__dir__ = _public_dir(__name__)


def _checked_decay(decay):
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_multi_avg_fn: decay must be from 0 to 1 (got {decay}).")
    return decay


def get_ema_avg_fn(decay=0.999):
    """
    Return a function for the exponential moving average of one tensor.

    Parameters
    ----------
    decay : float, default 0.999
        Decay rate.

    Returns
    -------
    callable
        ``f(average, value, num_averaged)``, which returns the new average.

    Examples
    --------
    >>> average = cygrad.optim.swa_utils.get_ema_avg_fn(0.5)
    >>> average(cygrad.tensor(0.0), cygrad.tensor(1.0), 1)
    tensor(0.5000)
    """
    _checked_decay(decay)

    def average(ema_param, current_param, num_averaged):
        with cygrad.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn():
    """
    Return a function for the mean of one tensor.

    Returns
    -------
    callable
        ``f(average, value, num_averaged)``, which returns the new average.

    Examples
    --------
    >>> average = cygrad.optim.swa_utils.get_swa_avg_fn()
    >>> average(cygrad.tensor(0.0), cygrad.tensor(4.0), 3)
    tensor(1.)
    """
    def average(averaged_param, current_param, num_averaged):
        with cygrad.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay=0.999):
    """
    Return a function that updates the exponential moving average of several tensors in place.

    Parameters
    ----------
    decay : float, default 0.999
        Decay rate.

    Returns
    -------
    callable
        ``f(averages, values, num_averaged)``, which updates the averages.

    Examples
    --------
    >>> average, kept = cygrad.optim.swa_utils.get_ema_multi_avg_fn(0.5), [cygrad.tensor(0.0)]
    >>> average(kept, [cygrad.tensor(1.0)], 1)
    >>> kept
    [tensor(0.5000)]
    """
    _checked_decay(decay)
    return lambda averages, values, num_averaged: _mix(averages, values, 1 - decay)


def get_swa_multi_avg_fn():
    """
    Return a function that updates the mean of several tensors in place.

    Returns
    -------
    callable
        ``f(averages, values, num_averaged)``, which updates the averages.

    Examples
    --------
    >>> average, kept = cygrad.optim.swa_utils.get_swa_multi_avg_fn(), [cygrad.tensor(0.0)]
    >>> average(kept, [cygrad.tensor(4.0)], 3)
    >>> kept
    [tensor(1.)]
    """
    return lambda averages, values, num_averaged: _mix(averages, values, 1 / (float(num_averaged) + 1))


def _mix(averages, values, weight):
    """Update averages by values with a weight."""
    with cygrad.no_grad():
        for average, value in zip(averages, values, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.add_(value - average, alpha=weight)
            else:
                average.copy_(average * (1 - weight) + value * weight)


class AveragedModel(Module):
    """
    Copy of a model whose parameters are averages over training.

    Parameters
    ----------
    model : Module
    device : optional
        The CPU.
    avg_fn : callable, optional
        See `get_swa_avg_fn` (default) and `get_ema_avg_fn`.
    multi_avg_fn : callable, optional
        See `get_swa_multi_avg_fn` and `get_ema_multi_avg_fn`.
    use_buffers : bool, default False
        Whether to average buffers instead of copying them.

    Attributes
    ----------
    module : Module
        The averaged copy.
    n_averaged : Tensor
        Number of calls of `update_parameters`.

    Examples
    --------
    >>> model = nn.Linear(1, 1, bias=False)
    >>> averaged = cygrad.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: Only one of avg_fn and multi_avg_fn should be provided (got both).")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", cygrad.tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """
        Update the averages with the current parameters of the model.

        Parameters
        ----------
        model : Module
            Has the structure of the original model.
        """
        averages, values = _tensors(self.module, self.use_buffers), _tensors(model, self.use_buffers)
        with cygrad.no_grad():
            if self.n_averaged == 0:
                for average, value in zip(averages, values, strict=True):
                    average.copy_(value)
            elif self.avg_fn is not None:
                for average, value in zip(averages, values, strict=True):
                    average.copy_(self.avg_fn(average, value, self.n_averaged))
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
            if not self.use_buffers:
                for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                    own.copy_(other)
            self.n_averaged += 1


def _tensors(model, use_buffers):
    return [tensor.detach() for tensor in chain(model.parameters(), model.buffers() if use_buffers else ())]


def update_bn(loader, model, device=None):
    """
    Recompute the running statistics of batch normalization by one pass over the data.

    Parameters
    ----------
    loader : iterable
        Inputs, or sequences whose first element is the input.
    model : Module
    device : optional
        The CPU.

    Examples
    --------
    >>> model = nn.BatchNorm1d(2)
    >>> cygrad.optim.swa_utils.update_bn([cygrad.ones(4, 2)], model)
    >>> model.running_mean
    tensor([1., 1.])
    """
    layers = [module for module in model.modules()
              if "_BatchNorm" in [base.__name__ for base in type(module).__mro__]]
    if not layers:
        return
    before, was_training = [layer.momentum for layer in layers], model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None                  # cumulative average over all batches
    with cygrad.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for layer, momentum in zip(layers, before, strict=True):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """
    Anneal the learning rate to a constant value.

    Parameters
    ----------
    optimizer : Optimizer
    swa_lr : float or list of float
        Final learning rate.
    anneal_epochs : int, default 10
        Number of steps.
    anneal_strategy : {"cos", "linear"}
        Interpolation of the values.
    last_epoch : int, default -1
        See `cygrad.optim.lr_scheduler.LRScheduler`.

    Examples
    --------
    >>> optimizer = cygrad.optim.SGD([cygrad.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cygrad.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(schedule.get_last_lr()[0]); optimizer.step(); schedule.step()
    >>> rates
    [1.0, 0.75, 0.5]
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        rates = one_for_each_group(self, "swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy must be one of 'cos' or 'linear' (got {anneal_strategy}).")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """Return the fraction of the annealing done after a number of steps."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self):
        """Return the rates of the step, from those before it."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            # the initial rate, computed from the current one
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
