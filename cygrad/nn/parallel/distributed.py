"""DistributedDataParallel: data parallelism on several processes."""

import contextlib

import cygrad
from cygrad import is_grad_enabled
from cygrad.distributed.algorithms.join import Join, Joinable, JoinHook
from cygrad.distributed.coalesced import broadcast_coalesced
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.objects import all_gather_object
from cygrad.distributed.reduce_op import ReduceOp
from cygrad.distributed.reducer import Reducer
from cygrad.distributed.world import member
from cygrad.nn.module import Module
from cygrad.nn.parameter import is_lazy

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module, Joinable):
    """
    Wrap a module so that backward averages its gradients over the ranks of a group.

    Each rank runs the module on its own batch. The constructor broadcasts the parameters and buffers of rank 0. Ranks
    have equal gradients after backward, hence equal parameters after each step of the optimizer. If the loss is a mean
    and batches have the same size, the result is that of one process with all batches.

    Gradients are reduced in buckets, each as soon as its last gradient is computed.

    Parameters
    ----------
    module : Module
    device_ids, output_device, dim, check_reduction, mixed_precision, device_mesh, delay_all_reduce_named_params, \
param_to_hook_all_reduce, skip_all_reduce_unused_params : optional
        Accepted for compatibility; those that would change results must be None or the default.
    broadcast_buffers : bool, default True
        Whether forward broadcasts the buffers of rank 0.
    init_sync : bool, default True
        Whether the constructor checks and broadcasts parameters and buffers.
    process_group : ProcessGroup, optional
        The default group if None.
    bucket_cap_mb : float, default 25
        Maximum size of a bucket in MiB; the first bucket has 1 MiB.
    find_unused_parameters : bool, default False
        Whether each forward searches for parameters that the outputs do not depend on. Their ``.grad`` is unchanged if
        no rank uses them.
    gradient_as_bucket_view : bool, default False
        Whether ``.grad`` is a view of its bucket, which saves a copy. The next backward overwrites it.
    static_graph : bool, default False
        Whether all iterations use the same parameters the same number of times. Then unused parameters need no search,
        and checkpoints may use a parameter several times.
    deterministic : bool, default False
        Whether gradients are summed in a fixed order of ranks, bit-identical in each run with the same number of ranks.

    Attributes
    ----------
    module : Module

    Examples
    --------
    >>> from cygrad import distributed
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
    >>> model(cygrad.ones(4, 3)).sum().backward()
    >>> model.module.bias.grad
    tensor([4.])
    >>> distributed.destroy_process_group()
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True,
                 process_group=None, bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False,
                 gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None,
                 param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None,
                 skip_all_reduce_unused_params=False, *, deterministic=False):
        super().__init__()
        given = {"delay_all_reduce_named_params": delay_all_reduce_named_params, "mixed_precision": mixed_precision,
                 "param_to_hook_all_reduce": param_to_hook_all_reduce, "device_mesh": device_mesh}
        for name, value in given.items():
            if value is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported (got {value!r}, expected "
                                          "None). Omit it.")
        self.process_group = member(process_group)
        if self.process_group is None:
            raise ValueError("DistributedDataParallel: this process is not in process_group (got "
                             "GroupMember.NON_GROUP_MEMBER). Create the module on members only.")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, parameter) for name, parameter in module.named_parameters() if name not in ignored]
        if not any(parameter.requires_grad for _, parameter in named):
            raise RuntimeError("DistributedDataParallel: no parameter requires grad. Use the module without "
                               "DistributedDataParallel.")
        lazy = [name for name, parameter in named if is_lazy(parameter)]
        if lazy:
            raise RuntimeError(f"DistributedDataParallel: parameters are uninitialized (got {', '.join(lazy)}). Call "
                               "the module once first.")
        most = 25 if bucket_cap_mb is None else bucket_cap_mb
        if not isinstance(most, (int, float)) or not most > 0:
            raise ValueError(f"DistributedDataParallel: bucket_cap_mb must be a positive number (got "
                             f"{bucket_cap_mb!r}).")
        self.module = module
        self.dim, self.broadcast_buffers, self.static_graph = dim, broadcast_buffers, static_graph
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._options = ignored, most * 2 ** 20, deterministic
        self._attach()
        if init_sync:
            self._check_shapes([*named, *module.named_buffers()])
            broadcast_coalesced(self.process_group, self._shared, detail="parameters and buffers")

    def _attach(self):
        """Create the reducer and collect the tensors to broadcast."""
        ignored, most_bytes, deterministic = self._options
        named, buffers = ([pair for pair in pairs if pair[0] not in ignored]
                          for pairs in (self.module.named_parameters(), self.module.named_buffers()))
        self._buffers_shared = [buffer for _, buffer in buffers]
        self._shared = [parameter for _, parameter in named] + self._buffers_shared
        self._reducer = Reducer([pair for pair in named if pair[1].requires_grad], self.process_group, most_bytes,
                                self.find_unused_parameters, self.gradient_as_bucket_view, self.static_graph,
                                deterministic)
        self._alone = self.process_group.size() == 1

    def _check_shapes(self, named):
        """Check on all ranks that models have the same shapes."""
        group = self.process_group
        own = [(name, tuple(tensor.shape), tensor.dtype.name) for name, tensor in named]
        found = [None] * group.size()
        all_gather_object(found, own, group)
        for rank, other in zip(group.ranks, found, strict=True):
            if other != found[0]:
                pairs = [(mine, theirs) for mine, theirs in zip(found[0], other, strict=False) if mine != theirs]
                what = (f"{pairs[0][0]} on rank {group.ranks[0]} and {pairs[0][1]} on rank {rank}" if pairs else
                        f"{len(found[0])} tensors on rank {group.ranks[0]} and {len(other)} on rank {rank}")
                raise RuntimeError(f"DistributedDataParallel: parameters and buffers must have the same shapes on "
                                   f"all ranks (got {what}). Create the same model on all ranks.")

    def forward(self, *inputs, **kwargs):
        """Run the module."""
        sync = self.require_backward_grad_sync and is_grad_enabled()
        root = 0
        if self.joining is not None:
            Join.notify_join_context(self)
            sync, root = self._agree(sync, True)
        if self._alone and self._reducer.hook is None:
            return self.module(*inputs, **kwargs)
        if sync:
            self._reducer.rebuild()
        self._send_buffers(root)
        output = self.module(*inputs, **kwargs)
        return self._reducer.prepare(output) if sync else self._left_alone(output)

    def _left_alone(self, output):
        """Do not average the gradients of this forward."""
        if is_grad_enabled():
            self._reducer.expecting = False
        return output

    def _send_buffers(self, root):
        if self.broadcast_buffers and self.require_forward_param_sync and self._buffers_shared:
            broadcast_coalesced(self.process_group, self._buffers_shared, root, "buffers")

    def _agree(self, sync, here):
        """Under a join, return whether this iteration averages, and the rank that broadcasts buffers."""
        size = self.process_group.size()
        if here and not self._divide_by_initial_size:
            self._reducer.divisor = self.joining.active
        agreed = cygrad.tensor([int(sync), self.process_group.own_rank if here else -1])
        all_reduce(agreed, ReduceOp.MAX, self.process_group, detail="whether to average")
        return bool(agreed[0]), min(int(agreed[1]), size - 1)

    @contextlib.contextmanager
    def no_sync(self):
        """
        Accumulate gradients locally, without averaging, in a block with forward and backward.

        The first backward outside averages the accumulated gradients.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook):
        """
        Register a communication hook, which replaces the allreduce of buckets.

        Parameters
        ----------
        state : object
            First argument of the hook.
        hook : callable
            ``hook(state, bucket)`` returns a Future of the averaged ``bucket.buffer()``. See
            ``cygrad.distributed.algorithms.ddp_comm_hooks``.
        """
        if not callable(hook):
            raise TypeError(f"register_comm_hook: Communication hook must be callable (got {type(hook).__name__}).")
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook: can only be called once (got a second hook). Create a new "
                               "DistributedDataParallel.")
        self._reducer.hook = state, hook

    # ---- inputs of different lengths

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """
        Return a context for loops of different lengths: ranks that are done continue to communicate.

        Parameters
        ----------
        divide_by_initial_world_size : bool, default True
            Whether sums of gradients are divided by the number of all ranks instead of those that still have inputs.
        enable : bool, default True
        throw_on_early_termination : bool, default False
            Whether all ranks raise when one is done.

        Returns
        -------
        Join
        """
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)

    def join_hook(self, divide_by_initial_world_size=True, **kwargs):
        """Return the join hook of a rank that is done."""
        self._divide_by_initial_size = divide_by_initial_world_size
        return _JoinHook(self)

    @property
    def join_process_group(self):
        """The process group."""
        return self.process_group

    def __getstate__(self):
        """Exclude the process group and the communication hook; copies use the default group."""
        left_out = ("process_group", "joining", "_reducer", "_shared", "_buffers_shared")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.process_group = member(None)
        self._attach()


class _JoinHook(JoinHook):
    """Join hook that shadows the iterations of other ranks."""

    def __init__(self, model):
        self.model = model

    def main_hook(self):
        """Run the collectives of one iteration in the same order."""
        model = self.model
        sync, root = model._agree(False, False)
        if sync:
            model._reducer.rebuild()
        model._send_buffers(root)
        if sync:
            model._reducer.shadow()

    def post_hook(self, is_last_joiner):
        """Receive parameters and buffers from one of the last ranks."""
        model = self.model
        last = cygrad.tensor([model.process_group.own_rank if is_last_joiner else -1])
        all_reduce(last, ReduceOp.MAX, model.process_group, detail="who was last")
        model._reducer.divisor = model.process_group.size()
        broadcast_coalesced(model.process_group, model._shared, last.item(), "parameters and buffers")
