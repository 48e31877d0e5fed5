"""MPI requests polled without the GIL: supported tensors and lifetime of memory."""

import functools
import gc
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import cygrad as torch

from .ranks import ranks

pytestmark = pytest.mark.slow

dist = torch.distributed
MPI_DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64,
              torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64]


def steps(tensor, op=dist.ReduceOp.SUM):
    """Return the request of `all_reduce` that runs without the GIL, or None if it goes through NumPy."""
    group = dist.group.WORLD
    return group.progress.all_reduce(tensor, op.handles, group.handle)


def read_only():
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings(action="ignore"):
        return torch.from_numpy(array)


@ranks(2)
def test_what_goes_without_the_lock():
    """Memory without gaps that MPI can add up. All else takes the way through NumPy, with its errors."""
    for dtype in MPI_DTYPES:
        for shape in ((), (1,), (3, 4)):
            assert steps(torch.ones(shape, dtype=dtype)) is not None
    assert steps(torch.ones(4, 3, requires_grad=True)[1:]) is not None
    for tensor in (torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.float16), torch.ones(0),
                   torch.ones(3, dtype=torch.complex32), torch.ones(3, 4).t(), torch.ones(6)[::2], read_only(),
                   torch.ones(1).expand(3), torch.ones(3, device="meta"), np.ones(3, np.float32), None, [1.0]):
        assert steps(tensor) is None
    assert steps(torch.ones(3), dist.ReduceOp.AVG) is None
    assert steps(torch.ones(3), dist.ReduceOp.BAND) is None
    assert steps(torch.ones(3, dtype=torch.complex64), dist.ReduceOp.MAX) is None
    for wrong, error, words in (
            (read_only(), RuntimeError, "all_reduce: the memory is read-only"),
            (torch.ones(1).expand(3), RuntimeError, "all_reduce: .* share a memory location"),
            (torch.ones(3, device="meta"), NotImplementedError, "device 'meta' has no elements"),
            (np.ones(3), TypeError, r"all_reduce: expected a Tensor \(got ndarray\)")):
        for call in (dist.all_reduce, lambda tensor: dist.all_reduce(tensor, async_op=True).wait()):
            with pytest.raises(error, match=words):
                call(wrong)
    with pytest.raises(TypeError, match="op must be a ReduceOp"):
        dist.all_reduce(torch.ones(3), "SUM")
    group = dist.new_group()
    dist.all_reduce(torch.ones(3), group=group)
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="has been destroyed"):
        dist.all_reduce(torch.ones(3), group=group)


@ranks(2)
def test_steps_are_run_once():
    tensor = torch.ones(3)
    reduction = steps(tensor)
    del tensor
    request = next(reduction)
    assert request is reduction
    while not dist.group.WORLD.progress.ask(request):
        pass
    assert request.Test() and dist.group.WORLD.progress.ask(request)
    with pytest.raises(StopIteration) as stop:
        next(reduction)
    assert stop.value.value[0].tolist() == [2, 2, 2]
    for empty in (type(reduction)(), type(reduction).__new__(type(reduction))):
        assert empty.Test() and list(empty) == []


@ranks(2, 4)
def test_the_memory_is_kept_while_it_is_under_way():
    """MPI writes to the original memory, even if the tensor's memory is replaced."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for turn in range(36):
        tensor = torch.ones(50_000, dtype=torch.float32 if turn % 2 else torch.bfloat16)
        old = tensor.detach()
        if rank == turn % n:
            time.sleep(1e-3)
        work = dist.all_reduce(tensor, async_op=True)
        if turn % 3 == 0:
            tensor.data = torch.zeros(2)
        elif turn % 3 == 1:
            tensor.resize_(7)
        else:
            del tensor
        work.wait()
        assert (old == n).all()
    waiting, group = torch.ones(300_000), dist.group.WORLD
    old, end = waiting.numpy(), threading.Event()

    def exchange():
        end.wait(0.2)
        waiting.data = torch.zeros(3)
        gc.collect()
        end.set()
    thread = threading.Thread(target=exchange)
    if rank == 0:
        thread.start()
    else:
        time.sleep(0.5)
    dist.all_reduce(waiting)
    assert (old == n).all()
    if rank == 0:
        thread.join()
        assert waiting.tolist() == [0, 0, 0]
    dist.barrier()
    # An abandoned request: MPI continues in memory that is never freed.
    next(group.progress.all_reduce(torch.ones(100_000), dist.ReduceOp.SUM.handles, group.handle))
    gc.collect()
    others = [torch.full((100_000,), float(rank)) for _ in range(4)]
    for _ in range(100):
        dist.barrier()
    assert all((other == rank).all() for other in others)


@ranks(2)
def test_an_interrupt_while_waiting():
    """Python's signal handlers run while a rank waits; pending requests complete."""
    class Interrupted(BaseException):
        pass

    def interrupt(*_):
        raise Interrupted
    for call, expected in ((dist.all_reduce, 2), (functools.partial(dist.broadcast, src=1), 1)):
        tensor = torch.ones(1000)
        old = tensor.numpy()
        if dist.get_rank() == 0:
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(Interrupted):
                call(tensor)
            del tensor
            gc.collect()
        else:
            time.sleep(0.3)
            call(tensor)
        for _ in range(100):
            dist.barrier()
        assert (old == expected).all()


@ranks(2)
def test_several_threads_wait_for_one_handle():
    for turn in range(20):
        tensor, found = torch.ones(200_000), []
        if dist.get_rank() == turn % 2:
            time.sleep(0.03)
        work = dist.all_reduce(tensor, async_op=True)
        threads = [threading.Thread(target=lambda: found.append(work.wait()[0].sum().item())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [400_000] * 3
        dist.barrier()


@ranks(2)
def test_each_change_is_counted_once():
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    z = y.square()
    before = y._version
    dist.all_reduce(y)
    assert y._version == before + 1
    work = dist.all_reduce(y, async_op=True)
    work.wait()
    assert y._version == before + 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
