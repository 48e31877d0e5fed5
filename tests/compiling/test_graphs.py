"""Backward outside of a compiled function is bit-identical to eager."""

import copy

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.compiling import explain
from tests.compiling.random_functions import numbers
from tests.tools import in_threads


def model(seed=0):
    cygrad.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))


def test_module_in_a_training_loop():
    eager, plain = model(), model()
    compiled = cygrad.compile(plain)
    optimizers = [optim.Adam(module.parameters(), lr=0.01) for module in (eager, plain)]
    for number in range(5):
        x = cygrad.randn(4, 6)
        for module, optimizer in zip((eager, compiled), optimizers, strict=True):
            optimizer.zero_grad()
            loss = (module(x).square()).mean() * (number + 1)
            loss.backward()
            optimizer.step()
        for a, b in zip(eager.parameters(), plain.parameters(), strict=True):
            assert cygrad.equal(a, b) and cygrad.equal(a.grad, b.grad)
    assert explain(compiled).executions == 4


def test_between_other_operations():
    module = model()
    compiled = cygrad.compile(module)
    for number in range(4):
        x = (cygrad.randn(2, 6) + number).requires_grad_()
        outcomes = []
        for function in (module, compiled):
            loss = function((x * 2).sin()).exp().sum()
            outcomes.append([loss, *cygrad.autograd.grad(loss, [x, *module.parameters()])])
        for a, b in zip(*outcomes, strict=True):
            assert cygrad.equal(a, b)
    assert explain(compiled).executions == 3


def test_second_derivatives():
    def function(x):
        return (x ** 3).sin()

    compiled = cygrad.compile(function)
    for number in range(3):
        outcomes = []
        for called in (function, compiled):
            x = (cygrad.arange(4.0) + number).requires_grad_()
            (first,) = cygrad.autograd.grad(called(x).sum(), x, create_graph=True)
            outcomes.append((first, *cygrad.autograd.grad(first.square().sum(), x)))
        assert all(cygrad.equal(a, b) for a, b in zip(*outcomes, strict=True))
    assert explain(compiled).executions == 2


def test_second_derivatives_through_a_detached_factor():
    def function(x):
        made = x * 4.5
        made.mul_(x.detach())
        return made * x.detach()

    compiled = cygrad.compile(function)
    for number in range(3):
        outcomes = []
        for called in (function, compiled):
            x = (cygrad.arange(4.0) + number).requires_grad_()
            (first,) = cygrad.autograd.grad(called(x).square().sum(), x, create_graph=True)
            outcomes.append((first, *cygrad.autograd.grad(first.square().sum(), x)))
        assert all(cygrad.equal(a, b) for a, b in zip(*outcomes, strict=True))
    assert explain(compiled).executions == 2


def test_some_results_without_gradient():
    def function(x, y):
        return x * y, (x / y).detach(), x.exp(), (x > y)

    compiled = cygrad.compile(function)
    for _ in range(3):
        outcomes = []
        for called in (function, compiled):
            x, y = cygrad.rand(3) + 1, cygrad.rand(3) + 2
            x, y = cygrad.linspace(1, 2, 3).requires_grad_(), cygrad.linspace(2, 3, 3).requires_grad_()
            first, second, third, fourth = called(x, y)
            assert (first.requires_grad, second.requires_grad, fourth.requires_grad) == (True, False, False)
            outcomes.append((first, second, third, fourth, *cygrad.autograd.grad(third.sum(), [x, y],
                                                                                 allow_unused=True)))
        for a, b in zip(*outcomes, strict=True):
            assert a is b or cygrad.equal(a, b)
    assert explain(compiled).executions == 2


def test_unused_argument_and_frozen_parameter():
    module = model()
    module[0].requires_grad_(False)
    compiled = cygrad.compile(lambda x, y: module(x))
    for _ in range(3):
        x, y = cygrad.ones(2, 6, requires_grad=True), cygrad.ones(2, requires_grad=True)
        compiled(x, y).sum().backward()
        assert y.grad is None and module[0].weight.grad is None and x.grad is not None
    assert explain(compiled).executions == 2


def test_tensor_that_comes_twice():
    compiled = cygrad.compile(lambda x, y: x * y.sin())
    x = cygrad.ones(2, requires_grad=True)
    for y in (x, x, cygrad.ones(2, requires_grad=True), x.detach(), x):
        expected = cygrad.autograd.grad((x * y.sin()).sum(), x)[0]
        assert cygrad.equal(cygrad.autograd.grad(compiled(x, y).sum(), x)[0], expected)


