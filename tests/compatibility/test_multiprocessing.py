"""Shared memory, start methods, and worker processes of data loaders."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path, program, name="program.py", *, interpreter=("-m", "cygrad")):
    """The lines that a program prints."""
    path = tmp_path / name
    path.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, *interpreter, str(path)], cwd=tmp_path,
                          capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_what_one_process_writes_the_other_reads(tmp_path, method):
    lines = run(tmp_path, f"""
        import torch, torch.multiprocessing as mp
        def work(t, parameter, queue, done):
            t += 1
            parameter.data.fill_(7)
            queue.put((t, t[1:], torch.arange(100_000)))
            done.wait()
        if __name__ == "__main__":
            ctx = mp.get_context({method!r})
            t, parameter = torch.zeros(3).share_memory_(), torch.nn.Parameter(torch.ones(2)).share_memory_()
            queue, done = ctx.Queue(), ctx.Event()
            process = ctx.Process(target=work, args=(t, parameter, queue, done))
            process.start()
            whole, part, numbers = queue.get()
            done.set()
            process.join()
            part[0] = 9
            print(t.tolist(), whole.tolist(), parameter.tolist(), parameter.requires_grad, numbers.sum().item())
            print(t.is_shared(), torch.ones(1).is_shared(), process.exitcode)
        """)
    assert lines == ["[1.0, 9.0, 1.0] [1.0, 9.0, 1.0] [7.0, 7.0] True 4999950000", "True False 0"]


def test_pool_returns_tensors(tmp_path):
    assert run(tmp_path, """
        import torch, torch.multiprocessing as mp
        def square(x): return x * x
        if __name__ == "__main__":
            with mp.Pool(2) as pool:
                print([x.tolist() for x in pool.map(square, [torch.ones(2), torch.full((3,), 2.0)])])
        """) == ["[[1.0, 1.0], [4.0, 4.0, 4.0]]"]


def test_processes_train_one_model_together(tmp_path):
    """Hogwild training: parameters in shared memory, an optimizer in each process."""
    lines = run(tmp_path, """
        import torch, torch.nn.functional as F, torch.multiprocessing as mp
        def train(rank, model, x, y):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(40):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        if __name__ == "__main__":
            torch.manual_seed(0)
            x = torch.randn(64, 5)
            y = (x.sum(1) > 0).long()
            model = torch.nn.Linear(5, 2).share_memory()
            before = F.cross_entropy(model(x), y).item()
            mp.spawn(train, args=(model, x, y), nprocs=2)
            print(F.cross_entropy(model(x), y).item() < 0.7 * before, model.weight.is_shared())
        """)
    assert lines == ["True True"]


def test_failures_of_processes(tmp_path):
    assert run(tmp_path, """
        import os, signal, torch.multiprocessing as mp
        def fail(rank):
            if rank == 1: raise ValueError("oh no")
        def die(rank):
            if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
        if __name__ == "__main__":
            for function, kind in ((fail, mp.ProcessRaisedException), (die, mp.ProcessExitedException)):
                try:
                    mp.spawn(function, nprocs=2)
                except kind as error:
                    print(error.error_index, "oh no" in str(error), getattr(error, "signal_name", None))
        """) == ["1 True None", "1 False SIGKILL"]


def test_a_tensor_with_a_history_is_not_sent(tmp_path):
    assert run(tmp_path, """
        import torch, torch.multiprocessing as mp
        from multiprocessing.reduction import ForkingPickler
        try:
            ForkingPickler.dumps(torch.ones(2, requires_grad=True) * 2)
        except RuntimeError as error:
            print("detach()" in str(error))
        """) == ["True"]


LOADER = """
    import random, torch, numpy as np
    from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
    class Numbers(Dataset):
        def __len__(self): return 10
        def __getitem__(self, i):
            assert get_worker_info() is not None
            return torch.randn(3), random.random(), np.random.rand(), i
    class Stream(IterableDataset):
        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id, 7, info.num_workers))
    class Bad(Numbers):
        def __getitem__(self, i):
            if i == 5: raise KeyError("bad sample")
            return i
    class Large(Numbers):
        def __getitem__(self, i): return torch.full((100, 300), float(i)), str(i)
    def init(worker): random.seed(100 + worker)
    if __name__ == "__main__":
        torch.manual_seed(3)
        for options in ({}, {"shuffle": True}, {"worker_init_fn": init, "persistent_workers": True}):
            loader = DataLoader(Numbers(), batch_size=3, num_workers=2, **options)
            for epoch in range(2):
                for x, a, b, i in loader:
                    print([round(v, 6) for v in x.flatten().tolist()], [round(v, 9) for v in a.tolist() + b.tolist()],
                          i.tolist())
        print([batch.tolist() for batch in DataLoader(Stream(), batch_size=2, num_workers=2)])
        print([(x.sum().item(), x.shape, names) for x, names in DataLoader(Large(), batch_size=4, num_workers=3)])
        try:
            list(DataLoader(Bad(), num_workers=2))
        except KeyError as error:
            print("failed")
"""


def test_worker_processes_give_the_numbers_of_pytorch(tmp_path):
    pytest.importorskip("torch")
    ours, theirs = run(tmp_path, LOADER), run(tmp_path, LOADER, interpreter=())
    assert ours == theirs


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_worker_processes_natively(tmp_path, context):
    lines = run(tmp_path, f"""
        import os, cygrad
        from cygrad.utils.data import DataLoader
        class Who(cygrad.utils.data.Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return os.getpid()
        class Dies(Who):
            def __getitem__(self, i): os._exit(3)
        if __name__ == "__main__":
            pids = {{int(pid) for pid in DataLoader(Who(), num_workers=2, multiprocessing_context={context!r})}}
            print(len(pids), os.getpid() in pids)
            print({{int(pid) for pid in DataLoader(Who(), num_workers=2)}} == {{os.getpid()}})
            try:
                list(DataLoader(Dies(), num_workers=1, multiprocessing_context={context!r}))
            except RuntimeError as error:
                print("exited with code 3" in str(error))
        """, interpreter=())
    assert lines == ["2 False", "True", "True"]
