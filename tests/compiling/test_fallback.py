"""Unsupported functions run eagerly, and `explain` gives the reason."""

import random
from decimal import Decimal, localcontext

import numpy as np
import pytest

import cygrad
from cygrad import nn, optim
from cygrad._core.compiler.tracer import Tracer
from cygrad.compiling import CompileError, draw, explain
from tests.tools import in_threads

seen = []
factor = 2.0
weight = cygrad.ones(3)


def check(function, *calls, reason=None, executions=None):
    """Check each call against the function, and the reason or the number of executions."""
    compiled = cygrad.compile(function)
    for arguments in calls:
        expected, found = function(*arguments), compiled(*arguments)
        if isinstance(expected, cygrad.Tensor):
            assert cygrad.equal(expected, found) and found.requires_grad == expected.requires_grad
        else:
            assert expected == found
    report = explain(compiled)
    if reason is not None:
        assert report.executions == 0 and any(reason in found for found in report.reasons), str(report)
        strict = cygrad.compile(function, fullgraph=True)
        with pytest.raises(CompileError, match=reason):
            [strict(*arguments) for arguments in calls[:1] * 5]
    if executions is not None:
        assert report.executions == executions, str(report)


def test_repeat_interleave_is_replayed_if_its_size_is_given():
    x, counts = cygrad.arange(6.0).reshape(3, 2).requires_grad_(), cygrad.tensor([1, 2, 3])
    sized = cygrad.compile(lambda x, counts: x.repeat_interleave(counts, 0, output_size=6).sum(0))
    check(lambda x, counts: x.repeat_interleave(counts, 0, output_size=6).sum(0),
          *[(x, cygrad.tensor(each)) for each in ([1, 2, 3], [1, 2, 3], [6, 0, 0], [0, 3, 3])], executions=3)
    [sized(x, counts) for _ in range(3)]
    with pytest.raises(RuntimeError, match="output_size must be the sum of repeats"):
        sized(x, cygrad.tensor([1, 2, 4]))
    check(lambda x, counts: x.repeat_interleave(counts, 0).sum(0), (x, counts), (x, cygrad.tensor([6, 5, 0])),
          reason="depends on elements")


def test_elements_that_python_sees():
    x = cygrad.arange(3.0)
    check(lambda x: x.sum().item(), (x,), (x + 1,), reason="went to Python")
    check(lambda x: x * 2 if x.sum() > 3 else x, (x,), (x + 1,), reason="went to Python")
    check(lambda x: x * float(x[0]), (x,), (x + 1,), reason="went to Python")
    check(lambda x: x.numpy().tolist(), (x,), (x + 1,), reason="went to Python")
    check(lambda x: x.tolist(), (x,), (x + 1,), reason="went to Python")
    others = [cygrad.ones(3) for _ in range(4)]                  # in separate memory
    check(lambda x: x.data_ptr(), *[(other,) for other in others], reason="went to Python")


def test_what_leaves_its_graph_in_place():
    leaf = cygrad.ones(3, requires_grad=True)
    compiled = cygrad.compile(lambda x: (x + x.detach_()).sum())
    for _ in range(3):
        x = leaf * 2
        assert compiled(x).item() == 12 and x.is_leaf and not x.requires_grad
    assert explain(compiled).executions == 0


def test_shapes_that_depend_on_elements():
    x = cygrad.tensor([1.0, 0.0, 2.0])
    check(lambda x: x[x > 0], (x,), (x + 1,), reason="depends on elements")
    check(cygrad.nonzero, (x,), (x + 1,), reason="depends on elements")


def test_world_outside():
    x = cygrad.ones(2)
    check(lambda x: x * random.random() * 0, (x,), (x,), reason="module 'random'")
    check(lambda x: print(end="") or x * 2, (x,), (x,), reason=r"it calls print")
    numbers = iter(range(9))
    check(lambda x: x * 0 * next(numbers), (x,), (x,), reason="it")


