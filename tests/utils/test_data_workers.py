"""Worker threads of the data loader: order, seeds, errors, termination."""

import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import traceback

import pytest

import cygrad
from cygrad.utils import data

N = 23


class Noise(data.Dataset):
    """Samples that depend on random numbers, some of them slow."""

    def __init__(self, n=N, slow=0.002):
        self.n, self.slow = n, slow

    def __getitem__(self, index):
        if index % 3 == 0:
            time.sleep(self.slow)
        return index, cygrad.rand(2)

    def __len__(self):
        return self.n


class Broken(data.Dataset):
    def __init__(self, error):
        self.error = error

    def __getitem__(self, index):
        if index == 5:
            raise self.error
        return index

    def __len__(self):
        return 10


class Parts(data.IterableDataset):
    """A stream that the workers share out."""

    def __iter__(self):
        worker = data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        return iter(range(first, 20, step))


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("DataLoader worker")]


def gone(seconds=5.0):
    """Return whether all worker threads end."""
    end = time.monotonic() + seconds
    while workers() and time.monotonic() < end:
        time.sleep(0.005)
    return not workers()


@pytest.fixture(autouse=True)
def no_threads_are_left():
    yield
    gc.collect()
    assert gone()


def all_of(loader):
    return [(number.tolist(), noise.tolist()) for number, noise in loader]


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"persistent_workers": True, "shuffle": True},
                                     {"prefetch_factor": 1}, {"prefetch_factor": 7}])
def test_order_and_random_numbers_do_not_depend_on_the_number_of_workers(options):
    results = []
    for n in 0, 1, 2, 5:
        used = {name: value for name, value in options.items() if n or name == "shuffle"}
        loader = data.DataLoader(Noise(), batch_size=3, num_workers=n,
                                 generator=cygrad.Generator().manual_seed(7), **used)
        results.append([all_of(loader), all_of(loader)])
    assert results[0][0] != results[0][1]
    for other in results[1:]:
        assert other == results[0]


def test_the_default_generator_decides_where_none_is_given():
    results = []
    for n in 0, 2:
        cygrad.manual_seed(11)
        results.append(all_of(data.DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=n)))
        results[-1].append(cygrad.rand(1).item())          # and is where it would be
    assert results[0] == results[1]


def test_several_workers_do_work():
    seen = set()
    barrier = threading.Barrier(3, timeout=20)

    class Meeting(Noise):
        def __getitem__(self, index):
            barrier.wait()                                 # wait for three workers
            seen.add((data.get_worker_info().id, threading.get_ident()))
            return index

    assert len(list(data.DataLoader(Meeting(9), num_workers=3, batch_size=None))) == 9
    assert {number for number, _ in seen} == {0, 1, 2}
    assert threading.get_ident() not in {thread for _, thread in seen}
    assert data.get_worker_info() is None


def test_batches_as_they_are_ready():
    release = threading.Event()

    class First(Noise):
        def __getitem__(self, index):
            if index == 0:
                assert release.wait(20)
            return index

    loader = data.DataLoader(First(6), num_workers=2, batch_size=None, in_order=False)
    seen = []
    for index in loader:
        seen.append(index)
        if len(seen) == 3:
            release.set()
    assert sorted(seen) == list(range(6))
    assert 0 not in seen[:3]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_streams(n):
    loader = data.DataLoader(Parts(), batch_size=3, num_workers=n)
    first, second = ([batch.tolist() for batch in loader] for _ in range(2))
    assert first == second
    assert sorted(i for batch in first for i in batch) == list(range(20))
    if n == 3:
        assert first[:4] == [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9, 12, 15]]
    kept = data.DataLoader(Parts(), batch_size=3, num_workers=n, persistent_workers=True) if n else loader
    for _ in range(2):
        assert [batch.tolist() for batch in kept] == first
    short = data.DataLoader(Parts(), batch_size=3, num_workers=n, drop_last=True)
    assert all(len(batch) == 3 for batch in short)


