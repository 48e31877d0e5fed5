"""DataLoader: batches of a dataset, loaded synchronously or by workers."""

import contextlib
import copy
import functools
import itertools
import math
import os
import warnings
import weakref
from importlib import import_module

import cygrad
from cygrad._core.arrays.dtype import library_name
from cygrad.random.generator import current
from cygrad.utils.data.collate import default_collate, default_convert
from cygrad.utils.data.dataset import IterableDataset, TensorDataset, samples_of
from cygrad.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from cygrad.utils.data.workers import Failure, Task, ThreadPool, seeded

__all__ = ["DataLoader"]

MAX_WORKERS = 65536


class DataLoader:
    """
    Iterate over a dataset in batches.

    Workers are threads by default, which share the dataset without copying batches. Use them if loading a sample waits
    for files or releases the GIL, as NumPy and cygrad do. Order and random numbers of cygrad do not depend on the
    number of threads. Use processes if samples are loaded by Python code. Each process has its own random state of
    cygrad, Python and NumPy.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
    batch_size : int or None, default 1
        None yields single samples.
    shuffle : bool, default False
        Whether to shuffle in each epoch.
    sampler : iterable of int, optional
        Yields the indices of samples.
    batch_sampler : iterable of lists of int, optional
        Yields the indices of batches.
    num_workers : int, default 0
        Number of workers; 0 loads batches on demand.
    collate_fn : callable, optional
        Converts a list of samples to a batch. By default `default_collate`, or `default_convert` for single samples.
    pin_memory, pin_memory_device : optional
        Accepted and ignored.
    drop_last : bool, default False
        Whether to drop an incomplete last batch.
    timeout : float, default 0
        Seconds to wait for a batch; 0 waits forever.
    worker_init_fn : callable, optional
        Called with the index of each worker, in the worker.
    multiprocessing_context : {"fork", "spawn", "forkserver"} or context of multiprocessing, optional
        Start method of worker processes. By default workers are threads, or processes if cygrad is imported as torch.
    generator : Generator, optional
        Generator of the order and the seeds.
    prefetch_factor : int, optional
        Batches that each worker loads in advance; 2 by default.
    persistent_workers : bool, default False
        Whether to keep the workers for the next epoch.
    in_order : bool, default True
        Whether batches are returned in the order of the sampler, or as they are ready.

    Raises
    ------
    ValueError
        If arguments are mutually exclusive.

    Examples
    --------
    >>> from cygrad.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(cygrad.arange(5), cygrad.arange(5) * 10)
    >>> for x, y in DataLoader(data, batch_size=2, num_workers=2):
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
                 pin_memory_device="", in_order=True):
        streams = isinstance(dataset, IterableDataset)
        _check(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        if streams:
            for name, value, allowed in (("shuffle", shuffle, (None, False)), ("sampler", sampler, (None,)),
                                         ("batch_sampler", batch_sampler, (None,))):
                if value not in allowed:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                                     f"{name}={value}")
        if sampler is not None and shuffle:
            raise ValueError("DataLoader: sampler is mutually exclusive with shuffle (got both).")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("DataLoader: batch_sampler is mutually exclusive with batch_size, shuffle, sampler "
                                 "and drop_last (got one of them).")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: batch_size=None is mutually exclusive with drop_last (got both).")
        if sampler is None:
            sampler = (itertools.repeat(None) if streams else RandomSampler(dataset, generator=generator) if shuffle
                       else SequentialSampler(dataset))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.multiprocessing_context = multiprocessing_context
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._kept = None                                  # the iterator with persistent workers
        self._promised = None                              # reported length of an iterable dataset; set last

    def __setattr__(self, name, value):
        if name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers") and (
                "_promised" in self.__dict__):
            raise ValueError(f"DataLoader: {name} attribute should not be set after {type(self).__name__} is "
                             "initialized, because the samplers were made of it. Create another one.")
        super().__setattr__(name, value)

    def __class_getitem__(cls, kind):
        """``DataLoader[int]`` in annotations is the class itself."""
        return cls

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self):
        if self.num_workers == 0:
            return _Here(self)
        self.check_worker_number_rationality()
        return _Ahead(self)

    def check_worker_number_rationality(self):
        """Accept any number of workers; subclasses may raise."""

    def __iter__(self):
        if self.num_workers == 0 or not self.persistent_workers:
            return self._get_iterator()
        if self._kept is None or self._kept.process != os.getpid():
            self._kept = self._get_iterator()
        else:
            self._kept.begin(self)
        return self._kept

    def __repr__(self):
        options = f"batch_size={self.batch_size}, num_workers={self.num_workers}, drop_last={self.drop_last}"
        return f"DataLoader({self.dataset!r:.200}, {options})"

    def _repr_html_(self):
        return import_module("cygrad.notebook.objects").object_html(self)

    def __len__(self):
        if isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is not None:
                n = n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)
            self._promised = n
            return n
        return len(self._index_sampler)

    def __getstate__(self):
        return {**self.__dict__, "_kept": None}


def _check(num_workers, timeout, prefetch_factor, persistent_workers, context):
    if num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must not be negative; use 0 to disable workers (got {num_workers}).")
    if num_workers > MAX_WORKERS:
        raise ValueError(f"DataLoader: too many workers (got {num_workers}, expected at most {MAX_WORKERS}).")
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout must not be negative (got {timeout}).")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("DataLoader: prefetch_factor option could only be specified with workers. "
                         "Let num_workers > 0 to use it, otherwise set prefetch_factor to None.")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: prefetch_factor option should be positive (got {prefetch_factor})")
    if persistent_workers and num_workers == 0:
        raise ValueError("DataLoader: persistent_workers option needs num_workers > 0")
    if context is not None:
        if num_workers == 0:
            raise ValueError("DataLoader: multiprocessing_context can only be used with num_workers > 0 (got 0).")
        multiprocessing = import_module("multiprocessing")
        methods = multiprocessing.get_all_start_methods()
        if isinstance(context, str) and context not in methods:
            raise ValueError(f"DataLoader: multiprocessing_context must be one of {', '.join(methods)} (got "
                             f"{context!r}).")
        if not isinstance(context, (str, multiprocessing.context.BaseContext)):
            raise TypeError("DataLoader: multiprocessing_context must be a start method or a context of "
                            f"multiprocessing (got {context!r}).")


def _is_stream(loader):
    """Return whether the dataset is iterable-style; PyTorch's attribute ``_dataset_kind`` (1: iterable) overrides
    it."""
    return loader._dataset_kind == 1 if hasattr(loader, "_dataset_kind") else isinstance(
        loader.dataset, IterableDataset)


def _fetcher(dataset, is_stream, collate, batches, drop_last):
    """Return the function from indices to a batch for one epoch. It holds no reference to loader or iterator."""
    if not is_stream:
        if not batches:
            return lambda index: collate(dataset[index])
        if type(dataset) is TensorDataset and collate is default_collate:      # index all rows at once
            return lambda indices: [tensor[cygrad.tensor(indices)] for tensor in dataset.tensors]
        return lambda indices: collate(samples_of(dataset, indices))
    stream = iter(dataset)

    def following(indices):
        if not batches:
            return collate(next(stream))
        samples = list(itertools.islice(stream, len(indices)))
        if not samples or (drop_last and len(samples) < len(indices)):
            raise StopIteration
        return collate(samples)

    return following


def _make_fetch(loader):
    return functools.partial(_fetcher, loader.dataset, _is_stream(loader), loader.collate_fn, loader._auto_collation,
                             loader.drop_last)


def _pool(loader, streams, seed, owner):
    """Create the worker pool of a loader."""
    parts = loader.num_workers, _make_fetch(loader), streams, loader.worker_init_fn, loader.dataset, seed
    if loader.multiprocessing_context is None and library_name() != "torch":
        return ThreadPool(*parts, owner)
    from cygrad.utils.data.processes import ProcessPool
    return ProcessPool(*parts, context=loader.multiprocessing_context)


def _base_seed(loader):
    """Return the base seed of an epoch."""
    return cygrad.empty((), dtype=cygrad.int64).random_(generator=loader.generator).item()


class _Here:
    """One epoch, loaded on demand."""

    def __init__(self, loader):
        self._loader = loader
        self._seed = _base_seed(loader)
        self._indices = self._fetch = None

    def __iter__(self):
        return self

    def __next__(self):
        """Return the next batch; after an error of the dataset, the one after it."""
        loader = self._loader
        if self._indices is None:
            self._indices = enumerate(loader._index_sampler)
        number, indices = next(self._indices)
        try:
            # Without workers, samples continue PyTorch's random stream.
            with seeded(self._seed, number) if current().algorithm == "pcg64" else contextlib.nullcontext():
                self._fetch = self._fetch or _make_fetch(loader)()
                batch = self._fetch(indices)
        except StopIteration:
            if _is_stream(loader):
                self._indices = iter(())
                raise
            raise RuntimeError("DataLoader: the dataset raised StopIteration.") from None
        _warn_if_too_many(loader, number + 1)
        return batch

    def __len__(self):
        return len(self._loader)


def _warn_if_too_many(loader, n):
    if getattr(loader, "_promised", None) is not None and n > loader._promised:
        warnings.warn(f"Length of IterableDataset {loader.dataset} was reported to be {loader._promised} "
                      f"(when accessing len(dataloader)), but {n} samples have been fetched. Each worker iterates "
                      "over its own copy of the dataset; see get_worker_info.", stacklevel=3)


class _Ahead:
    """Load batches by workers."""

    def __init__(self, loader):
        streams = _is_stream(loader)
        self._seed = _base_seed(loader)
        self._pool = _pool(loader, streams, self._seed, self)
        self._streams = streams
        self._end = weakref.finalize(self, type(self._pool).close, self._pool)
        self._end.atexit = False                           # interpreter shutdown stops all threads
        self._first = True
        self.process = os.getpid()
        self.begin(loader)

    def begin(self, loader):
        """Start a new epoch."""
        if not self._first and self._pool.kind == "thread":      # processes continue their random streams
            self._seed = _base_seed(loader)
        self._first = False
        self._loader = loader
        if loader.persistent_workers:  # The loader holds this iterator, which must not hold the loader.
            self._loader = copy.copy(loader)
            self._loader._kept = None
        self._given = 0
        self._epoch = self._pool.begin(self._seed)
        self._indices = iter(loader._index_sampler)
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._turn = itertools.cycle(range(loader.num_workers))
        self._ended = set()                                # workers whose iterator is exhausted
        self._pending = {}                                 # index -> its worker, in order
        self._sent = 0
        self._exhausted = False
        for _ in range(loader.prefetch_factor * loader.num_workers):
            self._send()

    def _send(self):
        """Submit the next task, if any."""
        if self._exhausted:
            return
        queues = self._pool.queues
        worker = next(self._turn)
        if self._streams:
            if len(self._ended) == len(queues):
                return
            while worker in self._ended:
                worker = next(self._turn)
        try:
            indices = next(self._indices)
        except StopIteration:
            self._exhausted = True
            return
        self._pending[self._sent] = worker
        queues[worker].put(Task(self._epoch, self._sent, indices))
        self._sent += 1

    def __iter__(self):
        return self

    def _ready(self, done):
        """Return the key of a batch that may be returned now, or None."""
        for number in self._pending:
            if (self._epoch, number) in done:
                return self._epoch, number
            if self._in_order:
                return None
        return None

    def __next__(self):
        while self._pending:
            try:
                found = self._pool.wait(self._ready, self._timeout)
            except BaseException:                          # interrupted by the user
                self._end()
                raise
            if found is None:
                self._end()
                self._pending.clear()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            (_, number), batch = found
            worker = self._pending.pop(number)
            if isinstance(batch, Failure):
                if self._streams and isinstance(batch.error, StopIteration):
                    self._ended.add(worker)
                    self._send()
                    continue
                self._send()
                error = _with_note(batch, self._pool.kind)
                # The traceback of the error refers to this frame, which must not hold the threads.
                del self, batch, found
                try:
                    raise error
                finally:
                    del error
            self._send()
            self._given += 1
            _warn_if_too_many(self._loader, self._given)
            return batch
        if not self._loader.persistent_workers:
            self._end()
        raise StopIteration

    def __len__(self):
        return len(self._loader)


def _with_note(failure, kind):
    """Return the error of a worker with a note of its origin."""
    error = failure.error
    if isinstance(error, StopIteration):                   # would end the loop
        replaced = RuntimeError("DataLoader: the dataset raised StopIteration.")
        replaced.__cause__ = error
        error = replaced
    note = f"Caught in DataLoader worker {kind} {failure.worker}."
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error
