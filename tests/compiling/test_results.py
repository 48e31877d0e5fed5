"""Results of compiled functions: views with their bases, and leaves created by the function."""

import pytest

import cygrad
from cygrad.compiling import explain
from cygrad.compiling.verification import is_bit_identical


def numbers(*shape, seed=0):
    return cygrad.randn(*shape, generator=cygrad.Generator().manual_seed(seed))


def transposed(x, w):
    return (x @ w).t()


def with_base(x, w):
    y = x @ w
    return y, y.view(-1), y[1]


def two_of_one_base(x, w):
    y = x @ w
    return {"first": y[0], "second": y[1:, ::2]}


def chunks(x, w):
    return (x * w.sum()).chunk(2)


def view_of_view(x, w):
    return (x @ w)[1:].t()[0]


def view_without_grad(x, w):
    y = x @ w
    with cygrad.no_grad():
        part = y[0]
    return y, part


def view_of_input(x, w):
    return x.t(), (w * 2)[0]


FUNCTIONS = [transposed, with_base, two_of_one_base, chunks, view_of_view, view_without_grad, view_of_input]


def tensors_of(result):
    if isinstance(result, cygrad.Tensor):
        return [result]
    return list(result.values() if isinstance(result, dict) else result)


def described(result):
    """Return the observable properties of results: kinds, layouts, and which are views of one base."""
    tensors = tensors_of(result)
    bases = [None if tensor._base is None else tensor._base.data_ptr() for tensor in tensors]
    return [(type(tensor), tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.requires_grad,
             tensor._version, tensor.is_leaf, base and bases.index(base),
             base and [other.data_ptr() == base for other in tensors])
            for tensor, base in zip(tensors, bases, strict=True)]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_views_are_those_of_eager(function, recorded):
    x, w = numbers(4, 4), numbers(4, 4, seed=1).requires_grad_(recorded)
    compiled = cygrad.compile(function)
    for _ in range(4):
        expected, found = function(x, w), compiled(x, w)
        assert type(expected) is type(found) and described(expected) == described(found)
        for a, b in zip(tensors_of(expected), tensors_of(found), strict=True):
            assert is_bit_identical(a.detach(), b.detach())
        gradients = []
        for result in (expected, found) if recorded else ():
            total = sum((tensor * tensor).sum() for tensor in tensors_of(result) if tensor.requires_grad)
            gradients += cygrad.autograd.grad(total, w)
        assert not gradients or is_bit_identical(*gradients)
    assert explain(compiled).replays == 3


@pytest.mark.parametrize("recorded", [False, True])
def test_a_result_that_is_changed_changes_its_views(recorded):
    x, w = numbers(4, 4), numbers(4, 4, seed=1).requires_grad_(recorded)
    compiled = cygrad.compile(with_base)
    outcomes = []
    for function in (with_base, compiled, compiled, compiled):
        y, flat, row = function(x, w)
        row.mul_(3)
        y.add_(flat.view(4, 4).exp())
        outcomes.append([y, flat, row, *(cygrad.autograd.grad((y * flat.view(4, 4)).sum() + row.sum(), w)
                                         if recorded else ())])
    assert explain(compiled).replays == 2
    for found in outcomes[1:]:
        assert [tensor._version for tensor in found] == [tensor._version for tensor in outcomes[0]]
        assert all(cygrad.allclose(a, b) for a, b in zip(outcomes[0], found, strict=True))


def test_chunks_stay_outputs_of_one_operation():
    x, w = numbers(4, 4), numbers(4, 4, seed=1).requires_grad_()
    compiled = cygrad.compile(chunks)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="multiple views"):
            compiled(x, w)[0].add_(1)


# ------------------------------------------------------------------------------------------ leaves made by the function

X, W = numbers(8, 4), numbers(4, 4, seed=1).requires_grad_()


def loss_of(leaf):
    hidden = cygrad.tanh(leaf @ W)
    slope, = cygrad.autograd.grad(hidden.sum(), leaf, create_graph=True)
    return (slope * hidden).square().mean()


def backward_to_detached():
    leaf = X.detach().requires_grad_()
    loss = loss_of(leaf)
    loss.backward()
    return loss


def backward_to_copy():
    leaf = X.clone().requires_grad_()
    loss = loss_of(leaf)
    loss.backward()
    leaf.grad = None
    return loss


def gradient_of_leaf():
    leaf = X.detach().requires_grad_()
    loss = loss_of(leaf)
    loss.backward()
    return loss, leaf.grad


def two_leaves():
    a, b = X[:4].detach().requires_grad_(), X[4:].clone().requires_grad_()
    loss = loss_of(a) + loss_of(b)
    loss.backward()
    return loss, b.grad, a.grad * 2