def test_operators_of_foreign_types_may_read_what_nothing_compares():
    class Exact(Decimal):
        """A type of the user with such a base."""

    def divided(kind):
        return lambda x: x * float(kind(1) / 3)

    for kind in (Decimal, Exact):
        eager, compiled = divided(kind), cygrad.compile(divided(kind))
        for precision in (2, 5, 28):
            with localcontext(prec=precision):
                x = cygrad.ones(2, dtype=cygrad.float64)
                assert cygrad.equal(eager(x), compiled(x))
        check(divided(kind), (cygrad.ones(2),), reason="whose objects may differ in each call")


def test_types_of_errors_and_arrays_are_known():
    class Unfit(ValueError):
        """An error of the user."""

    def doubled(x):
        if x.shape[0] > 5:
            raise Unfit
        return x if isinstance(x, np.ndarray) else x * 2

    check(doubled, (cygrad.ones(3),), (cygrad.ones(3),), executions=1)


def test_tensors_that_stay():
    def keeping(x):
        seen.append(x * 2)
        return x + 1

    check(keeping, (cygrad.ones(2),), (cygrad.ones(2),), reason="it changes")
    seen.clear()


def test_random_numbers_are_drawn_anew():
    compiled = cygrad.compile(lambda x: x + cygrad.rand(3))
    cygrad.manual_seed(5)
    expected = [cygrad.rand(3) for _ in range(4)]
    cygrad.manual_seed(5)
    for numbers in expected:
        assert cygrad.equal(compiled(cygrad.zeros(3)), numbers)


def test_hooks():
    calls = []
    w = cygrad.ones(2, requires_grad=True)
    handle = w.register_hook(lambda grad: calls.append(1))

    def step(x):
        (w * x).sum().backward()

    compiled = cygrad.compile(step)
    for _ in range(3):
        compiled(cygrad.ones(2))
    assert len(calls) == 3 and explain(compiled).executions == 0
    handle.remove()


def test_hook_that_comes_later():
    calls = []
    w = cygrad.ones(2, requires_grad=True)

    def step(x):
        w.grad = None
        (w * x).sum().backward()

    compiled = cygrad.compile(step)
    for _ in range(4):
        compiled(cygrad.ones(2))
    executions = explain(compiled).executions
    assert executions
    w.register_hook(lambda grad: calls.append(1))
    for _ in range(3):
        compiled(cygrad.ones(2))
    assert len(calls) == 3 and explain(compiled).executions == executions


def test_values_and_shapes_are_compared():
    def function(x, power, flag=False):
        return x ** power if flag else x * power

    compiled = cygrad.compile(function)
    for arguments in ((cygrad.ones(2) * 3, 2), (cygrad.ones(2), 3), (cygrad.ones(3), 3), (cygrad.ones(3), 3.0),
                      (cygrad.ones(3), 3, True), (cygrad.ones(3, dtype=cygrad.float64), 3)):
        for _ in range(2):
            assert cygrad.equal(compiled(*arguments), function(*arguments))
    assert explain(compiled).executions == 6 and len(explain(compiled).programs) == 6
    assert cygrad.equal(compiled(cygrad.ones(2), power=4), function(cygrad.ones(2), power=4))


def test_zero_has_a_sign():
    compiled = cygrad.compile(lambda x, y: x / y)
    for zero in (0.0, -0.0, 0.0):
        assert compiled(cygrad.ones(1), zero).item() == 1 / cygrad.tensor(zero).item() if zero else True
        assert str(compiled(cygrad.ones(1), zero).item()) == ("-inf" if str(zero) == "-0.0" else "inf")


def test_too_many_traces():
    compiled = cygrad.compile(lambda x, number: x * number)
    for number in range(12):
        assert compiled(cygrad.ones(1), number).item() == number
    assert any("traces were needed" in reason for reason in explain(compiled).reasons)


def test_globals_and_closures_are_compared():
    global factor, weight
    inner = 1.0

    def function(x):
        return x * factor * inner + weight

    compiled = cygrad.compile(function)
    for value in (2.0, 3.0, 2.0):
        factor = inner = value
        for _ in range(2):
            assert cygrad.equal(compiled(cygrad.ones(3)), function(cygrad.ones(3)))
    weight = cygrad.zeros(3)
    assert cygrad.equal(compiled(cygrad.ones(3)), function(cygrad.ones(3)))
    weight.add_(5)
    assert cygrad.equal(compiled(cygrad.ones(3)), function(cygrad.ones(3)))
    weight.data = cygrad.full((3,), 7.0)
    assert cygrad.equal(compiled(cygrad.ones(3)), function(cygrad.ones(3)))


