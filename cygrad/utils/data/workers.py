"""
Worker threads of a `DataLoader`.

Threads hold a `ThreadPool`, not the iterator. When the iterator is freed, even after an interrupted constructor,
callbacks of weak references stop the threads. Each batch has a random generator, seeded by epoch and index of the
batch, so that batches do not depend on the number of threads.
"""

import atexit
import os
import queue
import threading
import time
import weakref
from contextlib import contextmanager
from typing import Any, NamedTuple

import cygrad
from cygrad._core.threads.parallel import renewed_at_fork
from cygrad.random.generator import own_generator

__all__ = ["ThreadPool", "WorkerInfo", "get_worker_info", "seeded"]

PATIENCE = 5.0             # seconds that interpreter shutdown waits for threads to finish their sample
_this_thread = threading.local()
_pools = weakref.WeakSet()


class WorkerInfo(NamedTuple):
    """Information about a worker."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info():
    """
    Return the `DataLoader` worker of this thread.

    Returns
    -------
    WorkerInfo or None
        ``id`` (from 0), ``num_workers``, ``seed`` and ``dataset``; None outside of workers.

    Examples
    --------
    >>> class Numbers(cygrad.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         worker = cygrad.utils.data.get_worker_info()
    ...         return iter(range(worker.id, 6, worker.num_workers))
    >>> [batch.tolist() for batch in cygrad.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2)]
    [[0, 2], [1, 3], [4], [5]]
    """
    return getattr(_this_thread, "info", None)


def set_worker_info(info):
    """Set the worker of this thread."""
    _this_thread.info = info


@contextmanager
def seeded(seed, number):
    """Use a generator seeded by the seed of the epoch and the index of the batch."""
    generator = cygrad.Generator().manual_seed((seed + 0x9E3779B97F4A7C15 * (number + 1)) % (1 << 64))
    with own_generator(generator):
        yield


class Task(NamedTuple):
    """A batch to load."""

    epoch: int
    number: int
    indices: Any


class Failure(NamedTuple):
    """The exception of a worker."""

    error: BaseException
    worker: int


class ThreadPool:
    """
    Pool of worker threads, with tasks and results.

    Parameters
    ----------
    n_workers : int
    make_fetch : callable
        Returns the function from indices to a batch; called by each worker once for each epoch. The function raises
        StopIteration at the end of an iterable dataset.
    own_queues : bool
        Whether each worker has its own queue, for iterable datasets.
    worker_init_fn : callable or None
    dataset : Dataset
    seed : int
        Base seed of the workers.
    owner : object
        Iterator that uses the threads, which stop when it is freed.
    """

    kind = "thread"

    def __init__(self, n_workers, make_fetch, own_queues, worker_init_fn, dataset, seed, owner):
        self.make_fetch = make_fetch
        self.changed = renewed_at_fork(threading.Condition())
        self.done = {}                                     # (epoch, index) -> batch or Failure
        self.epoch = 0
        self.seed = seed
        self.closed = False
        self.process = os.getpid()
        common = queue.SimpleQueue()
        self.queues = [queue.SimpleQueue() if own_queues else common for _ in range(n_workers)]
        # The callbacks are C functions, which cannot be interrupted: each queues a value that stops a worker.
        self.ends = [weakref.ref(owner, tasks.put) for tasks in self.queues]
        self.threads = []
        _pools.add(self)
        for number in range(n_workers):
            info = WorkerInfo(number, n_workers, (seed + number) % (1 << 63), dataset)
            thread = threading.Thread(target=work, args=(self, info, worker_init_fn), daemon=True,
                                      name=f"DataLoader worker {number}")
            self.threads.append(thread)
            thread.start()

    def begin(self, seed):
        """Start a new epoch, dropping tasks and results of the former one."""
        with self.changed:
            self.epoch += 1
            self.seed = seed
            self.done.clear()
        return self.epoch

    def wait(self, ready, timeout):
        """Wait for ``ready(self.done)`` to return a key, and return its result; None after the timeout."""
        if self.process != os.getpid():
            raise RuntimeError(f"DataLoader: worker threads do not survive a fork (got process {os.getpid()}, expected "
                               f"{self.process}). Create a new iterator.")
        limit = None if not timeout else time.monotonic() + timeout
        with self.changed:
            while (key := ready(self.done)) is None:
                rest = None if limit is None else limit - time.monotonic()
                if rest is not None and rest <= 0:
                    return None
                self.changed.wait(rest)
            return key, self.done.pop(key)

    def close(self):
        """Stop the threads after their current sample."""
        self.closed = True
        for tasks in self.queues:
            tasks.put(None)
        with self.changed:
            self.done.clear()


def work(pool, info, worker_init_fn):
    """Main function of a worker thread."""
    set_worker_info(info)
    fetch: Any = None
    tasks, broken, epoch = pool.queues[info.id], None, 0
    with cygrad.threads(1):                                # parallelism is by workers
        if worker_init_fn is not None:
            try:
                with seeded(info.seed, -1):
                    worker_init_fn(info.id)
            except BaseException as error:
                broken = error
        while True:
            task = tasks.get()
            if type(task) is not Task or pool.closed:
                return
            if task.epoch != pool.epoch:                   # of an earlier epoch
                continue
            try:
                if broken is not None:
                    raise broken
                if task.epoch != epoch:
                    epoch, fetch = task.epoch, pool.make_fetch()
                with seeded(pool.seed, task.number):
                    result = fetch(task.indices)
            except BaseException as error:
                result = Failure(error, info.id)
            with pool.changed:
                if task.epoch == pool.epoch and not pool.closed:
                    pool.done[task.epoch, task.number] = result
                pool.changed.notify_all()
            del result, task


@atexit.register
def _end():
    """Stop threads before interpreter shutdown."""
    pools, limit = list(_pools), time.monotonic() + PATIENCE
    for pool in pools:
        pool.close()
    for thread in [thread for pool in pools for thread in pool.threads]:
        if thread.is_alive():
            thread.join(max(0, limit - time.monotonic()))
