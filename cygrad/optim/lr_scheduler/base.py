"""Base class of learning rate schedulers."""

from contextlib import contextmanager

from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_integer
from cygrad._core.graph.user_warnings import warn_user
from cygrad.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "check_optimizer", "current", "one_for_each_group", "set_option"]


def _plain(method):
    """Return the function of a bound method."""
    return getattr(method, "__func__", method)

class LRScheduler:
    """
    Base class of learning rate schedulers.

    A subclass defines ``get_lr()``, which returns the learning rate of each parameter group at ``self.last_epoch``.
    Most compute it from the current ``group["lr"]``, so that several schedulers of one optimizer can be chained.

    Parameters
    ----------
    optimizer : Optimizer
        Its current learning rates become ``group["initial_lr"]``.
    last_epoch : int, default -1
        Step to resume from; -1 starts.

    Raises
    ------
    TypeError
        If `optimizer` is not an Optimizer.
    KeyError
        If `last_epoch` is not -1 and a group has no ``initial_lr``.

    Examples
    --------
    >>> from cygrad.optim import SGD, lr_scheduler
    >>> optimizer = SGD([cygrad.zeros(1, requires_grad=True)], lr=0.8)
    >>> scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [0.8]
    [0.8]
    [0.4]
    [0.4]
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer)
        as_integer(type(self).__name__, "last_epoch", last_epoch)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: param_groups[{number}] has no 'initial_lr', which is required "
                               f"to resume at step {last_epoch}. Load the state of the optimizer first.")
        self.base_lrs = current(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        """Run the initial step."""
        self._step_count = 0
        self._optimizer_step = _plain(self.optimizer.step)
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_last_lr(self):
        """Return the last learning rates set by this scheduler, one for each parameter group."""
        return self._last_lr

    def get_lr(self):
        """Compute the learning rates for ``self.last_epoch``; subclasses define it."""
        raise NotImplementedError(f"get_lr: {type(self).__name__} does not define it.")

    def step(self, epoch=None):
        """
        Set the learning rates of the next step.

        Parameters
        ----------
        epoch : int, optional
            Step to set instead. Deprecated.
        """
        if self._step_count == 1 and _plain(self.optimizer.step) is not self._optimizer_step:
            warn_user("`optimizer.step()` was overridden after the scheduler was created, which cannot detect calls "
                      "of it. Call it before `lr_scheduler.step()`.")
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warn_user("Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call `optimizer.step()` "
                      "first, or the first learning rate of the schedule is skipped.")
        self._step_count += 1
        if epoch is not None:
            warn_user("scheduler.step(): the parameter epoch is deprecated, because schedulers count epochs. Call "
                      "step() without it.")
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        """Set the learning rates of the next step, or of `epoch`."""
        with self._computing():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed_form()
        self._set_rates(rates)

    def _set_rates(self, rates):
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = current(self.optimizer, "lr")

    @contextmanager
    def _computing(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self):
        """Warn that `get_lr` is for internal use, because it computes the next rates from the current ones."""
        if not self._get_lr_called_within_step:
            warn_user("get_lr() is for internal use. Call get_last_lr() for the last learning rates.")

    def state_dict(self):
        """Return all attributes except the optimizer as a dict."""
        return {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_optimizer_step")}

    def load_state_dict(self, state_dict):
        """Load the result of `state_dict`."""
        self.__dict__.update(state_dict)


def check_optimizer(optimizer):
    """Check that the object is an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"lr_scheduler: {type(optimizer).__name__} is not an Optimizer. Pass one of cygrad.optim.")


def copied(value):
    """Copy a tensor, because schedulers modify such options in place; return a number."""
    return value.clone() if isinstance(value, Tensor) else value


def current(optimizer, name):
    """Return an option of each group."""
    return [copied(group[name]) for group in optimizer.param_groups]


def set_option(group, name, value):
    """Set an option of a group."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = float(value) if isinstance(value, Tensor) else value


def one_for_each_group(scheduler, name, optimizer, value):
    """Return the list of values for all groups, or one value for each group; tensors are copied."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(n)]
    if len(value) != n:
        raise ValueError(f"{type(scheduler).__name__}: {name} needs one value for each parameter group (got "
                         f"{len(value)} values, expected {n}).")
    return [copied(each) for each in value]


def saved_functions(functions):
    """Return the attributes of callable objects, or None for functions."""
    return [None if isinstance(function, type(saved_functions)) else dict(getattr(function, "__dict__", {}))
            for function in functions]


def load_functions(functions, saved):
    """Restore the attributes of callable objects."""
    for function, attributes in zip(functions, saved, strict=True):
        if attributes is not None:
            function.__dict__.update(attributes)