def test_graph_is_freed_and_kept():
    compiled = cygrad.compile(lambda x: x.sin())
    for _ in range(3):
        x = cygrad.ones(2, requires_grad=True)
        y = compiled(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert cygrad.equal(x.grad, 2 * x.detach().cos())
        with pytest.raises(RuntimeError, match="retain_graph"):
            y.backward()


def test_graph_that_the_function_itself_frees():
    """Loss and gradient in one function: its backward needs no graph in later calls, but later ones must fail."""
    def loss_and_gradients(x, w):
        loss = (x * w).sin().sum()
        return loss, *cygrad.autograd.grad(loss, (x, w))

    compiled = cygrad.compile(loss_and_gradients)
    for _ in range(3):
        x, w = cygrad.randn(4, requires_grad=True), cygrad.randn(4, requires_grad=True)
        expected, found = loss_and_gradients(x, w), compiled(x, w)
        assert all(map(cygrad.equal, expected, found))
        assert [tensor.requires_grad for tensor in found] == [True, False, False]
        with pytest.raises(RuntimeError, match="SinBackward0: Trying to backward through the graph a second time"):
            found[0].backward()
        assert x.grad is None
        assert w.grad is None
    assert len(explain(compiled).programs) == 1


def test_change_in_place_between_forward_and_backward():
    w = cygrad.ones(3, requires_grad=True)
    compiled = cygrad.compile(lambda x: w * w * x)
    for _ in range(3):
        result = compiled(cygrad.ones(3))
        with cygrad.no_grad():
            w.mul_(1)
        with pytest.raises(RuntimeError, match="inplace operation"):
            result.sum().backward()


def test_hooks_on_results():
    compiled = cygrad.compile(lambda x: x * x)
    for _ in range(3):
        x = cygrad.ones(2, requires_grad=True)
        y = compiled(x)
        y.register_hook(lambda gradient: gradient * 3)
        y.sum().backward()
        assert x.grad.tolist() == [6, 6]


def test_copies_and_state():
    module = model()
    compiled = cygrad.compile(module)
    assert [name.removeprefix("_orig_mod.") for name in compiled.state_dict()] == [*module.state_dict()]
    other = copy.deepcopy(module)
    x = cygrad.randn(2, 6)
    for _ in range(2):
        assert cygrad.equal(compiled(x), other(x))


def test_backward_reads_what_was_in_grad():
    w = cygrad.ones(3, requires_grad=True)
    w.grad = cygrad.tensor([1.0, 2.0, 3.0])
    compiled = cygrad.compile(lambda x: w.grad * w * x)
    for number in range(3):
        w.grad = w.grad + number
        x = cygrad.ones(3, requires_grad=True)
        expected = w.grad.tolist()
        for gradient in cygrad.autograd.grad(compiled(x).sum(), [x, w]):
            assert gradient.tolist() == expected
    assert explain(compiled).executions == 2


def test_hogwild_with_a_compiled_module():
    module = model()
    compiled = cygrad.compile(module)
    x = cygrad.ones(4, 6)
    compiled(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()

    def work(_):
        for _ in range(50):
            compiled(x).sum().backward()

    in_threads(4, work)
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        assert cygrad.allclose(parameter.grad, gradient * 200)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", [(0,), (1,), (0, 1), (1, 1), (1, 0, 1)])
def test_an_argument_computed_from_another_argument(which, create_graph):
    """The history of an argument counts once: outside of the function."""
    def function(x, y):
        return y * 1.5, x * x

    def gradients(run):
        y = cygrad.tensor([0.5, 0.8], requires_grad=True)
        results = run(y * 2, y)
        for position in which:
            value = results[position].sum()
            if create_graph:
                value = cygrad.autograd.grad((results[position] ** 2).sum(), y, create_graph=True)[0].sum()
            value.backward(retain_graph=True)
        (results[0] + results[1]).sum().backward()
        return y.grad.tolist()

    compiled = cygrad.compile(function)
    for _ in range(4):
        assert gradients(compiled) == gradients(function)
    assert explain(compiled).executions > 0


def test_a_recurrent_cell_whose_state_depends_on_its_weights():
    layer = cygrad.nn.Linear(3, 3)
    compiled = cygrad.compile(lambda state, x: (layer(state) + x).tanh())

    def gradients(cell):
        layer.zero_grad()
        state = cygrad.zeros(2, 3)
        for step in range(5):
            state = cell(state, cygrad.full((2, 3), 0.1 * step))
        state.square().sum().backward()
        return [parameter.grad.tolist() for parameter in layer.parameters()]

    expected = gradients(lambda state, x: (layer(state) + x).tanh())
    for _ in range(3):
        assert gradients(compiled) == expected
    assert explain(compiled).executions >= 10


def test_modifying_memory_from_outside_through_data_does_not_count():
    weight = cygrad.ones(3)

    def function(x):
        weight.data.mul_(2)
        return x + 1

    compiled = cygrad.compile(function)
    for _ in range(3):
        compiled(cygrad.ones(3))
    assert weight.tolist() == [8.0] * 3
    assert weight._version == 0
    assert any("through .data" in reason for reason in explain(compiled).reasons)


@pytest.mark.parametrize("where", ["argument", "parameter", "inside"])
def test_tracing_calls_no_hooks(where):
    calls = []
    weight = cygrad.ones(3, requires_grad=True)
    x = cygrad.ones(3, requires_grad=True)

    def function(x):
        if where == "inside":
            x.register_hook(lambda gradient: calls.append("inside"))
        return x * weight

    if where != "inside":
        {"argument": x, "parameter": weight}[where].register_hook(lambda gradient: calls.append(where))
    compiled = cygrad.compile(function)
    for _ in range(3):
        result = compiled(x)
    assert calls == []
    result.sum().backward()
    assert calls == [where] * (3 if where == "inside" else 1)


@pytest.mark.parametrize("leaf", [False, True])
def test_hooks_are_called_once_in_a_backward_of_some_results(leaf):
    def run(compiled):
        weight = cygrad.tensor([1.0, 2.0], requires_grad=True)
        gradients = []

        def function(x, y):
            product = x * y
            return product, product * 2

        step = cygrad.compile(function) if compiled else function
        for hooked in (False, False, False, True, True):
            weight.grad = None
            y = weight if leaf else weight * 3
            if hooked and (not leaf or not gradients):
                y.register_hook(lambda gradient: gradients.append(gradient.tolist()) or gradient * 2)
            for result in step(cygrad.ones(2), y):
                result.sum().backward(retain_graph=True)
            gradients.append(weight.grad.tolist())
        return gradients

    assert run(True) == run(False)


@pytest.mark.parametrize("used", [0, 1, 2])
@pytest.mark.parametrize("scale", [None, 3])
def test_hooks_of_parameters_without_a_path_are_not_called(used, scale):
    def run(compiled):
        leaves = [cygrad.ones(3, requires_grad=True) for _ in range(3)]
        calls = []

        def function(x, *weights):
            unused = weights[2] * x
            return (weights[0] * x).sum(), weights[1] * unused.detach(), x * 1

        step = cygrad.compile(function) if compiled else function
        for turn in range(5):
            weights = [leaf if scale is None else leaf * scale for leaf in leaves]
            x = cygrad.ones(3, requires_grad=True)
            for number, tensor in enumerate((*weights, *(leaves if turn == 2 else ()))):
                if scale or turn == 2:
                    tensor.register_hook(lambda grad, number=number: calls.append((turn, number, grad.tolist())))
            step(x, *weights)[used].sum().backward()
        return sorted(calls), [leaf.grad for leaf in leaves if leaf.grad is not None]

    assert repr(run(True)) == repr(run(False))


def linked(compiled, weight):
    """Results from which others are computed."""
    def function(x):
        hidden = (x * weight).sin()
        return hidden, hidden.exp(), (hidden * 2).sum()

    return cygrad.compile(function) if compiled else function


@pytest.mark.parametrize("use", ["grad", "hook", "retain_grad", "inputs", "second order", "edge", "changed parameter"])
def test_gradients_flow_through_results_from_which_others_are_computed(use):
    def run(compiled):
        weight, found = cygrad.tensor([0.5, 1.5, 2.5], requires_grad=True), []
        function = linked(compiled, weight)
        for turn in range(3):
            hidden, made, total = function(cygrad.ones(2, 3) + turn)
            loss = (hidden * made).sum() + total
            if use == "grad":
                found += cygrad.autograd.grad(loss, [hidden, made, total, weight], retain_graph=True)
                found += cygrad.autograd.grad(total, hidden)
            elif use == "hook":
                hidden.register_hook(lambda gradient: gradient * 3)
                made.register_hook(lambda gradient: gradient + 1)
            elif use == "retain_grad":
                hidden.retain_grad()
            elif use == "inputs":
                total.backward(inputs=[hidden])
                found.append(hidden.grad)
            elif use == "second order":
                gradient, = cygrad.autograd.grad(loss, hidden, create_graph=True)
                found += [gradient, *cygrad.autograd.grad(gradient.sum(), [weight, hidden])]
            elif use == "edge":
                edge = cygrad.autograd.graph.get_gradient_edge(hidden)
                found += cygrad.autograd.grad(made.sum(), edge)
            else:
                with cygrad.no_grad():
                    weight.add_(1)
                found += cygrad.autograd.grad(total, [hidden, weight])
            if use in ("hook", "retain_grad"):
                loss.backward()
                found += [weight.grad.clone(), hidden.grad if use == "retain_grad" else None]
        assert not compiled or explain(function).executions == 2
        return found

    eager, found = run(False), run(True)
    assert len(eager) == len(found)
    assert all(a is b or cygrad.equal(a, b) for a, b in zip(eager, found, strict=True))


def uses_of(weight, x, made, kind):
    """What one backward sums up: contributions of the function and of operations outside, in the order of the graph."""
    hidden, total = made
    if kind == "outside":
        return (weight * x).sum() + total.sum() + weight.sin().sum()
    if kind == "result":
        return (hidden * 0.3).sum() + hidden.t().exp().sum() + total.sum() + (hidden * 1.7).sum()
    return hidden.square().sum() + total.sum() + (hidden[1:] * hidden[:-1]).sum()


@pytest.mark.parametrize("kind", ["outside", "result", "views"])
@pytest.mark.parametrize("use", ["backward", "hook", "late hook", "second order", "third order", "retained", "twice"])
def test_contributions_to_a_gradient_are_added_in_the_order_of_eager(kind, use):
    def run(compile, seed):
        weight, x = numbers(6, 6, seed=seed).requires_grad_(), numbers(6, 6, seed=seed + 1).requires_grad_()

        @compile
        def function(x):
            hidden = (x @ weight).tanh() * weight
            return hidden, (hidden * weight).sin() @ weight

        found = []
        for _ in range(3):
            made = function(x)
            if use in ("hook", "retained"):
                made[0].register_hook(lambda gradient: gradient * 1.1)
            if use == "retained":
                made[0].retain_grad()
            loss = uses_of(weight, x, made, kind)
            if use == "late hook":
                made[0].register_hook(lambda gradient: gradient * 0.7)
                loss = loss + uses_of(weight, x, made, kind)
            if use in ("second order", "third order"):
                first = cygrad.autograd.grad(loss, [weight, x, made[0]], create_graph=True, allow_unused=True)
                again = sum(part.square().sum() for part in first if part is not None) + made[0].sum()
                if use == "third order":
                    first = cygrad.autograd.grad(again, [weight, x], create_graph=True)
                    again = sum(part.sin().sum() for part in first)
                found += [*first, *cygrad.autograd.grad(again, [weight, x])]
            else:
                loss.backward(retain_graph=use == "twice")
                if use == "twice":
                    (loss + made[0].sum()).backward()
                found += [weight.grad.clone(), x.grad.clone(), made[0].grad if use == "retained" else None]
        assert compile is not cygrad.compile or explain(function).executions == 2
        return found

    for seed in range(5):
        pairs = zip(run(lambda function: function, seed), run(cygrad.compile, seed), strict=True)
        assert all(a is b or cygrad.equal(a, b) for a, b in pairs)


def test_a_result_from_which_others_are_computed_has_no_gradient_of_its_own_where_its_node_has_hooks():
    compiled = cygrad.compile(lambda x: (x.exp(), x.exp().sin()))
    linked_one = linked(True, cygrad.ones(3, requires_grad=True))
    for _ in range(2):
        single, hidden = compiled(cygrad.ones(3, requires_grad=True))[0], linked_one(cygrad.ones(2, 3))[0]
    for result in (single, hidden):
        result.grad_fn.register_prehook(lambda gradients: None)
    single.register_hook(lambda gradient: None)
    with pytest.raises(RuntimeError, match="Register hooks on tensors"):
        hidden.register_hook(lambda gradient: None)


@pytest.mark.parametrize("make", [lambda row: row.exp(), lambda row: row[1:]])
def test_gradient_of_a_view_includes_what_is_computed_from_it(make):
    weight = cygrad.ones(3, requires_grad=True)

    @cygrad.compile
    def function(x):
        row = (x * weight)[0]
        return row, make(row)

    for _ in range(3):
        row, made = function(cygrad.ones(2, 3))
        gradient, = cygrad.autograd.grad(made.sum(), row)
        assert gradient.tolist() == (made.tolist() if made.numel() == 3 else [0, 1, 1])


def pieces_out_of_order(y):
    first, second, third = y[:3], y[:2], y[:1]
    return third, first, second


VIEWS = {
    "pieces of an input": pieces_out_of_order,
    "pieces of a result": lambda x: pieces_out_of_order(x * 2),
    "pieces of a view": lambda x: pieces_out_of_order(x.view(2, 2).t().reshape(4)[1:].view(3)),
    "chunks": lambda x: (x * 1.1).chunk(2),
    "a view before the last use of its base": lambda x: (lambda y: (y[:3], y.sin(), y.cos()))(x * 2),
    "a view before the last use of an input": lambda x: (x[:3], x.sin(), x.cos()),
    "a view after the last use of its base": lambda x: (lambda y: (y.sin(), y.cos(), y[:3]))(x * 2),
    "a view that shares its history with a result": lambda x: (lambda y: (y[0], y[1], y.sin()))(x.view(2, 2)),
    "a view of a view that is returned": lambda x: (lambda y: (y, y[:1]))((x * 2)[1:]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_returned_views_add_gradients_in_the_order_of_eager(name):
    function = VIEWS[name]
    compiled = cygrad.compile(function)
    generator = cygrad.Generator().manual_seed(0)
    for _ in range(30):
        x = cygrad.randn(4, generator=generator)
        weights = cygrad.randn(4, generator=generator) * -0.0 ** (cygrad.rand(4, generator=generator) < 0.3)
        gradients = []
        for call in (function, compiled):
            leaf = x.clone().requires_grad_()
            results = call(leaf)
            sum((result * weights[:result.shape[-1]] * weights[i]).sum() for i, result in enumerate(results)).backward()
            gradients.append(leaf.grad.numpy().tobytes())
        assert gradients[0] == gradients[1]
    if "a view before" not in name and "shares" not in name:
        assert explain(compiled).executions == 29, explain(compiled)


def test_batches_of_gradients():
    compiled = cygrad.compile(lambda x: (x * x).sin())
    for number in range(3):
        x = (cygrad.arange(3.0) + number).requires_grad_()
        gradient, = cygrad.autograd.grad(compiled(x), x, grad_outputs=cygrad.eye(3), is_grads_batched=True)
        assert cygrad.equal(gradient, cygrad.diag(2 * x * (x * x).cos()).detach())
    assert explain(compiled).executions == 2


def test_backward_in_inference_mode_gives_ordinary_gradients():
    compiled = cygrad.compile(lambda x: x.sin().sum())
    for _ in range(3):
        x = cygrad.ones(2, requires_grad=True)
        loss = compiled(x)
        with cygrad.inference_mode():
            gradient, = cygrad.autograd.grad(loss, x)
        assert not gradient.is_inference()


@pytest.mark.parametrize("function", [lambda x, w: x * w, lambda x, w: x.t() * w, lambda x, w: (x.t() * w).sin() * w])
@pytest.mark.parametrize("gradient", [
    lambda made: cygrad.randn(40, 40).t(), lambda made: cygrad.ones(()).expand(40, 40),
    lambda made: cygrad.randn(40).expand(40, 40), lambda made: made.detach().square()])
def test_layout_of_the_incoming_gradient_decides_the_order_of_sums(function, gradient):
    compiled = cygrad.compile(function)
    for seed in range(4):
        cygrad.manual_seed(seed)
        x, weight = cygrad.randn(40, 40), cygrad.randn(40).requires_grad_()
        given = gradient(function(x, weight))
        expected, found = (cygrad.autograd.grad(called(x, weight), weight, given)[0]
                           for called in (function, compiled))
        assert cygrad.equal(expected, found)
    assert explain(compiled).executions == 3