def test_modes_are_compared():
    w = cygrad.ones(2, requires_grad=True)

    def function(x):
        return x * w

    compiled = cygrad.compile(function)
    for _ in range(2):
        with cygrad.no_grad():
            assert not compiled(cygrad.ones(2)).requires_grad
        with cygrad.inference_mode():
            assert compiled(cygrad.ones(2)).is_inference()
        result = compiled(cygrad.ones(2))
        assert result.requires_grad
        result.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_changes_in_place_and_views():
    def function(x, y):
        z = x.view(2, 3)
        z[0].mul_(2)
        z[:, 1] = y
        x.add_(1)
        return z.sum()

    compiled = cygrad.compile(function)
    for number in range(4):
        a, b = cygrad.arange(6.0) + number, cygrad.arange(6.0) + number
        view = b[2:]
        y = cygrad.tensor([1.0, 2.0]) * number
        assert cygrad.equal(function(a, y), compiled(b, y))
        assert cygrad.equal(a, b) and a._version == b._version and cygrad.equal(view, a[2:])


def test_arguments_that_share_memory():
    def function(x, y):
        x.add_(1)
        return y * 2

    compiled = cygrad.compile(function)
    for _ in range(2):
        assert compiled(cygrad.zeros(2), cygrad.zeros(2)).tolist() == [0, 0]
        x = cygrad.zeros(2)
        assert compiled(x, x).tolist() == [2, 2]
        base = cygrad.zeros(4)
        assert compiled(base[:2], base[1:3]).tolist() == [2, 0]


def test_constants_are_new_each_time():
    def function(x):
        total = cygrad.zeros(2)
        total += x
        return total, cygrad.ones(2)

    compiled = cygrad.compile(function)
    for number in range(4):
        total, ones = compiled(cygrad.ones(2) * number)
        assert total.tolist() == [number, number] and ones.tolist() == [1, 1]
        total.zero_(), ones.zero_()
    assert explain(compiled).executions == 3


def test_scheduler_inside_is_noticed():
    w = cygrad.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        scheduler.step()

    compiled = cygrad.compile(step)
    for _ in range(5):
        compiled(cygrad.ones(2))
    assert w.tolist() == [1 - 1.9375] * 2


def test_errors_are_those_of_eager():
    compiled = cygrad.compile(lambda x, index: x.index_select(0, index))
    x = cygrad.arange(3.0)
    assert compiled(x, cygrad.tensor([0, 2])).tolist() == [0, 2]
    assert compiled(x, cygrad.tensor([1, 1])).tolist() == [1, 1]
    with pytest.raises(IndexError):
        compiled(x, cygrad.tensor([1, 7]))
    assert compiled(x, cygrad.tensor([2, 1])).tolist() == [2, 1]


def test_decorator_module_and_disable():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled = cygrad.compile(model)
    x = cygrad.randn(5, 3)
    with cygrad.no_grad():
        for _ in range(3):
            assert cygrad.equal(compiled(x), model(x))
    assert explain(compiled).executions == 2
    assert next(compiled.parameters()) is model[0].weight
    assert cygrad.compile(model, disable=True) is model

    @cygrad.compile(fullgraph=True)
    def double(x):
        """Twice."""
        return x * 2

    assert double(x).tolist() == (x * 2).tolist() and double.__doc__ == "Twice."
    with pytest.raises(ValueError, match="mode"):
        cygrad.compile(double, mode="faster")


def test_drawing():
    w = cygrad.ones(2, requires_grad=True)
    optimizer = optim.SGD([w], lr=1.0)

    @cygrad.compile
    def step(x):
        optimizer.zero_grad()
        (w * x.view(1, 2)).exp().sum().backward()
        optimizer.step()

    step(cygrad.ones(2))
    picture = draw(step)
    assert picture.startswith("<svg") and "SGD.step" in picture and "exp" in picture


