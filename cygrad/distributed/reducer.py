"""Averaging of gradients over ranks during backward."""

import functools

import numpy as np

from cygrad import Tensor, from_numpy
from cygrad._core.engine.plan import queue_callback, running
from cygrad.autograd import Function
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.fixed_tree import tree_all_reduce
from cygrad.distributed.grad_bucket import distribute
from cygrad.distributed.memory import array_of
from cygrad.distributed.objects import broadcast_object_list
from cygrad.distributed.reduce_op import ReduceOp
from cygrad.distributed.work import written

__all__ = ["Reducer", "mapped"]

FIRST_BYTES = 2 ** 20      # of the first bucket, so that communication starts early


class Reducer:
    """
    Averages gradients over the ranks of a group during backward.

    A hook of each parameter copies its gradient to a bucket. Full buckets are sent in order, which is the same on all
    ranks; the end of backward waits for all.

    Parameters
    ----------
    parameters : list of (str, Tensor)
        Parameters that require grad.
    group : ProcessGroup
    most_bytes : float
        Maximum size of a bucket.
    find_unused : bool
        Whether parameters can be without a gradient.
    as_views : bool
        Whether ``.grad`` is a view of its bucket.
    static : bool
        Whether all backwards use the same graph.
    deterministic : bool
        Whether sums are deterministic.
    """

    def __init__(self, parameters, group, most_bytes, find_unused, as_views, static, deterministic):
        self.parameters, self.group, self.most_bytes = parameters, group, most_bytes
        self.find_unused, self.as_views, self.static = find_unused, as_views, static
        self.sum = tree_all_reduce if deterministic else all_reduce
        self.hook = None                       # communication hook: (state, function)
        self.divisor = group.size()
        self.times = [1] * len(parameters)     # number of runs of each hook in one backward
        self.waits = list(self.times)          # number of these runs left
        self.expecting = False                 # whether the backward averages
        self.learning = static                 # whether to count `times`
        self.started, self.in_progress = 0, []   # number of buckets
        self.came = []                         # the order of readiness in the first backward
        self.last_backward = None              # the last averaging backward, including nested ones
        self.rebuild_due = self.rebuilt = False
        self.marked, self.unused, self.used = True, (), None
        self.build(range(len(parameters) - 1, -1, -1))
        for number, (_, parameter) in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(functools.partial(self.ready, number))

    def build(self, order):
        """Create buckets in the order of readiness."""
        self.buckets = distribute(self.parameters, list(order), min(FIRST_BYTES, self.most_bytes), self.most_bytes)
        self.places = {number: (bucket, place) for bucket in self.buckets
                       for place, (number, _, _) in enumerate(bucket.members)}

    # ---- before backward

    def rebuild(self):
        """Rebuild buckets in the order of readiness on rank 0, after the first backward."""
        if self.rebuild_due:
            self.rebuild_due, self.rebuilt = False, True
            found = [self.came]
            broadcast_object_list(found, group=self.group, src=self.group.ranks[0])
            seen = dict.fromkeys(found[0])
            self.build([*seen, *(number for number in range(len(self.parameters) - 1, -1, -1) if number not in seen)])

    def prepare(self, output):
        """
        Prepare for a backward.

        Parameters
        ----------
        output : any
            Output of the module.

        Returns
        -------
        any
            The output, possibly with an additional node.
        """
        if self.expecting and self.waits != self.times:
            missing = [name for wait, (name, _) in zip(self.waits, self.parameters, strict=True) if wait > 0]
            raise RuntimeError(
                "DistributedDataParallel: a new forward started before all gradients of the last backward were "
                f"reduced (rank {self.group.own_global_rank} got no gradient for {', '.join(missing[:10])}"
                f"{' and others' if len(missing) > 10 else ''}). Parameters that are not used in producing the loss "
                "need find_unused_parameters=True, and all outputs of forward must be used.")
        self.expecting, self.marked, self.started = True, False, 0
        self.waits = list(self.times)
        for bucket in self.buckets:
            bucket.pending = len(bucket.members)
        if self.find_unused and not self.static:
            self.unused = self.unreached(output)
        if self.learning or self.find_unused:
            return mapped(output, lambda tensors: _Sink.apply(self, *tensors))
        return output

    def unreached(self, output):
        """Return the indices of parameters that the graph of the output does not reach."""
        found = []
        mapped(output, lambda tensors: found.extend(tensors) or tensors)
        stack = [tensor.grad_fn for tensor in found]
        seen, reached = set(stack), {id(tensor) for tensor in found}
        while stack:
            node = stack.pop()
            for following, _ in () if node is None else node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    if hasattr(following, "variable"):
                        reached.add(id(following.variable))
                    else:
                        stack.append(following)
        return [number for number, (_, parameter) in enumerate(self.parameters) if id(parameter) not in reached]

    # ---- during backward

    def begin(self):
        """Start averaging; called when backward reaches the outputs of the module."""
        if self.expecting and self.learning:
            queue_callback(self.learned)
        elif self.expecting:
            self.mark_unused()

    def ready(self, number, parameter):
        """Hook that handles the complete gradient of a parameter."""
        if not self.expecting:
            if self.last_backward is not None and running()[-1] == self.last_backward:
                self.refuse(number)
            return
        if self.learning:
            self.waits[number] -= 1                        # negative: counts the calls
            self.came.append(number)
            return
        self.mark_unused()
        self.waits[number] -= 1
        if self.waits[number] == 0:
            if not self.rebuilt:
                self.came.append(number)
            self.fill(number, parameter)
        elif self.waits[number] < 0:
            self.refuse(number)

    def refuse(self, number):
        """Handle a gradient that arrives after its bucket was sent."""
        raise RuntimeError(
            "DistributedDataParallel: expected one gradient of each parameter in a backward (got a second one of "
            f"{self.parameters[number][0]} on rank {self.group.own_global_rank}). Pass static_graph=True for "
            "parameters that are used in several nested backwards, as in reentrant checkpoints.")

    def mark_unused(self):
        """Mark parameters that will get no gradient as ready."""
        if not self.marked:
            self.marked = True
            for number in self.unused:
                self.waits[number] = 0
                self.fill(number, self.parameters[number][1])

    def fill(self, number, parameter):
        """Copy a gradient to its bucket, and send full buckets."""
        bucket, place = self.places[number]
        if parameter.grad is None:
            bucket.arrays[place][...] = 0
        else:
            bucket.put(place, parameter.grad, 1 / self.divisor if self.hook is None else 1)
        bucket.pending -= 1
        if bucket.pending == 0 and bucket.number == self.started:
            self.start()
            if self.started == len(self.buckets):
                queue_callback(self.finish)
        elif self.in_progress:                               # make progress on communication
            self.in_progress = [future for future in self.in_progress if not future.done()]

    def start(self):
        """Send full buckets, up to the first that is not full."""
        while self.started < len(self.buckets) and self.buckets[self.started].pending == 0:
            bucket = self.buckets[self.started]
            if self.hook is None:
                bucket.future = self.sum(bucket.flat, group=self.group, async_op=True, detail=bucket.describe)
            else:
                bucket.future = self.hook[1](self.hook[0], bucket)
            self.in_progress.append(bucket.future)
            self.started += 1

    def learned(self):
        """Store which gradients arrived, and how often, after the first backward of a static graph."""
        self.learning = False
        self.times = [1 - wait for wait in self.waits]
        self.unused = [number for number, times in enumerate(self.times) if times == 0]
        self.came = list(dict.fromkeys(reversed(self.came)))[::-1]
        for number, (_, parameter) in enumerate(self.parameters):
            self.fill(number, parameter)

    # ---- the end of backward

    def finish(self):
        """Wait for all buckets, and write the averages to ``.grad``."""
        self.expecting, self.in_progress = False, []
        self.last_backward = running()[-1] if running() else None
        self.find_used()
        for bucket in self.buckets:
            result, bucket.future = bucket.future.wait(), None
            if self.hook is not None:
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not bucket.flat:
                    bucket.set_buffer(result)
            for place, (number, _, parameter) in enumerate(bucket.members):
                if self.used is None or self.used[number]:
                    self.bring(parameter, bucket, place)
        if not self.rebuilt and (self.static or not self.find_unused) and len(self.buckets) > 1:
            self.rebuild_due = True
        else:
            self.came = []

    def find_used(self):
        """Determine which parameters have a gradient on any rank: in each backward, or once for a static graph."""
        if (self.used is None) if self.static else self.find_unused:
            self.used = np.ones(len(self.parameters), np.uint8)
            self.used[list(self.unused)] = 0
            all_reduce(from_numpy(self.used), ReduceOp.MAX, self.group, detail="which parameters are used")

    def bring(self, parameter, bucket, place):
        """Write the average of a gradient to ``.grad``."""
        grad, view = parameter.grad, bucket.views[place]
        if grad is None:
            parameter.grad = view if self.as_views else view.clone()
        elif not self.as_views:
            np.copyto(array_of("GradBucket", grad), bucket.arrays[place])
            written(grad)
        elif grad.data_ptr() != view.data_ptr():
            parameter.grad = view

    def shadow(self):
        """Join the averages without local gradients."""
        for bucket in self.buckets:
            bucket.array[...] = 0
            bucket.pending = 0
        self.unused, self.started = range(len(self.parameters)), 0
        self.start()
        self.finish()


class _Sink(Function):
    """Identity of the outputs of a module; its backward notifies the reducer."""

    @staticmethod
    def forward(ctx, reducer, *tensors):
        ctx.reducer = reducer
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        ctx.reducer.begin()
        return None, *grads


def mapped(structure, function):
    """
    Apply a function to all tensors that require grad in a structure.

    Parameters
    ----------
    structure : any
        Tensors in tuples, lists and dicts.
    function : callable
        Function of a list of tensors that returns as many.
    """
    found = []

    def collect(part):
        if isinstance(part, Tensor):
            if part.requires_grad:
                found.append(part)
        elif isinstance(part, (list, tuple)):
            for item in part:
                collect(item)
        elif isinstance(part, dict):
            for item in part.values():
                collect(item)

    def replaced(part):
        if isinstance(part, Tensor):
            return next(results) if part.requires_grad else part
        if isinstance(part, tuple) and hasattr(part, "_fields"):
            return type(part)(*map(replaced, part))
        if isinstance(part, (list, tuple)):
            return type(part)(map(replaced, part))
        if isinstance(part, dict):
            return type(part)((key, replaced(item)) for key, item in part.items())
        return part

    collect(structure)
    if not found:
        return structure
    results = iter(function(found))
    return replaced(structure)