def test_a_stream_that_is_not_shared_out_comes_once_from_each_worker():
    class All(data.IterableDataset):
        def __iter__(self):
            return iter(range(4))
    assert sorted(data.DataLoader(All(), batch_size=None, num_workers=2)) == sorted(2 * list(range(4)))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_errors_reach_the_caller_with_their_traceback(n):
    error = ValueError("sample 5 is broken")
    iterator = iter(data.DataLoader(Broken(error), num_workers=n, batch_size=None))
    assert [next(iterator) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="sample 5 is broken") as caught:
        next(iterator)
    assert caught.value is error
    text = "".join(traceback.format_exception(caught.value))
    assert "in __getitem__" in text
    if n:
        assert "Caught in DataLoader worker thread" in text
        assert [*iterator] == [6, 7, 8, 9]                 # the others are not lost


@pytest.mark.parametrize("kind", [KeyError, SystemExit, KeyboardInterrupt, StopIteration])
def test_errors_of_every_kind(kind):
    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        list(data.DataLoader(Broken(kind(3)), num_workers=2, batch_size=2))


def test_errors_of_collation_init_function_and_sampler():
    def fail(*_):
        raise ValueError("no")

    for options in {"collate_fn": fail}, {"worker_init_fn": fail}:
        with pytest.raises(ValueError, match="no"):
            list(data.DataLoader(Noise(), num_workers=2, **options))

    def failing():
        yield 1
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(data.DataLoader(Noise(), num_workers=2, sampler=failing()))
    with pytest.raises(TypeError):
        list(data.DataLoader(5, num_workers=2, sampler=[1]))


def test_the_init_function_runs_once_on_each_worker():
    seen = []
    lock = threading.Lock()

    def begin(number):
        with lock:
            seen.append((number, data.get_worker_info().id, data.get_worker_info().num_workers, cygrad.rand(1).item()))

    loader = data.DataLoader(Noise(), num_workers=3, worker_init_fn=begin, persistent_workers=True,
                             generator=cygrad.Generator().manual_seed(1))
    list(loader)
    list(loader)
    assert sorted(entry[:3] for entry in seen) == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
    assert len({entry[3] for entry in seen}) == 3


def test_persistent_threads_stay_and_others_do_not():
    loader = data.DataLoader(Noise(), num_workers=2, persistent_workers=True)
    list(loader)
    before = {thread.ident for thread in workers()}
    assert len(before) == 2
    list(loader)
    assert {thread.ident for thread in workers()} == before
    del loader
    gc.collect()
    assert gone()
    list(data.DataLoader(Noise(), num_workers=2))
    assert gone()


def test_a_loop_is_all_that_keeps_a_loader_with_persistent_workers():
    assert [int(n) for n, _ in data.DataLoader(Noise(), num_workers=2, persistent_workers=True)] == list(range(N))
    gc.collect()
    assert gone()


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loop_that_is_left_in_the_middle(persistent):
    loader = data.DataLoader(Noise(), num_workers=2, persistent_workers=persistent)
    for _ in range(3):
        for _batch in loader:
            break
        if not persistent:
            assert gone()
    assert [number.item() for number, _ in loader] == list(range(N))      # nothing is left of the passes before


def test_an_iterator_that_is_forgotten_is_collected():
    iterator = iter(data.DataLoader(Noise(), num_workers=2))
    next(iterator)
    cycle = [iterator]
    cycle.append(cycle)
    del iterator, cycle
    gc.collect()
    assert gone()


def test_a_batch_that_takes_too_long():
    wait = threading.Event()

    class Slow(Noise):
        def __getitem__(self, index):
            wait.wait(20)
            return index

    try:
        with pytest.raises(RuntimeError, match="timed out after"):
            list(data.DataLoader(Slow(), num_workers=1, timeout=0.05))
    finally:
        wait.set()


def test_batches_made_ahead_are_few():
    made = []

    class Counted(Noise):
        def __getitem__(self, index):
            made.append(index)
            return index

    iterator = iter(data.DataLoader(Counted(200), num_workers=2, batch_size=None, prefetch_factor=3))
    next(iterator)
    time.sleep(0.1)
    assert len(made) <= 7