def test_results_of_other_threads():
    """Operations of other threads are not traced: their results are no constants."""
    numbers = cygrad.zeros(1)

    def function(x):
        found = in_threads(1, lambda _: numbers + 1)
        return x * found[0]

    compiled = cygrad.compile(function)
    for _ in range(3):
        numbers.add_(1)
        assert cygrad.equal(compiled(cygrad.ones(1)), function(cygrad.ones(1)))


def test_changed_module_is_noticed():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    compiled = cygrad.compile(model)
    x = cygrad.randn(2, 3)
    with cygrad.no_grad():
        for change in (lambda: None, lambda: setattr(model, "1", nn.Linear(3, 3)), lambda: model.append(nn.Tanh()),
                       lambda: setattr(model[0], "bias", None)):
            change()
            for _ in range(2):
                assert cygrad.equal(compiled(x), model(x))
        model.register_forward_hook(lambda module, args, result: result + 1)
        assert cygrad.equal(compiled(x), model(x))


def test_threads_replay_at_the_same_time():
    def function(x):
        return (x @ x).tanh() @ x

    compiled = cygrad.compile(function)
    inputs = [cygrad.randn(40, 40) for _ in range(4)]
    compiled(inputs[0])

    def work(i):
        return all(cygrad.equal(compiled(inputs[i]), function(inputs[i])) for _ in range(200))

    assert all(in_threads(4, work))


def test_bare_tracer_does_not_start():
    with pytest.raises(RuntimeError, match="created without __init__"):
        Tracer.__new__(Tracer).start()
    assert cygrad.ones(1).add(1).item() == 2


@pytest.mark.parametrize("name", ["fill_", "zero_"])
def test_expanded_memory_is_filled(name):
    def step(x):
        made = cygrad.zeros(2, 1).expand(2, 3)
        getattr(made, name)(*([5.0] if name == "fill_" else []))
        return made + x

    compiled = cygrad.compile(step)
    x = cygrad.ones(3)
    for _ in range(3):
        assert cygrad.equal(compiled(x), step(x))
    memory = cygrad.ones(1)
    compiled = cygrad.compile(lambda x: getattr(memory.expand(4), name)(*([5.0] if name == "fill_" else [])) + x)
    for _ in range(3):
        memory.fill_(2.0)
        assert compiled(x[:1]).tolist() == [6.0 if name == "fill_" else 1.0] * 4
        assert memory.item() == (5.0 if name == "fill_" else 0.0)


def test_hooks_and_modes_that_a_recording_meets():
    """They observe the same as in eager, in the traced call too."""
    seen = []

    def step(x):
        x.grad = None
        y = x * 2
        cygrad.autograd.graph.get_gradient_edge(x).node.register_hook(
            lambda inputs, outputs: seen.append(outputs[0].data_ptr() == x.grad.data_ptr()))
        y.backward(cygrad.ones(2))
        with cygrad.inference_mode():
            return x.grad.is_inference(), cygrad.autograd.grad(scaled(x), x)[0].is_inference()

    def scaled(x):
        with cygrad.inference_mode(False):
            return (x * x).sum()

    compiled = cygrad.compile(step)
    for _ in range(3):
        assert compiled(cygrad.ones(2, requires_grad=True)) == (False, False)
    assert seen == [True] * 3


def test_mutation_of_saved_tensors():
    def step(x):
        with cygrad.autograd.graph.allow_mutation_on_saved_tensors():
            y = x.clone()
            z = y.square().sum()
            y.zero_()
            return cygrad.autograd.grad(z, x)[0]

    compiled = cygrad.compile(step)
    for _ in range(3):
        assert compiled(cygrad.ones(2, requires_grad=True)).tolist() == [2.0, 2.0]
    assert explain(compiled).executions == 0


def test_former_names_in_a_report_are_those_of_today():
    step = cygrad.compile(lambda x: x * 2 + 1)
    for _ in range(3):
        step(cygrad.ones(2))
    report = cygrad.compiling.explain(step)
    assert report.replays == report.executions == 2 and report.shared is report.parallel
