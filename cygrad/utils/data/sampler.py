"""Samplers of indices."""

import itertools
from collections.abc import Sized

import cygrad
from cygrad._core.graph.argument_errors import as_instance

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]

CHUNK = 32                 # numbers drawn in one call with replacement


def counted(self, what):
    """Return the `__repr__` of a sampler or dataset: class, and length if known."""
    try:
        return f"{type(self).__name__}({len(self)} {what})"
    except Exception:                     # a subclass may have no length, or fail to compute it
        return f"{type(self).__name__}()"


class Sampler:
    """
    Base class of samplers: a subclass defines ``__iter__()``, which yields indices, and optionally ``__len__()``.

    Examples
    --------
    >>> from cygrad.utils.data import Sampler
    >>> class Backwards(Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...
    ...     def __iter__(self):
    ...         return iter(range(len(self.data) - 1, -1, -1))
    >>> list(Backwards("abc"))
    [2, 1, 0]
    """

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: Subclasses of Sampler should implement __iter__.")

    def __repr__(self):
        return counted(self, "indices")

    def __class_getitem__(cls, kind):
        """``Sampler[int]`` in annotations is the class itself."""
        return cls


class SequentialSampler(Sampler):
    """
    Sample sequentially.

    Parameters
    ----------
    data_source : Dataset

    Examples
    --------
    >>> from cygrad.utils.data import SequentialSampler
    >>> list(SequentialSampler([5, 6, 7]))
    [0, 1, 2]
    """

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


def _generator(generator):
    """Return the generator, or a new one, seeded by the default generator."""
    if generator is not None:
        return generator
    seed = cygrad.empty((), dtype=cygrad.int64).random_().item()
    return cygrad.Generator().manual_seed(seed)


class RandomSampler(Sampler):
    """
    Sample in random order.

    Parameters
    ----------
    data_source : Dataset
    replacement : bool, default False
        Whether to draw with replacement.
    num_samples : int, optional
        Number of samples; the length of the dataset by default.
    generator : Generator, optional

    Examples
    --------
    >>> from cygrad.utils.data import RandomSampler
    >>> sorted(RandomSampler([5, 6, 7]))
    [0, 1, 2]
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement must be True or False (got {replacement}).")
        if num_samples is None:
            as_instance("RandomSampler", "data_source", data_source, Sized)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples < 0 or (num_samples is not None
                                                                             and num_samples < 1):
            raise ValueError(f"RandomSampler: num_samples must be a positive integer (got {self.num_samples}).")

    @property
    def num_samples(self):
        """Return the number of indices of an epoch."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, generator = len(self.data_source), _generator(self.generator)
        if self.replacement:
            for start in range(0, self.num_samples, CHUNK):
                size = min(CHUNK, self.num_samples - start)
                yield from cygrad.randint(n, (size,), generator=generator).tolist()
        elif n:
            for start in range(0, self.num_samples, n):
                yield from cygrad.randperm(n, generator=generator).tolist()[:self.num_samples - start]
            if self.generator is not None and self.num_samples % n == 0:
                cygrad.randperm(n, generator=generator)        # consume random numbers as PyTorch does

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """
    Sample given indices in random order.

    Parameters
    ----------
    indices : sequence of int
    generator : Generator, optional

    Examples
    --------
    >>> from cygrad.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for position in cygrad.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """
    Sample indices with given weights.

    Parameters
    ----------
    weights : sequence of float
        Need not sum to 1.
    num_samples : int
        Number of samples.
    replacement : bool, default True
    generator : Generator, optional

    Examples
    --------
    >>> from cygrad.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: num_samples must be a positive integer (got {num_samples}).")
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement must be True or False (got {replacement}).")
        self.weights = cygrad.as_tensor(weights, dtype=cygrad.float64)
        if self.weights.ndim != 1:
            raise ValueError("WeightedRandomSampler: weights must have one dimension (got shape "
                             f"{tuple(self.weights.shape)}).")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        yield from cygrad.multinomial(self.weights, self.num_samples, self.replacement,
                                      generator=self.generator).tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """
    Collect the indices of a sampler in batches.

    Parameters
    ----------
    sampler : Sampler or iterable of int
    batch_size : int
    drop_last : bool
        Whether to drop an incomplete last batch.

    Examples
    --------
    >>> from cygrad.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"BatchSampler: batch_size must be a positive integer (got {batch_size}).")
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last must be True or False (got {drop_last}).")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        return (len(self.sampler) if self.drop_last else len(self.sampler) + self.batch_size - 1) // self.batch_size
