"""Training on uneven inputs: ranks without inputs join the collectives of the others."""

from typing import Any

import cygrad
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.world import member

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """Actions of a rank without inputs.

    Examples
    --------
    >>> from cygrad.distributed.algorithms.join import JoinHook
    >>> class Report(JoinHook):
    ...     def post_hook(self, is_last_joiner):
    ...         print("done")
    >>> Report().post_hook(True)
    done
    """

    def main_hook(self):
        """Join the collectives of one iteration of other ranks."""

    def post_hook(self, is_last_joiner):
        """Called when all ranks are done; `is_last_joiner` is True on the ranks that joined last."""


class Joinable:
    """Base class of objects that communicate in each iteration, also on ranks without inputs.

    Examples
    --------
    >>> from cygrad.distributed.algorithms.join import Joinable
    >>> issubclass(cygrad.nn.parallel.DistributedDataParallel, Joinable)
    True
    """

    joining: Any = None          # the open Join, which this object notifies of iterations

    def join_hook(self, **kwargs):
        """Return a JoinHook; every subclass defines it."""
        raise NotImplementedError(f"join_hook: {type(self).__name__} must define it.")

    @property
    def join_process_group(self):
        """The process group; every subclass defines it."""
        raise NotImplementedError(f"join_process_group: {type(self).__name__} must define it.")


class Join:
    """
    Context manager for a loop whose length differs between ranks.

    Parameters
    ----------
    joinables : list of Joinable
        Objects in the order of their communication in an iteration.
    enable : bool, default True
    throw_on_early_termination : bool, default False
        Whether to raise an error on all ranks when one has no more inputs.
    **kwargs
        Passed on to ``join_hook``.

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.join import Join
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for x in [cygrad.ones(1, 2)] * (distributed.get_rank() + 1):
    ...         model(x).sum().backward()
    >>> distributed.destroy_process_group()
    """

    def __init__(self, joinables, enable=True, throw_on_early_termination=False, **kwargs):
        if not joinables:
            raise ValueError("Join: expected at least one joinable (got none).")
        if not all(isinstance(joinable, Joinable) for joinable in joinables):
            raise TypeError("Join: all joinables must be instances of Joinable (got "
                            f"{[type(joinable).__name__ for joinable in joinables]}).")
        groups = {id(member(joinable.join_process_group)) for joinable in joinables}
        if len(groups) > 1:
            raise ValueError("Join: all joinables must have the same process group (got several).")
        self.joinables, self.enable, self.throw = list(joinables), enable, throw_on_early_termination
        self.group = member(joinables[0].join_process_group)
        self.active = self.group.size()            # number of ranks with inputs
        self.hooks = [joinable.join_hook(**kwargs) for joinable in joinables]

    def __enter__(self):
        if self.enable:
            for joinable in self.joinables:
                joinable.joining = self
        return self

    def count(self, here):
        """Return the number of ranks that are not done; `here`: whether this one is not."""
        total = cygrad.tensor([int(here)])
        all_reduce(total, group=self.group, detail="inputs left")
        return total.item()

    def begin_iteration(self, joinable):
        """Begin an iteration on this rank."""
        if joinable is self.joinables[0]:
            self.active = self.count(True)
            if self.active < self.group.size() and self.throw:
                self.stop()

    def stop(self):
        """Notify all ranks that some rank is done."""
        raise RuntimeError(f"Join: a rank has no more inputs, and throw_on_early_termination is True (detected by "
                           f"rank {self.group.own_global_rank}).")

    def __exit__(self, kind, error, traceback):
        if not self.enable:
            return
        for joinable in self.joinables:
            joinable.joining = None
        if kind is not None:
            return
        last = True
        while self.count(False):
            if self.throw:
                self.stop()
            last = False
            for hook in self.hooks:
                hook.main_hook()
        for hook in self.hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable):
        """Notify the open Join, if there is one, that an iteration begins; a Joinable calls it before it
        communicates."""
        if joinable.joining is not None:
            joinable.joining.begin_iteration(joinable)
