"""
Worker processes of a `DataLoader`.

Each worker has a connection that transfers indices and batches. The tensors of a large batch are in one shared memory
region, whose descriptor is sent over the connection.
"""

import contextlib
import io
import multiprocessing
import os
import pickle
import random
import signal
import time
import traceback
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

import cygrad
from cygrad import Tensor
from cygrad.multiprocessing.memory import Region, placed
from cygrad.utils.data.workers import Failure, WorkerInfo, set_worker_info

__all__ = ["ProcessPool"]

SHARED = 1 << 16           # minimum bytes of a batch in shared memory
ALIGNMENT = 64


class ProcessPool:
    """
    Pool of worker processes, with the interface of `workers.ThreadPool`.

    Parameters
    ----------
    context : str, context of multiprocessing, or None
        Start method; None for the default.
    """

    kind = "process"

    def __init__(self, n_workers, make_fetch, own_queues, worker_init_fn, dataset, seed, context=None):
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self.done, self.epoch, self.seed, self.closed = {}, 0, seed, False
        self.queues, self.processes = [], []
        for number in range(n_workers):
            ours, theirs = context.Pipe()
            info = WorkerInfo(number, n_workers, seed + number, dataset)
            # A forked worker closes its copies of these ends, so that a worker exits when its parent closes or loses
            # the other end.
            inherited = ([ours, *(tasks.connection for tasks in self.queues)]
                         if context.get_start_method() == "fork" else [])
            process = context.Process(target=_work, daemon=True, name=f"DataLoader worker {number}",
                                      args=(theirs, info, make_fetch, worker_init_fn, seed, inherited))
            process.start()
            theirs.close()
            self.queues.append(_Tasks(ours))
            self.processes.append(process)

    def begin(self, seed):
        """Start a new epoch and drop tasks and results of the previous one."""
        self.epoch += 1
        self.done.clear()
        return self.epoch

    def wait(self, ready, timeout):
        """Wait for ``ready(self.done)`` to return a key, and return its result; None after the timeout."""
        limit = None if not timeout else time.monotonic() + timeout
        while (key := ready(self.done)) is None:
            waiting = {tasks.connection: worker for worker, tasks in enumerate(self.queues)}
            rest = None if limit is None else max(0, limit - time.monotonic())
            found = connection.wait(list(waiting), rest)
            if not found:
                return None
            for one in found:
                self._take(one, waiting[one])
        return key, self.done.pop(key)

    def _take(self, one, worker):
        try:
            epoch, number, result = _receive(one)
        except (EOFError, ConnectionError):
            self.processes[worker].join()
            code = self.processes[worker].exitcode
            how = f"was killed by signal {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
            raise RuntimeError(f"DataLoader worker (pid {self.processes[worker].pid}) {how} before it returned a "
                               "batch. See its output, or use num_workers=0 to raise the error in this process."
                               ) from None
        if epoch == self.epoch:
            self.done[epoch, number] = result

    def close(self):
        """Stop the processes and wait for them."""
        if self.closed:
            return
        self.closed = True
        self.done.clear()
        for tasks in self.queues:
            tasks.put(())                        # later workers may hold copies of the other end
            tasks.connection.close()
        for process in self.processes:
            process.join(PATIENCE)
            if process.is_alive():
                process.terminate()
                process.join()


PATIENCE = 5.0             # seconds to wait for a worker to finish its sample


class _Tasks:
    """Connection with the interface of a queue."""

    def __init__(self, ours):
        self.connection = ours

    def put(self, task):
        with contextlib.suppress(OSError):       # the worker exited; `wait` reports why
            self.connection.send(tuple(task))


def _work(ours, info, make_fetch, worker_init_fn, seed, inherited):
    """Main function of a worker process."""
    for connection_end in inherited:
        connection_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)           # the parent stops this process
    cygrad.set_num_threads(1)                              # parallelism is by processes
    random.seed(info.seed)
    cygrad.manual_seed(info.seed)
    state = np.random.SeedSequence([info.id, seed & 0xFFFFFFFF, seed >> 32, 0]).generate_state(4)
    np.random.seed(state)                                  # noqa: NPY002 (the global generator)
    set_worker_info(info)
    broken, current = None, None
    fetch: Any = None
    try:
        if worker_init_fn is not None:
            worker_init_fn(info.id)
    except Exception as error:
        broken = error
    while True:
        try:
            task = ours.recv()
        except (EOFError, ConnectionError):
            return
        if not task:
            return
        epoch, number, indices = task
        try:
            if broken is not None:
                raise broken
            if epoch != current:
                current, fetch = epoch, make_fetch()
            result = fetch(indices)
        except BaseException as error:
            result = Failure(_portable(error), info.id)
        try:
            _send(ours, (epoch, number, result))
        except (BrokenPipeError, ConnectionError):
            return
        except Exception as error:               # batch is not picklable
            _send(ours, (epoch, number, Failure(_portable(error), info.id)))
        del result


def _portable(error):
    """Return a picklable exception, with its traceback as a note."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.__traceback__ = error.__cause__ = error.__context__ = None
    if not isinstance(error, StopIteration):
        error.add_note(f"In the worker process:\n{text}")
    return error


class _Pickler(reduction.ForkingPickler):
    """Pickler that collects tensors instead of pickling their memory."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors, self.size = [], 0

    def persistent_id(self, obj):
        if type(obj) is not Tensor or obj.requires_grad or obj.is_meta:
            return None
        place = self.size
        self.tensors.append((place, obj))
        self.size += -(-obj.nbytes // ALIGNMENT) * ALIGNMENT
        return place, obj.dtype, tuple(obj.shape)


class _Unpickler(pickle.Unpickler):
    """Unpickler that creates tensors from memory."""

    def __init__(self, file, memory):
        super().__init__(file)
        self.memory = memory

    def persistent_load(self, saved):
        place, dtype, shape = saved
        return self.memory(place, dtype, shape)


def _contiguous_stride(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _send(ours, message):
    """Send a message and the memory of its tensors, which is shared if large."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(message)
    if pickler.size < SHARED:
        memory = bytearray(pickler.size)
        _fill(np.frombuffer(memory, np.uint8), pickler.tensors)
        ours.send_bytes(b"s" + len(memory).to_bytes(8, "little") + memory + file.getbuffer())
        return
    region = Region.new(pickler.size)
    _fill(region.bytes(), pickler.tensors)
    ours.send_bytes(b"r" + pickler.size.to_bytes(8, "little") + file.getbuffer())
    reduction.send_handle(ours, region.descriptor, os.getppid())


def _fill(memory, tensors):
    for place, tensor in tensors:
        flat = np.ascontiguousarray(tensor.detach().numpy()).reshape(-1).view(np.uint8)
        memory[place:place + flat.size] = flat


def _receive(ours):
    """Receive a message and its tensors."""
    head = memoryview(ours.recv_bytes())
    size, rest = int.from_bytes(head[1:9], "little"), head[9:]
    if head[:1] == b"r":
        region = Region.opened(reduction.recv_handle(ours), size)

        def tensor(place, dtype, shape):
            return placed(region, dtype, shape, _contiguous_stride(shape), place // dtype.itemsize)
    else:
        memory, rest = np.array(rest[:size], np.uint8), rest[size:]

        def tensor(place, dtype, shape):
            count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            return cygrad.from_numpy(memory[place:place + count].view(dtype.numpy_dtype).reshape(shape))
    return _Unpickler(io.BytesIO(rest), tensor).load()
