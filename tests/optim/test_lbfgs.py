"""L-BFGS and its line search."""

import copy
import math
import pickle

import numpy as np
import pytest

import cygrad
from cygrad import optim
from cygrad.optim.line_search import Point, cubic_minimum, strong_wolfe
from tests.reference import torch


def rosenbrock(library, x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def logistic(library, x):
    random = np.random.default_rng(0)
    data = library.from_numpy(random.standard_normal((60, 6)))
    side = library.from_numpy(random.integers(0, 2, 60) * 2.0 - 1)
    return library.log(1 + library.exp(-side * (data @ x))).mean() + 0.01 * (x * x).sum()


def quartic(library, x):
    return (x ** 4).sum() + (x * library.from_numpy(np.arange(6.0))).sum()


def run(library, function, steps, start=None, **options):
    """Values of parameters, losses and state after each step."""
    start = np.linspace(-1.2, 1.0, 6) if start is None else start
    x = library.from_numpy(start[:4].copy()).requires_grad_()
    y = library.from_numpy(start[4:].copy()).requires_grad_()
    unused = library.ones(2, dtype=library.float64, requires_grad=True)
    optimizer = library.optim.LBFGS([x, y, unused], **options)

    def closure():
        optimizer.zero_grad()
        loss = function(library, library.cat([x, y]))
        loss.backward()
        return loss

    seen = []
    for _ in range(steps):
        loss = optimizer.step(closure)
        state = optimizer.state[x]
        seen.append([loss.item(), *x.tolist(), *y.tolist(), state["func_evals"], state["n_iter"]])
        assert unused.tolist() == [1, 1]
    return np.array(seen), optimizer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lr": 0.1, "max_iter": 3},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 4},
        {"history_size": 3, "line_search_fn": "strong_wolfe", "max_iter": 1},
        {"lr": 0.3, "max_iter": 7, "max_eval": 5},
        {"line_search_fn": "strong_wolfe", "max_eval": 6, "lr": 5.0},
        {"tolerance_grad": 0.5},
        {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-2},
        {"history_size": 1, "lr": 0.2},
    ],
)
@pytest.mark.parametrize("function", [rosenbrock, logistic, quartic])
def test_same_path_as_pytorch(function, options):
    """As long as both move: rounding decides what happens at the very bottom."""
    steps = 3 if options.get("max_iter", 20) > 4 else 25
    with np.errstate(all="ignore"):
        ours, _ = run(cygrad, function, steps, **options)
        theirs, _ = run(torch, function, steps, **options)
    moving = 1
    while moving < len(theirs) and abs(theirs[moving, 0] - theirs[moving - 1, 0]) > 1e-6:
        moving += 1
    np.testing.assert_allclose(ours[:moving], theirs[:moving], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("function", [rosenbrock, logistic, quartic])
def test_minima_are_found(function):
    seen, _ = run(cygrad, function, 30, line_search_fn="strong_wolfe")
    minimize = pytest.importorskip("scipy.optimize").minimize
    best = minimize(lambda x: function(cygrad, cygrad.from_numpy(x)).item(), np.linspace(-1.2, 1.0, 6), method="BFGS")
    assert seen[-1, 0] <= best.fun + 1e-8


def test_complex_parameters_are_pairs_of_reals():
    target = cygrad.tensor([1 + 2j, -3j, 0.5], dtype=cygrad.complex128)
    z = cygrad.zeros(3, dtype=cygrad.complex128, requires_grad=True)
    r = cygrad.zeros(2, dtype=cygrad.float64, requires_grad=True)
    optimizer = optim.LBFGS([z, r], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((z - target).abs() ** 2).sum() + ((r - 2) ** 4).sum()
        loss.backward()
        return loss

    for _ in range(4):
        optimizer.step(closure)
    assert cygrad.allclose(z.detach(), target, atol=1e-6)
    assert cygrad.allclose(r.detach(), cygrad.full((2,), 2.0, dtype=cygrad.float64), atol=0.02)


def test_state_goes_through_state_dict_pickle_and_deepcopy():
    def problem():
        w = cygrad.tensor([-1.2, 1.0, 0.3], dtype=cygrad.float64, requires_grad=True)
        return w, optim.LBFGS([w], max_iter=2, line_search_fn="strong_wolfe")

    def train(w, optimizer, n):
        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(cygrad, w)
            loss.backward()
            return loss
        for _ in range(n):
            optimizer.step(closure)

    w, optimizer = problem()
    train(w, optimizer, 9)
    expected = w.tolist()
    for how in "state_dict", "pickle", "deepcopy":
        w, optimizer = problem()
        train(w, optimizer, 4)
        if how == "state_dict":
            v = w.detach().clone().requires_grad_()
            other = optim.LBFGS([v])
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            assert other.state[v]["old_dirs"][0] is not optimizer.state[w]["old_dirs"][0]
        else:
            v, other = (pickle.loads(pickle.dumps((w, optimizer))) if how == "pickle"
                        else copy.deepcopy((w, optimizer)))
        train(v, other, 5)
        assert v.tolist() == expected, how


def test_loaded_history_gets_the_dtype_of_the_parameter():
    w = cygrad.ones(2, requires_grad=True)
    optimizer = optim.LBFGS([w])
    optimizer.state[w] = {"old_dirs": [cygrad.ones(2)], "n_iter": 3}
    v = cygrad.ones(2, dtype=cygrad.float64, requires_grad=True)
    other = optim.LBFGS([v])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[v]["old_dirs"][0].dtype == cygrad.float64
    assert other.state[v]["n_iter"] == 3


def test_options_are_checked():
    w, v = (cygrad.ones(1, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="single parameter group"):
        optim.LBFGS([{"params": [w]}, {"params": [v]}])
    with pytest.raises(ValueError, match="Invalid learning rate: "):
        optim.LBFGS([w], lr=-1)
    with pytest.raises(RuntimeError, match="strong_wolfe"):
        optim.LBFGS([w], line_search_fn="exact")
    with pytest.raises(TypeError):
        optim.LBFGS([w]).step()


def test_nan_ends_in_nan_and_not_in_a_crash():
    w = cygrad.ones(2, requires_grad=True)
    optimizer = optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (w * float("nan")).sum()
        loss.backward()
        return loss

    assert math.isnan(optimizer.step(closure).item())


# ---- the line search by itself

def along(function, derivative):
    return lambda step: Point(step, function(step), None, derivative(step))


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize(("function", "derivative"), [
    (lambda t: (t - 2) ** 2, lambda t: 2 * (t - 2)),
    (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
    (lambda t: (t + 0.004) ** 5 - 2 * (t + 0.004) ** 4, lambda t: 5 * (t + 0.004) ** 4 - 8 * (t + 0.004) ** 3),
    (lambda t: math.cos(t) - t / 10, lambda t: -math.sin(t) - 0.1),
])
def test_the_conditions_hold_where_the_search_ends(function, derivative, first):
    start = Point(0.0, function(0.0), None, derivative(0.0))
    found, evaluations = strong_wolfe(along(function, derivative), start, first, 1.0, 1e-12)
    assert found.value <= start.value + 1e-4 * found.step * start.slope
    assert abs(found.slope) <= -0.9 * start.slope
    assert evaluations <= 26


def test_the_cubic_has_its_minimum_where_it_is():
    def cubic(t):
        return Point(t, t ** 3 - 3 * t, None, 3 * t * t - 3)

    assert cubic_minimum(cubic(0.0), cubic(4.0), 0.0, 4.0) == pytest.approx(1)
    assert cubic_minimum(cubic(4.0), cubic(0.0), 0.0, 4.0) == pytest.approx(1)
    assert cubic_minimum(cubic(0.0), cubic(4.0), 2.0, 4.0) == 2
    line = Point(0.0, 0.0, None, -1.0), Point(1.0, 5.0, None, -1.0)
    assert 0 <= cubic_minimum(*line, 0.0, 1.0) <= 1
