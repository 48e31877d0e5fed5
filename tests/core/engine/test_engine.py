"""The engine: leaks, captured gradients, reentrancy, order."""

import gc
import itertools

import pytest

import cygrad
from cygrad.autograd import grad

FLOAT = cygrad.float64


def resident():
    """Resident memory of this process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def leaf(*shape):
    return cygrad.ones(shape, dtype=FLOAT, requires_grad=True)


W, B, X = leaf(8, 8), leaf(8), cygrad.ones(4, 8, dtype=FLOAT)


def training():
    (((X @ W + B).tanh() ** 2).mean()).backward()
    with cygrad.no_grad():
        for p in (W, B):
            p -= 1e-9 * p.grad
            p.grad = None


def error_in_a_hook():
    y = W * 2
    y.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.exp().sum().backward()


def hooks():
    y = W * 2
    handle = y.register_hook(lambda grad: grad * 2)
    y.grad_fn.register_prehook(lambda grads: None)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.retain_grad()
    y.sum().backward()
    handle.remove()
    W.grad = None


def second_order():
    (g,) = grad(W.tanh().sum(), W, create_graph=True)
    grad((g * g).sum(), W)


def views_in_place():
    y = W * 1
    y[0].mul_(2)
    y[1:, 2] = 3.0
    y.view(-1).add_(1)
    y.sum().backward()
    W.grad = None


def refused():
    y = (W * W).sum()
    y.backward()
    W.grad = None
    for attempt in (lambda: y.backward(), lambda: (W * 2).backward(), lambda: W.add_(1), lambda: W + cygrad.ones(5),
                    lambda: (W * 1).mul_(1j), lambda: grad((W * 2).sum(), B)):
        with pytest.raises(RuntimeError):
            attempt()


def looking():
    y = W.exp()
    assert y.grad_fn._saved_result is not y.grad_fn._raw_saved_result
    assert len(y.grad_fn.next_functions) == 1
    y.grad_fn.metadata["key"] = 1
    W.data = W.data.clone()
    W.grad = cygrad.ones(8, 8, dtype=FLOAT)
    W.grad = None


@pytest.mark.resident
@pytest.mark.parametrize(("step", "count"), [
    (training, 20_000), (error_in_a_hook, 3000), (hooks, 5000), (second_order, 3000), (views_in_place, 3000),
    (refused, 1500), (looking, 5000)])
def test_nothing_leaks(step, count):
    for _ in range(300):
        step()
    gc.collect()
    before = resident()
    for _ in range(count):
        step()
    assert resident() - before < 2_000_000


def test_captured_gradients_that_are_passed_on():
    x = leaf(3)
    y = x * 2
    z = y + 0
    first, second, third = grad((z * z).sum(), [z, y, x])
    assert [first.tolist(), second.tolist(), third.tolist()] == [[4.0] * 3, [4.0] * 3, [8.0] * 3]
    first.zero_()
    assert third.tolist() == [8.0] * 3


def test_captured_with_hooks_and_create_graph():
    x = leaf(2)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    for create_graph in (False, True):
        captured, through = grad((y * y).sum(), [y, x], create_graph=create_graph, retain_graph=True)
        assert captured.tolist() == [12.0, 12.0]
        assert through.tolist() == [36.0, 36.0]
        assert captured.requires_grad is create_graph


def test_the_gradient_given_is_not_changed():
    x, seed = leaf(3), cygrad.ones(3, dtype=FLOAT)
    for output in (x + x, x * 1, (x + 0).view(3), x):
        output.backward(seed)
        grad(output, x, seed, retain_graph=True)
    assert seed.tolist() == [1.0] * 3
    assert seed._version == 0
    x.grad.zero_()
    assert seed.tolist() == [1.0] * 3
    fresh = leaf(3)
    fresh.backward(seed, create_graph=True)
    assert fresh.grad is not seed
    assert fresh.grad.data_ptr() != seed.data_ptr()
    fresh.grad = None


def test_expanded_gradients_with_create_graph():
    x = leaf(2, 3)
    x.sum().backward(create_graph=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2
    x.grad = None


def test_native_and_recorded_agree():
    x = cygrad.tensor([[0.3, -1.2], [2.0, 0.7]], dtype=FLOAT, requires_grad=True)
    programs = [lambda: (x @ x).tanh().sum(), lambda: (x.exp() / (1 + x.exp())).prod(), lambda: x.std() * x.max(),
                lambda: (x.t() * x[0]).softmax(0).sum(0).pow(2).sum(), lambda: x.cumsum(0).logsumexp(1).sum()]
    for program in programs:
        native, = grad(program(), x)
        recorded, = grad(program(), x, create_graph=True)
        assert recorded.tolist() == [[pytest.approx(v, rel=1e-14) for v in row] for row in native.tolist()]


def test_python_nodes_run_in_decreasing_order():
    x = leaf(2)
    log, tensors = [], []
    for i in range(12):
        source = tensors[-1 - i % 3] if len(tensors) > 3 else x
        y = source * 1.5
        y.register_hook(lambda g, i=i: log.append(i))
        tensors.append(y)
    total = sum(t.sum() for t in tensors)
    total.backward()
    assert log == sorted(log, reverse=True)
    assert len(log) == 12


def test_inputs_in_all_combinations():
    def build():
        x = leaf(2)
        a = x * 2
        b = a.exp()
        c = a + b
        return {"x": x, "a": a, "b": b, "c": c}, (c * b).sum()

    tensors, output = build()
    expected = {name: g.tolist() for name, g in zip(tensors, grad(output, list(tensors.values())), strict=True)}
    for count in range(1, 5):
        for names in itertools.permutations("xabc", count):
            tensors, output = build()
            found = grad(output, [tensors[name] for name in names])
            assert [g.tolist() for g in found] == [expected[name] for name in names]


def test_gradients_of_unlike_dtypes():
    x = cygrad.ones(3, requires_grad=True)
    (x.double() * 2 + x).sum().backward()
    assert x.grad.dtype is cygrad.float32
    assert x.grad.tolist() == [3.0] * 3
    y = (x * cygrad.tensor(2.0, dtype=FLOAT)).sum()
    y.backward()
    assert x.grad.tolist() == [5.0] * 3


def test_interrupted_calls_leave_the_thread_as_it_was():
    x = leaf(2)
    with cygrad.no_grad(), pytest.raises(RuntimeError):
        (x.detach() * 2).sum().backward()
    assert cygrad.is_grad_enabled()
    with pytest.raises(RuntimeError):
        (x * 2).backward()
    assert cygrad.is_grad_enabled()
    assert (x * 2).requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_inputs_leave_out_the_formulas_of_other_arguments(create_graph):
    x = cygrad.ones(2, 1500, requires_grad=True)
    w = cygrad.ones(1500, 1500, requires_grad=True)

    def blocks(inputs):
        """Return the number of large blocks that backward allocates: gradients and buffers."""
        loss = (x @ w).sum()
        before = cygrad.memory_stats()
        cygrad.autograd.grad(loss, inputs, create_graph=create_graph)
        after = cygrad.memory_stats()
        return after["reused"] + after["fresh"] - before["reused"] - before["fresh"]

    assert blocks([x]) < blocks([x, w])
    assert blocks([w]) < blocks([x, w])


def test_inputs_behind_lists_and_hooks():
    x, y, z = (cygrad.full((3,), float(i), requires_grad=True) for i in (1, 2, 3))
    product = cygrad.cat([x * y, z]) * cygrad.cat([z, x])
    product.register_hook(lambda grad: grad * 2)
    everything = cygrad.autograd.grad(product.sum(), [x, y, z], retain_graph=True)
    for place, leaf in enumerate((x, y, z)):
        alone, = cygrad.autograd.grad(product.sum(), [leaf], retain_graph=True)
        assert alone.equal(everything[place])
