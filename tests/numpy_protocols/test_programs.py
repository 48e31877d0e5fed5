"""Programs written for NumPy are differentiable as is."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import grad, gradcheck
from cygrad.autograd.functional import hessian
from tests.numpy_protocols.programs import (
    black_scholes,
    equation,
    gaussian_process,
    logistic_regression,
    neural_network,
)


def leaf(array):
    return cygrad.tensor(array, dtype=cygrad.float64, requires_grad=True)


def test_neural_network_learns():
    inputs, targets = neural_network.data()
    weights = [(leaf(w), leaf(b)) for w, b in neural_network.start()]
    flat = [part for pair in weights for part in pair]
    assert gradcheck(lambda *parts: neural_network.loss(list(zip(parts[::2], parts[1::2], strict=True)), inputs[:9],
                                                        targets[:9]), flat)
    before = neural_network.loss(neural_network.start(), inputs, targets)
    assert neural_network.loss(weights, inputs, targets).item() == pytest.approx(before)
    optimizer = cygrad.optim.Adam(flat, lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        neural_network.loss(weights, inputs, targets).backward()
        optimizer.step()
    assert neural_network.accuracy(weights, inputs, targets) > 0.95


def test_parameters_of_an_equation_are_found():
    observed = equation.solve(equation.PARAMETERS, np.array([1.0, 2.0]), equation.TIMES)
    parameters = leaf(equation.PARAMETERS * 1.1)
    assert gradcheck(lambda p: equation.distance(p, observed, equation.TIMES), [parameters])
    optimizer = cygrad.optim.LBFGS([parameters], line_search_fn="strong_wolfe", max_iter=60)

    def closure():
        optimizer.zero_grad()
        distance = equation.distance(parameters, observed, equation.TIMES)
        distance.backward()
        return distance

    optimizer.step(closure)
    np.testing.assert_allclose(parameters.detach().numpy(), equation.PARAMETERS, rtol=1e-3)


def test_states_may_be_read_from_the_array_that_the_next_is_written_to():
    def last(parameters):
        return equation.solve_by_euler(parameters, np.array([1.0, 2.0]), equation.TIMES)[-1]

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        last(leaf(equation.PARAMETERS)).sum().backward()
    with cygrad.autograd.graph.allow_mutation_on_saved_tensors():
        assert gradcheck(last, [leaf(equation.PARAMETERS)])


def test_gaussian_process():
    x, y = gaussian_process.data()
    parameters = leaf([0.2, -0.1, -2.0])
    value = gaussian_process.log_marginal_likelihood(parameters, x, y)
    assert value.item() == pytest.approx(gaussian_process.log_marginal_likelihood(parameters.detach().numpy(), x, y))
    assert gradcheck(lambda p: gaussian_process.log_marginal_likelihood(p, x, y), [parameters])
    assert gradcheck(lambda p, at: gaussian_process.predict(p, x, y, at), [parameters, leaf([-1.0, 0.4, 2.2])])


def test_logistic_regression_by_the_method_of_newton():
    inputs, labels = logistic_regression.data()
    weights = leaf(np.zeros(3))
    for _ in range(8):
        loss = logistic_regression.negative_log_likelihood(weights, inputs, labels)
        slope, = grad(loss, weights)
        curvature = hessian(lambda w: logistic_regression.negative_log_likelihood(w, inputs, labels), weights)
        weights = leaf((weights - np.linalg.solve(curvature, slope)).detach().numpy())
    slope, = grad(logistic_regression.negative_log_likelihood(weights, inputs, labels), weights)
    assert np.max(np.abs(slope)) < 1e-9
    assert np.mean((logistic_regression.probabilities(weights, inputs) > 0.5) == labels) > 0.8


def test_the_greeks_of_black_and_scholes():
    arguments = [leaf(value) for value in ([90.0, 100.0, 110.0], 100.0, 0.03, [0.2, 0.25, 0.3], 0.75)]
    for call in (True, False):
        assert gradcheck(lambda *given: black_scholes.price(*given, call=call), arguments)
    spot, volatility = arguments[0], arguments[3]
    value = black_scholes.price(*arguments)
    np.testing.assert_allclose(value.detach().numpy(), black_scholes.price(*[a.detach().numpy() for a in arguments]))
    delta, vega = grad(value.sum(), (spot, volatility), create_graph=True)
    gamma, = grad(delta.sum(), spot)
    s, k, r, v, t = (a.detach().numpy() for a in arguments)
    d1 = (np.log(s / k) + (r + v ** 2 / 2) * t) / (v * np.sqrt(t))
    np.testing.assert_allclose(vega.detach().numpy(), s * np.sqrt(t) * black_scholes.normal_density(d1))
    np.testing.assert_allclose(gamma.numpy(), black_scholes.normal_density(d1) / (s * v * np.sqrt(t)))