def test_tensors_are_taken_rows_at_once_and_equal_those_one_by_one():
    x, y = cygrad.randn(50, 3), cygrad.arange(50)
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=8, sampler=list(range(49, -1, -1)))
    slow = data.DataLoader(data.Subset(data.TensorDataset(x, y), range(50)), batch_size=8,
                           sampler=list(range(49, -1, -1)), num_workers=2)
    for ours, theirs in zip(loader, slow, strict=True):
        assert type(ours) is type(theirs) is list
        assert all(cygrad.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_training_with_workers_on_shared_leaves():
    """Samples that require grad: graphs recorded by a worker run backward on the calling thread."""
    w = cygrad.ones(3, requires_grad=True)

    class Recorded(Noise):
        def __getitem__(self, index):
            return w * float(index)

    sum(batch.sum() for batch in data.DataLoader(Recorded(6), batch_size=2, num_workers=2)).backward()
    assert w.grad.tolist() == [15.0] * 3


def test_loaders_can_be_pickled():
    loader = data.DataLoader(Noise(), num_workers=1, persistent_workers=True)
    list(loader)
    assert len(list(pickle.loads(pickle.dumps(loader)))) == N


PROGRAM = """
import sys, time, signal, os, threading
import cygrad
from cygrad.utils import data

class Slow(data.Dataset):
    def __getitem__(self, index):
        time.sleep(0.01)
        return cygrad.rand(100, 100).sum()
    def __len__(self):
        return 1000

loader = data.DataLoader(Slow(), batch_size=2, num_workers=3, persistent_workers={persistent})
iterator = iter(loader)
next(iterator)
{ending}
"""


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(("ending", "code"), [
    ("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1),
    # Python keeps an inherited SIG_IGN, so the program installs the handler.
    ("signal.signal(signal.SIGINT, signal.default_int_handler)\n"
     "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
     "try:\n    list(iterator)\nexcept KeyboardInterrupt:\n    time.sleep(0.3)\n    sys.exit(7)", 7)])
def test_programs_end(ending, code, persistent, interrupts_ignored):
    program = textwrap.dedent(PROGRAM).format(persistent=persistent, ending=ending)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert "Fatal" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("context", [None, "fork"])
def test_interrupts_of_the_constructor_leave_no_worker(context):
    """Ctrl-C at any moment: while workers start, before the iterator exists, while it is closed."""
    done = subprocess.run([sys.executable, "-c", f"""
import _thread, gc, multiprocessing, os, random, signal, threading, time
import numpy.random            # loaded late by NumPy, where an interrupt turns into an ImportError
import cygrad
from cygrad.utils.data import DataLoader, TensorDataset
signal.signal(signal.SIGINT, signal.default_int_handler)      # background processes of a script ignore SIGINT
data, stop = TensorDataset(cygrad.arange(300)), time.monotonic() + 4
def interrupt():
    while time.monotonic() < stop - 0.2:
        time.sleep(random.random() * 0.02)
        _thread.interrupt_main()
thread = threading.Thread(target=interrupt, daemon=True)
try:
    thread.start()
except KeyboardInterrupt:
    pass
hits = 0
while time.monotonic() < stop:
    try:
        for batch in DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context={context!r}):
            pass
    except KeyboardInterrupt:
        hits += 1
batch = None
gc.collect()
def runs(process):           # multiprocessing takes it for alive if an interrupt came right after it was waited for
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    return True
limit = time.monotonic() + 20
while time.monotonic() < limit and (threading.active_count() > 1 or any(map(runs, multiprocessing.active_children()))):
    time.sleep(0.05)
print(hits > 20, threading.active_count(), sum(map(runs, multiprocessing.active_children())))
"""], capture_output=True, text=True, check=False, timeout=90)
    assert done.stdout.split() == ["True", "1", "0"], done.stderr[-2000:]
