"""Datasets: map-style and iterable-style."""

import bisect
import itertools
import math
import warnings
from collections.abc import Sized
from importlib import import_module
from typing import Any

import cygrad
from cygrad import Tensor
from cygrad._core.graph.argument_errors import as_instance, as_items, names_arguments
from cygrad.utils.data.sampler import counted

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
           "random_split"]


class Dataset:
    """
    Map-style dataset: a subclass defines ``__getitem__(index)`` and ``__len__()``.

    It may also define ``__getitems__(indices)``, which returns a list of samples. Worker threads of `DataLoader` call
    these methods concurrently.

    Examples
    --------
    >>> from cygrad.utils.data import DataLoader, Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, index):
    ...         return cygrad.tensor(index ** 2)
    >>> list(DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4, 9])]
    """

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__}: Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def __repr__(self):
        return counted(self, "samples")

    def _repr_html_(self):
        return import_module("cygrad.notebook.objects").object_html(self)

    def __class_getitem__(cls, kind):
        """``Dataset[int]`` in annotations is the class itself."""
        return cls


class IterableDataset(Dataset):
    """
    Iterable-style dataset: a subclass defines ``__iter__()``.

    Each worker iterates over the whole dataset; use `get_worker_info` to select its part.

    Examples
    --------
    >>> from cygrad.utils.data import DataLoader, IterableDataset
    >>> class Numbers(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> list(DataLoader(Numbers(), batch_size=2))
    [tensor([0, 1]), tensor([2, 3])]
    """

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """
    Dataset of tensors: sample i is the tuple of their elements i.

    Parameters
    ----------
    *tensors : Tensor
        Of equal size in the first dimension.

    Raises
    ------
    ValueError
        If the sizes differ.

    Examples
    --------
    >>> data = cygrad.utils.data.TensorDataset(cygrad.arange(3), cygrad.arange(3) * 10)
    >>> data[1]
    (tensor(1), tensor(10))
    """

    def __init__(self, *tensors):
        for position, tensor in enumerate(tensors):
            as_instance("TensorDataset", f"tensors[{position}]", tensor, Tensor)
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise ValueError("TensorDataset: Size mismatch between tensors (got first dimensions "
                             f"{[tensor.shape[0] for tensor in tensors]}).")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class StackDataset(Dataset):
    """
    Stack several datasets: samples are tuples, or dicts for keyword arguments.

    Parameters
    ----------
    *args, **kwargs : Dataset
        Datasets of the same length, either positional or by keyword.

    Examples
    --------
    >>> from cygrad.utils.data import StackDataset
    >>> StackDataset([1, 2], [3, 4])[1]
    (2, 4)
    """

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError(f"StackDataset: expected either positional or keyword arguments (got {len(args)} and "
                             f"{len(kwargs)}).")
        self.datasets: Any = args or kwargs
        lengths = [len(dataset) for dataset in as_items("StackDataset", "datasets", args or kwargs.values(), Sized)]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: Size mismatch between datasets (got lengths {lengths}).")
        self._length = lengths[0]

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        named = isinstance(self.datasets, dict)
        columns = []
        for dataset in self.datasets.values() if named else self.datasets:
            column = samples_of(dataset, indices)
            if len(column) != len(indices):
                raise ValueError(f"StackDataset: Nested dataset's output size mismatch (got {len(column)} samples, "
                                 f"expected {len(indices)}).")
            columns.append(column)
        if named:
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*columns, strict=True))

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """
    Concatenation of several datasets.

    Parameters
    ----------
    datasets : iterable of Dataset
        Map-style datasets.

    Examples
    --------
    >>> from cygrad.utils.data import ConcatDataset
    >>> data = ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    def __init__(self, datasets):
        self.datasets = as_items("ConcatDataset", "datasets", datasets, object)
        if not self.datasets:
            raise AssertionError("ConcatDataset: expected at least one dataset (got none)")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError("ConcatDataset does not support IterableDataset. Use ChainDataset.")
        try:
            self.cumulative_sizes = self.cumsum(self.datasets)
        except TypeError as error:
            raise TypeError(f"ConcatDataset: every dataset needs a length ({error}).") from error

    @staticmethod
    def cumsum(sequence):
        """Return the cumulative sizes of the datasets."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError(f"ConcatDataset: the index is out of range (got {index}, expected at least "
                                 f"{-len(self)}).")
            index += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        if number == len(self.datasets):
            raise IndexError(f"ConcatDataset: index {index} is out of range (got {len(self)} samples).")
        return self.datasets[number][index - (self.cumulative_sizes[number - 1] if number else 0)]


class ChainDataset(IterableDataset):
    """
    Concatenation of several iterable-style datasets.

    Parameters
    ----------
    datasets : iterable of IterableDataset

    Examples
    --------
    >>> from cygrad.utils.data import ChainDataset, IterableDataset
    >>> class Numbers(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Numbers(), Numbers()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets):
        self.datasets = datasets

    def _streams(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(f"ChainDataset only supports IterableDataset (got {type(dataset).__name__}). Use "
                                     "ConcatDataset.")
            yield dataset

    def __iter__(self):
        for dataset in self._streams():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset):
    """
    Subset of a dataset at given indices.

    Parameters
    ----------
    dataset : Dataset
    indices : sequence of int

    Examples
    --------
    >>> from cygrad.utils.data import Subset
    >>> list(Subset([5, 6, 7], [2, 0]))
    [7, 5]
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        return samples_of(self.dataset, [self.indices[index] for index in indices])

    def __len__(self):
        return len(self.indices)


def samples_of(dataset, indices):
    """Fetch samples by ``__getitems__`` if the dataset defines it, else one by one."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    return [dataset[index] for index in indices]


@names_arguments
def random_split(dataset, lengths, generator=None):
    """
    Split a dataset randomly into disjoint subsets.

    Parameters
    ----------
    dataset : Dataset
    lengths : sequence of int or float
        Sizes of the subsets, or fractions that sum to 1; remaining samples are distributed round-robin.
    generator : Generator, optional

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the sizes do not sum to the length of the dataset.

    Examples
    --------
    >>> from cygrad.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.5, 0.25, 0.25])]
    [6, 2, 2]
    """
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for number, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"random_split: Fraction at index {number} is not between 0 and 1 (got {share}).")
            sizes.append(math.floor(n * share))
        for number in range(n - sum(sizes)):
            sizes[number % len(sizes)] += 1
        for number, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: split {number} is empty.",
                              stacklevel=2)
        lengths = sizes
    if sum(lengths) != n:
        raise ValueError("random_split: the sum of lengths must equal the length of the dataset (got "
                         f"{sum(lengths)}, expected {n}).")
    order, parts, start = cygrad.randperm(n, generator=generator).tolist(), [], 0
    for length in lengths:
        parts.append(Subset(dataset, order[start:start + length]))
        start += length
    return parts
