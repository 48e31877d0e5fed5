"""Backward by a team of workers: results, errors and order of one thread."""

import threading

import pytest

import cygrad
from cygrad.autograd import grad

SIZE = 384


def wide(parts=10, hook_at=()):
    """A graph with many large independent branches."""
    x = (cygrad.arange(SIZE * SIZE).reshape(SIZE, SIZE) % 7 / 7.0).requires_grad_()
    branches = []
    for i in range(parts):
        y = (x * (i + 1.0)).sin() @ x
        if i in hook_at:
            y.register_hook(hook_at[i])
        branches.append(y.tanh())
    return x, branches, cygrad.stack(branches).sum()


@pytest.fixture(params=[2, 3, 5])
def team(request):
    with cygrad.threads(request.param):
        yield request.param


def test_same_as_alone(team):
    x, branches, total = wide()
    found = [g.numpy().tobytes() for g in grad(total, [x, branches[3]], retain_graph=True)]
    with cygrad.threads(1):
        assert [g.numpy().tobytes() for g in grad(total, [x, branches[3]])] == found


def test_hooks_run_on_the_calling_thread_in_order(team):
    log = []
    hooks = {i: lambda g, i=i: log.append((i, threading.get_ident())) for i in range(10)}
    _, _, total = wide(10, hooks)
    total.backward()
    assert log == [(i, threading.get_ident()) for i in range(9, -1, -1)]


def test_hooks_change_gradients(team):
    x, _, total = wide(6, {2: lambda g: g * 3, 4: lambda g: None})
    (found,) = grad(total, x, retain_graph=True)
    with cygrad.threads(1):
        assert grad(total, x)[0].numpy().tobytes() == found.numpy().tobytes()


def test_hook_registered_while_the_team_runs(team):
    log = []
    x, branches, total = wide(8)
    branches[7].register_hook(lambda g: branches[0].register_hook(lambda g: log.append("late")) and None)
    for b in branches[1:7]:
        b.register_hook(lambda g: None)
    total.backward()
    assert log in (["late"], [])
    assert x.grad is not None


def test_errors_of_hooks(team):
    def hook(g):
        raise KeyError("stop")

    _x, _, total = wide(8, {5: hook})
    for _ in range(3):
        with pytest.raises(KeyError, match="stop"):
            total.backward(retain_graph=True)


def test_errors_of_nodes(team):
    _, branches, total = wide(8)
    branches[4].detach().zero_()                 # tanh needs its result
    with pytest.raises(RuntimeError, match=r"TanhBackward0.*modified by an inplace operation"):
        total.backward(retain_graph=True)
    _x, branches, total = wide(8)
    total.backward()
    with pytest.raises(RuntimeError, match=r"freed.*retain_graph=True"):
        total.backward()


def test_backward_inside_a_hook(team):
    inner = []

    def hook(g):
        with cygrad.enable_grad():
            w, _, total = wide(4)
            inner.append(grad(total, w)[0].sum().item())

    x, _, total = wide(6, {1: hook, 3: hook})
    total.backward()
    assert len(inner) == 2
    assert inner[0] == inner[1]
    assert x.grad is not None


def test_restricted_to_inputs(team):
    x, branches, total = wide(6)
    total.backward(inputs=[branches[2]])
    assert x.grad is None
    assert branches[2].grad is not None


def test_several_python_threads(team):
    with cygrad.threads(1):
        x, _, total = wide(4)
        total.backward()
        expected = x.grad.numpy().tobytes()
    found = []

    def body():
        x, _, total = wide(4)
        total.backward()
        found.append(x.grad.numpy().tobytes())

    threads = [threading.Thread(target=body) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_contributions_are_added_while_they_come(team):
    """A weight that a long chain uses gets one gradient, not one for each use until the end."""
    uses, seen = 24, []
    weight = cygrad.full((SIZE, SIZE), 1.0 / SIZE).requires_grad_()
    first = cygrad.ones(SIZE, SIZE, requires_grad=True) * 2.0
    first.register_hook(lambda gradient: seen.append(cygrad.memory_stats()["large_in_use"]))
    result = first
    for _ in range(uses):
        result = result @ weight
    before = cygrad.memory_stats()["large_in_use"]
    result.sum().backward()
    # What the chain has saved is gone by then: memory for most of it would be in use again if gradients waited.
    assert before - seen[0] > (uses - 8) * first.nbytes
