"""Sampler for distributed training."""

import math

import cygrad
from cygrad import distributed
from cygrad.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """
    Sampler of the indices of one rank; all ranks together cover the dataset once.

    All ranks get the same number: samples are repeated if it is not divisible, or dropped with `drop_last`.

    Parameters
    ----------
    dataset : Dataset
    num_replicas : int, optional
        Number of ranks; the world size by default.
    rank : int, optional
        Rank; that of this process by default.
    shuffle : bool, default True
    seed : int, default 0
        Seed of the order; must be equal on all ranks.
    drop_last : bool, default False
        Whether to drop samples at the end instead of repeating some.

    Examples
    --------
    >>> from cygrad.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"DistributedSampler: rank must be from 0 to {num_replicas - 1} (got {rank}).")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0

    @property
    def num_samples(self):
        """Return the number of indices of each rank."""
        n = len(self.dataset)
        return n // self.num_replicas if self.drop_last else math.ceil(n / self.num_replicas)

    @property
    def total_size(self):
        """Return the number of indices of all ranks."""
        return self.num_samples * self.num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            order = cygrad.randperm(n, generator=cygrad.Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            order = list(range(n))
        if n:
            order = (order * math.ceil(self.total_size / n))[:self.total_size]
        return iter(order[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """
        Set the epoch, which determines the order. Call it on all ranks.

        Parameters
        ----------
        epoch : int
        """
        self.epoch = epoch