@pytest.mark.parametrize("function", [backward_to_detached, backward_to_copy, gradient_of_leaf, two_leaves])
def test_backward_to_a_leaf_made_inside(function):
    compiled = cygrad.compile(function)
    for step in range(4):
        with cygrad.no_grad():
            X.mul_(0.9)
        W.grad = None if step % 2 else cygrad.ones(4, 4)
        expected, expected_grad = function(), W.grad
        W.grad = None if step % 2 else cygrad.ones(4, 4)
        found = compiled()
        for a, b in zip(tensors_of(expected), tensors_of(found), strict=True):
            assert is_bit_identical(a.detach(), b.detach()) and a.requires_grad == b.requires_grad
        assert is_bit_identical(expected_grad, W.grad)
    assert explain(compiled).replays >= 2


def test_leaf_that_is_returned_with_its_gradient():
    def function():
        leaf = X.detach().requires_grad_()
        loss_of(leaf).backward()
        return leaf
    compiled = cygrad.compile(function)
    for _ in range(3):
        assert is_bit_identical(compiled().grad, function().grad)


# ---------------------------------------------------------------------------------------------- equal work is done once

def cost(x):
    points = numbers_of_points
    return ((points ** 2).sum(1)[None] + (x ** 2).sum(1)[:, None] - 2 * (x @ points.T)).min(0)[0].sum()


numbers_of_points = numbers(20, 4, seed=2)


def two_derivatives():
    at = X.detach()
    gradient = cygrad.autograd.functional.vjp(cost, at, v=cygrad.tensor(1.0))[1]
    return gradient, cygrad.autograd.functional.vhp(cost, at, v=cygrad.ones_like(at))[1]


def through_views():
    return (X.t().exp()[0] + X.t().exp()[0] + X.view(-1)[::4].exp()).sum()


def around_a_write():
    y = X * 2
    first, second = y.sin().sum(0), y.t().t().sin().sum(0)
    y[0].mul_(3)
    return first, second, y.sin().sum(0)


def around_a_write_to_an_input():
    first = X[1].sin().sum()
    X[1:].mul_(0.5)
    return first, X[1].sin().sum(), X[1].sin().sum()


def written_later():
    y, z = X.exp(), X.exp()
    z.mul_(2)
    return y.sum(), z.sum()


@pytest.mark.parametrize(("function", "operator", "count"), [
    (two_derivatives, "matmul", 1), (two_derivatives, "min_dim", 1), (through_views, "exp", 2),
    (around_a_write, "sin", 2), (around_a_write_to_an_input, "sin", 2), (written_later, "exp", 2)])
def test_equal_work_is_done_once(function, operator, count):
    compiled = cygrad.compile(function)
    for _ in range(3):
        before = X.clone()
        expected = function()
        with cygrad.no_grad():
            X.copy_(before)
        found = compiled()
        assert all(is_bit_identical(a, b) for a, b in zip(tensors_of(expected), tensors_of(found), strict=True))
    program, = explain(compiled).programs
    assert sum(line.count(f"{operator}(") for line in program) == count


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64, cygrad.int64])
@pytest.mark.parametrize("name", ["min", "max"])
def test_positions_that_are_not_read_are_not_computed(name, dtype):
    extremum = getattr(cygrad, name)

    def function(x):
        return extremum(x, 0)[0], extremum(x, 1, keepdim=True).values, extremum(x, -1).indices
    x = cygrad.where(numbers(100, 33) > 0, cygrad.tensor(0.0), cygrad.tensor(-0.0))  # signed zeros
    x[3, 4], x[5, 6], x[7] = 5, -5, 1
    x = x.to(dtype)
    if dtype is not cygrad.int64:
        x[9, 8], x[10, 9], x[11, 10] = float("nan"), float("inf"), -float("inf")
    compiled = cygrad.compile(function)
    for _ in range(3):
        for a, b in zip(function(x), compiled(x), strict=True):
            assert is_bit_identical(a, b)
    lines = "".join(explain(compiled).programs[0])
    assert lines.count(f"{name}_dim") == 1 and lines.count(f"a{name}(") == 2


def test_views_among_results_have_the_history_and_gradient_layout_of_eager():
    def function(x):
        made = x.t().sin()
        return made, made.t(), made[1:], made[None], made.view_as(made), made.unsqueeze(1), made[:, ::2]

    compiled = cygrad.compile(function)
    for _ in range(3):
        found = []
        for called in (function, compiled):
            made, *views = called(cygrad.ones(4, 4, requires_grad=True))
            found.append([(view.grad_fn.name(), cygrad.autograd.grad(view.sum(), made, retain_graph=True)[0].stride())
                          for view in views])
        assert found[0] == found[1]
    assert explain(compiled).executions == 2
