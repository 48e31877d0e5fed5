"""Optimizer whose state is sharded over the ranks."""

from copy import deepcopy

import numpy as np

from cygrad import Tensor, enable_grad
from cygrad.distributed.algorithms.join import Join, Joinable, JoinHook
from cygrad.distributed.memory import array_of, tensor_over
from cygrad.distributed.objects import gather_object
from cygrad.distributed.work import written
from cygrad.distributed.world import member
from cygrad.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """
    Shard the optimizer over the ranks: each updates some of the parameters and holds their state, and broadcasts them.

    Gradients must be the same on all ranks, as after `DistributedDataParallel`. Parameters are assigned, the largest
    first, to the rank with the fewest elements.

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As in other optimizers; the same on all ranks.
    optimizer_class : type
        Class of the optimizer, for example ``optim.Adam``.
    process_group : ProcessGroup, optional
        The whole world if None.
    parameters_as_bucket_view : bool, default False
        Whether parameters become views of the buffer that is sent, to save copies.
    overlap_with_ddp : bool, default False
        Must be False.
    **defaults
        Options of the optimizer.

    Examples
    --------
    >>> from cygrad import distributed, nn, optim
    >>> from cygrad.distributed.optim import ZeroRedundancyOptimizer
    >>> distributed.init_process_group()
    >>> model = nn.Linear(2, 1)
    >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=optim.Adam, lr=0.1)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> optimizer.step()
    >>> distributed.destroy_process_group()
    """

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False,
                 overlap_with_ddp=False, **defaults):
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not supported (got True). Omit it.")
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise TypeError(f"ZeroRedundancyOptimizer: optimizer_class must be a class of optimizers (got "
                            f"{optimizer_class!r}). Pass for example optim.Adam.")
        self.process_group = member(process_group)
        self.optimizer_class, self.as_views, self.options = optimizer_class, parameters_as_bucket_view, defaults
        self.optim = None
        self._gathered = None
        super().__init__(params, defaults)
        self._share_out()

    def add_param_group(self, param_group):
        """Add a parameter group; see `Optimizer`."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self._share_out(dict(self.optim.state))

    def _share_out(self, state=()):
        """Assign parameters to ranks; called with the existing state when parameters are added."""
        size = self.process_group.size()
        totals, self.owners = [0] * size, {}
        for group in self.param_groups:
            for parameter in sorted(group["params"], key=lambda one: -one.numel()):
                owner = totals.index(min(totals))
                self.owners[parameter] = owner
                totals[owner] += parameter.numel()
        self.shares = [{} for _ in range(size)]       # rank -> dtype -> parameters, in the order of groups
        for group in self.param_groups:
            for parameter in group["params"]:
                share = self.shares[self.owners[parameter]]
                share.setdefault(parameter.dtype.name, []).append(parameter)
        own = self.process_group.own_rank
        groups = [{**{name: value for name, value in group.items() if name != "param_names"},
                   "params": [one for one in group["params"] if self.owners[one] == own]}
                  for group in self.param_groups]
        self.optim = self.optimizer_class(groups, **self.options)
        self.optim.state.update(state)
        self._bring_options()
        self._messages = [_Message(self, name) for name in sorted({name for share in self.shares for name in share})]

    def _bring_options(self):
        """The options of the inner optimizer, including defaults."""
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            group.update({name: value for name, value in inner.items() if name != "params"})

    def _take_options(self):
        """Copy options changed by schedulers and users to the inner optimizer."""
        for group, inner in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in group.items():
                if name not in ("params", "param_names"):
                    inner[name] = value

    def step(self, closure=None, **options):
        """
        Update this rank's parameters that have a gradient, and broadcast all parameters.

        Parameters
        ----------
        closure : callable, optional
            Function that computes the loss and its gradients.
        **options
            Passed on to the optimizer.

        Returns
        -------
        The result of the closure, or None.
        """
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._take_options()
        self.optim.step(**options)
        for message in self._messages:
            self.process_group.run("all_gather", message.steps(), detail="parameters of ZeroRedundancyOptimizer")
        self._bring_options()
        return loss

    # ---- saving and loading

    def consolidate_state_dict(self, to=0):
        """
        Gather the states of all ranks on one rank, for `state_dict`.

        Parameters
        ----------
        to : int, default 0
            The rank in the world.
        """
        self._take_options()
        numbers = {parameter: number for number, parameter in enumerate(
            parameter for group in self.param_groups for parameter in group["params"])}
        own = {numbers[parameter]: {name: value.detach().clone() if isinstance(value, Tensor) else value
                                    for name, value in state.items()}
               for parameter, state in self.optim.state.items()}
        group = self.process_group
        here = group.own_global_rank == to
        found = [None] * group.size() if here else None
        gather_object(own, found, to, group)
        self._gathered = {number: state for part in found for number, state in part.items()} if here else None

    def state_dict(self):
        """
        Return the state of all parameters, as in a single process, on the rank that has gathered it.

        Raises
        ------
        RuntimeError
            If `consolidate_state_dict` has not been called on all ranks.
        """
        if self._gathered is None:
            raise RuntimeError("ZeroRedundancyOptimizer: the state has not been gathered (got the shard of this rank). "
                               f"Call consolidate_state_dict(to={self.process_group.own_global_rank}) on all ranks "
                               "first.")
        found = super().state_dict()
        found["state"] = dict(sorted(self._gathered.items()))
        return found

    def load_state_dict(self, state_dict):
        """Load a result of `state_dict`; each rank keeps the state of its parameters."""
        super().load_state_dict(state_dict)
        own = self.process_group.own_rank
        self._take_options()
        self.optim.state.clear()
        for parameter, state in self.state.items():
            if self.owners.get(parameter) == own:
                self.optim.state[parameter] = deepcopy(state)
        self.state.clear()
        self._gathered = None

    # ---- inputs of different lengths

    def join_hook(self, **kwargs):
        """Step on a rank without inputs, with the received gradients."""
        return _JoinHook(self)

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group


class _JoinHook(JoinHook):
    """Step while other ranks do."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def main_hook(self):
        """Run one step."""
        self.optimizer.step()


class _Message:
    """Concatenate all parameters of one dtype, rank by rank."""

    def __init__(self, optimizer, name):
        self.group, self.as_views = optimizer.process_group, optimizer.as_views
        shares = [share.get(name, []) for share in optimizer.shares]
        self.counts = [sum(parameter.numel() for parameter in share) for share in shares]
        self.parameters = [parameter for share in shares for parameter in share]
        self.own = set(shares[self.group.own_rank])
        sizes = [parameter.numel() for parameter in self.parameters]
        self.memory = np.empty(sum(sizes), array_of("step", self.parameters[0]).dtype)
        self.parts = [part.reshape(tuple(parameter.shape)) for part, parameter in
                      zip(np.split(self.memory, np.cumsum(sizes)[:-1]), self.parameters, strict=True)]
        if self.as_views:
            for part, parameter in zip(self.parts, self.parameters, strict=True):
                part[...] = array_of("step", parameter)
                parameter.data = tensor_over(part, parameter.dtype)

    def steps(self):
        """Run the steps of gathering them."""
        pairs = [] if self.as_views else list(zip(self.parts, self.parameters, strict=True))
        for part, parameter in pairs:
            if parameter in self.own:
                part[...] = array_of("step", parameter)
        yield self.group.comm.Iallgatherv(self.group.in_place, [self.memory, self.counts])
        for part, parameter in pairs:
            if parameter not in self.own:
                array_of("step", parameter)[...] = part
        written(*self.parameters)
