"""
PowerSGD: low-rank approximation of gradients (Vogels, Karimireddy and Jaggi, 2019).

One step of the power method for each gradient, started from the previous result, approximates it by a product of two
matrices of low rank. The error is added to the next gradient.
"""

import numpy as np

import cygrad
from cygrad.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from cygrad.distributed.collectives import all_reduce
from cygrad.distributed.memory import SHORT
from cygrad.distributed.world import member

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """
    State of `powerSGD_hook`.

    Parameters
    ----------
    process_group : ProcessGroup or None
    matrix_approximation_rank : int, default 1
        Number of columns of the low-rank matrices.
    start_powerSGD_iter : int, default 1000
        Number of first iterations without compression; at least 2 with `use_error_feedback` or `warm_start`, because
        buckets are rebuilt after the first.
    min_compression_rate : float, default 2
        Minimum factor by which a gradient must be compressed; others are sent unchanged.
    use_error_feedback : bool, default True
        Whether to add the error to the next gradient.
    warm_start : bool, default True
        Whether a step starts from the previous result, instead of random numbers.
    orthogonalization_epsilon : float, default 0
        Added to the norms of columns, to avoid division by zero.
    random_seed : int, default 0
        Seed of the random numbers; the same on all ranks.
    compression_stats_logging_frequency : int, default 10000
        Accepted and ignored; use `compression_stats`.
    batch_tensors_with_same_shape : bool, default False
        Accepted and ignored: all low-rank matrices of a bucket are always sent together.

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> distributed.destroy_process_group()
    """

    def __init__(self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1000, min_compression_rate=2,
                 use_error_feedback=True, warm_start=True, orthogonalization_epsilon=0, random_seed=0,
                 compression_stats_logging_frequency=10_000, batch_tensors_with_same_shape=False):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                             "because PowerSGD can only be applied after the first two iterations in DDP (got "
                             f"{start_powerSGD_iter}).")
        if matrix_approximation_rank < 1:
            raise ValueError("PowerSGDState: matrix_approximation_rank must be at least 1 (got "
                             f"{matrix_approximation_rank}).")
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.random = np.random.default_rng(random_seed)
        self.iter = 0
        self.errors = {}              # index of the bucket -> error
        self.directions = {}          # (index of the bucket, index of the matrix) -> start of the next step
        self.before = self.after = 0  # number of elements

    def compression_stats(self):
        """Return the compression rate, and the number of elements before and after compression."""
        return (self.before / self.after if self.after else 0.0), self.before, self.after

    def start(self, bucket, place, columns, rank, dtype):
        """Return the start of the power method, the same on all ranks."""
        found = self.directions.get((bucket.index(), place))
        if found is None or not self.warm_start:
            found = cygrad.from_numpy(self.random.standard_normal((columns, rank))).to(dtype)
            orthogonalize(found, self.orthogonalization_epsilon)
        return found


def orthogonalize(matrix, epsilon=0):
    """
    Orthonormalize the columns, in place.

    Uses reflections if epsilon is 0, because the Gram-Schmidt method leaves rounding errors for linearly dependent
    columns.
    """
    wide = matrix.to(SHORT[matrix.dtype][2]) if matrix.dtype in SHORT else matrix
    if epsilon == 0:
        wide = cygrad.linalg.qr(wide)[0]
    else:
        for number in range(wide.shape[1]):
            column, rest = wide[:, number:number + 1], wide[:, number + 1:]
            column.div_(column.norm() + epsilon)
            rest.sub_(column @ (column.conj().t() @ rest))
    if wide is not matrix:
        matrix.copy_(wide)


def powerSGD_hook(state, bucket):
    """
    Average the low-rank approximations of the gradients.

    Gradients of one dimension, and those below the minimum compression rate, are sent unchanged.

    Parameters
    ----------
    state : PowerSGDState
    bucket : GradBucket

    Returns
    -------
    Future

    Examples
    --------
    >>> from cygrad import distributed
    >>> from cygrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> distributed.init_process_group()
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook)
    >>> model(cygrad.ones(1, 2)).sum().backward()
    >>> distributed.destroy_process_group()
    """
    if state.iter < state.start_powerSGD_iter:
        state.iter += bucket.is_last()
        return allreduce_hook(state.process_group, bucket)
    group = member(state.process_group)
    buffer, kept = bucket.buffer(), None
    if state.use_error_feedback:
        missed = state.errors.get(bucket.index())
        if missed is not None and missed.shape == buffer.shape:
            buffer.add_(missed)
        kept = buffer.clone()
    thin, plain = [], []
    for place, gradient in enumerate(bucket.gradients()):
        matrix = gradient.view(gradient.shape[0], -1) if gradient.ndim > 1 and gradient.numel() else None
        rank = min(state.matrix_approximation_rank, *matrix.shape) if matrix is not None else 0
        if rank and sum(matrix.shape) * rank * state.min_compression_rate < matrix.numel():
            thin.append((place, matrix, state.start(bucket, place, matrix.shape[1], rank, matrix.dtype)))
        else:
            plain.append(gradient)
    state.before += buffer.numel()
    state.after += sum(sum(matrix.shape) * q.shape[1] for _, matrix, q in thin) + sum(part.numel() for part in plain)

    def sent(parts, step):
        """Average tensors over the ranks in one message; return a future of them."""
        together = cygrad.cat([part.reshape(-1) for part in parts]) if parts else cygrad.zeros(0, dtype=buffer.dtype)
        work = all_reduce(together, group=group, async_op=True, detail=lambda: f"{step} of {bucket.describe()}")
        return work.get_future().then(lambda future: _cut(future.value()[0].div_(group.size()), parts))

    def second(future):
        """Orthonormalize the left factors, and start the reduction of the right ones."""
        averages = future.value()
        lefts = averages[:len(thin)]
        for target, average in zip(plain, averages[len(thin):], strict=True):
            target.copy_(average)
        for left in lefts:
            orthogonalize(left, state.orthogonalization_epsilon)
        rights = [matrix.conj().t() @ left for (_, matrix, _), left in zip(thin, lefts, strict=True)]
        return sent(rights, "right factors").then(lambda future: finished(lefts, future.value()))

    def finished(lefts, rights):
        for (place, matrix, _), left, right in zip(thin, lefts, rights, strict=True):
            matrix.copy_(left @ right.conj().t())
            if state.warm_start:
                orthogonalize(right, state.orthogonalization_epsilon)
                state.directions[bucket.index(), place] = right
        if state.use_error_feedback:
            for gradient, (start, size) in zip(bucket.gradients(), _places(bucket.gradients()), strict=True):
                part = kept[start:start + size]
                part.sub_(gradient.reshape(-1)) if gradient.ndim > 1 else part.zero_()
            state.errors[bucket.index()] = kept
        return buffer

    state.iter += bucket.is_last()
    return sent([*(matrix @ q for _, matrix, q in thin), *plain], "left factors").then(second)


def _places(tensors):
    start = 0
    for tensor in tensors:
        yield start, tensor.numel()
        start += tensor.numel()


def _cut(together, parts):
    return [together[start:start + size].view(tuple(part.shape)).clone()
            for part, (start, size) in zip(parts, _places(parts), strict=True)]
