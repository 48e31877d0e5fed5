"""`cygrad.numpy`: NumPy's names on Tensors, on lists of them, and on plain arrays."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

import cygrad
import cygrad.numpy as cnp
import cygrad.numpy.random as cnpr
from cygrad.func import elementwise_grad, grad, value_and_grad
from cygrad.numpy.linalg import solve
from tests.numpy_protocols.cases import ALL, VALUES
from tests.numpy_protocols.test_functions import compare, run, tensors


def leaf(*values):
    return cygrad.tensor(values, dtype=cygrad.float64, requires_grad=True)


@pytest.mark.parametrize("call", [call for call in ALL if call.startswith("np.") and "ndarray" not in call])
def test_functions_of_the_namespace_are_those_of_numpy(call):
    found = eval(call, {"np": cnp, **tensors()}) if "(n" not in call else run(call, tensors())
    compare(found, run(call, VALUES), call)


def test_every_name_of_numpy_is_there():
    for ours, theirs in ((cnp, np), (cnp.linalg, np.linalg), (cnp.fft, np.fft), (cnp.random, np.random)):
        assert set(theirs.__all__) <= set(dir(ours))
        assert all(hasattr(ours, name) for name in theirs.__all__)
    assert cnp.float64 is np.float64 and cnp.pi is np.pi and cnp.newaxis is None
    with pytest.raises(AttributeError, match=r"module 'cygrad\.numpy' has no attribute 'sine'"):
        cnp.sine  # noqa: B018


def test_plain_arrays_stay_arrays_of_numpy():
    for found in (cnp.zeros(3), cnp.array([1, 2]), cnp.asarray([1.0]), cnp.sum(np.ones((2, 2)), 0), cnp.r_[1:3, 5],
                  cnp.c_[[1, 2], [3, 4]], cnp.full(2, 7), cnp.vectorize(abs)([-1, 2]), cnpr.randn(2)):
        assert type(found) is np.ndarray
    assert cnp.array([1, 2]).dtype == np.int64 and (cnp.arange(3) / 2).dtype == np.float64


@pytest.mark.parametrize("call", [
    "np.array([x[0], x[1] ** 2])", "np.array([[x[0], 1], [2, x[1]]])", "np.asarray([x, 2 * x])", "np.sum([x, x])",
    "np.mean([x[0], x[1]])", "np.r_[x, 1, x]", "np.r_[0:3, x]", "np.c_[x, x]", "np.full(3, x[0])",
    "np.vectorize(lambda v, w: v * w + 1)(x, 2.0)", "np.linalg.norm([x[0], x[1]])",
    "np.linalg.solve(np.diag(x), [1.0, 2.0])",
    "np.fft.fft([x[0], x[1]]).real", "np.dot([x[0], x[1]], [1, 2])", "np.where([True, False], [x[0], x[1]], 0)",
    "np.array(x, ndmin=2)", "np.array(x, dtype=complex).real", "np.std([x, x])", "np.where([x > 1], [x], 0.0)",
])
def test_lists_of_tensors_keep_their_history(call):
    values = (1.5, 0.5)
    found = eval(call, {"np": cnp, "x": leaf(*values)})
    assert type(found) is cygrad.Tensor and found.requires_grad
    compare(found.detach(), np.asarray(eval(call, {"np": np, "x": np.array(values)})), call)
    assert cygrad.autograd.gradcheck(lambda x: eval(call, {"np": cnp, "x": x}), [leaf(*values)])


def test_defaults_are_those_of_numpy_where_methods_have_others():
    x = leaf(3.0, 1.0, 2.0)
    assert cnp.std(x) == np.std([3.0, 1.0, 2.0]) and x.std() == 1.0
    assert cnp.max(x, 0) == 3.0 and cnp.sort(x).tolist() == [1, 2, 3] and cnp.size(x) == 3


def test_what_would_lose_a_history_is_refused_by_name():
    with pytest.raises(TypeError, match=r"numpy\.setdiff1d: is not supported, and"):
        cnp.setdiff1d(leaf(1.0, 2.0), [1.0])
    with pytest.raises(RuntimeError, match=r"^asarray: .* lose its history in an ndarray.*numpy\.stack"):
        np.array([leaf(1.0)[0], 2.0])


def test_descent_on_a_valley_with_value_and_gradient():
    def valley(x):
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    np.testing.assert_allclose(minimize(value_and_grad(valley), cnp.array([0.0, 0.0]), jac=True, method="CG").x, 1,
                               atol=1e-4)


def test_repeated_derivatives_of_each_element():
    def half_angle(x):
        return (1.0 - cnp.exp(-x)) / (1.0 + cnp.exp(-x))

    x = cnp.linspace(-7, 7, 50)
    t = np.tanh(x / 2)
    expected = [t, (1 - t ** 2) / 2, -t * (1 - t ** 2) / 2, (1 - t ** 2) * (3 * t ** 2 - 1) / 4]
    function = half_angle
    for values in expected:
        np.testing.assert_allclose(function(x), values, atol=1e-12)
        function = elementwise_grad(function)


def test_a_flow_is_fitted_through_its_simulation():
    """Gathers at computed places, in-place updates and rolls, as in simulations of fluids."""
    size = 8
    start, target = cnpr.default_rng(0).random((2, size, size))

    def carried(field, across, along):
        rows, columns = cnp.meshgrid(cnp.arange(size), cnp.arange(size), indexing="ij")
        at = (rows - across).ravel(), (columns - along).ravel()
        low = [cnp.floor(place).astype(int) for place in at]
        part = [place - whole for place, whole in zip(at, low, strict=True)]
        high = [cnp.mod(whole + 1, size) for whole in low]
        low = [cnp.mod(whole, size) for whole in low]
        found = ((1 - part[0]) * ((1 - part[1]) * field[low[0], low[1]] + part[1] * field[low[0], high[1]])
                 + part[0] * ((1 - part[1]) * field[high[0], low[1]] + part[1] * field[high[0], high[1]]))
        return cnp.reshape(found, (size, size))

    def distance(flow):
        across, along = cnp.reshape(flow, (2, size, size))
        smoke = start
        for _ in range(3):
            across = carried(across, across, along)
            across -= 0.1 * cnp.roll(along, 1, axis=0)
            smoke = carried(smoke, across, along)
        return cnp.mean((smoke - target) ** 2)

    flow = 0.1 * cnpr.default_rng(1).standard_normal(2 * size * size)
    direction = cnpr.default_rng(2).standard_normal(flow.shape)
    slope = (distance(flow + 1e-6 * direction) - distance(flow - 1e-6 * direction)) / 2e-6
    assert abs(grad(distance)(flow) @ direction - slope) < 1e-6 * max(1, abs(slope))


def test_systems_of_equations_differentiate():
    matrix = np.array([[2.0, 1.0], [0.0, 3.0]])
    found = grad(lambda a: solve(a, np.ones(2)).sum())(matrix)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found, -np.outer(inverse.T @ np.ones(2), inverse @ np.ones(2)))


def test_the_namespace_is_loaded_when_it_is_first_used():
    code = ("import sys, cygrad; assert 'cygrad.numpy' not in sys.modules; cygrad.numpy.sin(1.0); "
            "assert 'cygrad.numpy' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
