"""Remainders of Stirling's formula and their differences, compared with values of high precision."""

import numpy as np
import pytest

import cygrad
from cygrad._core.table.operator import operators

mpmath = pytest.importorskip("mpmath")

EPS = {cygrad.float32: 2.0**-24, cygrad.float64: 2.0**-53}


def remainder(n, x):
    if n == 0:
        return mpmath.loggamma(x) - x * mpmath.log(x) + x
    leading = mpmath.log(x) if n == 1 else (-1) ** n * mpmath.factorial(n - 2) * x ** (1 - n)
    return mpmath.psi(n - 1, x) - leading


def arguments(dtype):
    """Numbers from a millionth to a billion, and others near them (from a ten millionth on) and far from them."""
    rng = np.random.default_rng(0)
    x = np.append(10 ** rng.uniform(-6, 9, 80), [1.0, 9.999, 10.0, 255.9, 256.0, 2.0**-12, 1e15])
    apart = rng.choice([-1, 1], len(x)) * 10 ** rng.uniform(-7, -0.5, len(x))
    y = x * np.where(rng.random(len(x)) < 0.6, 1 + apart, 10 ** rng.uniform(-3, 3, len(x)))
    return cygrad.tensor(x).to(dtype), cygrad.tensor(y).to(dtype)


def assert_close(found, function, units, *operands):
    """Within `units` rounding errors of the exact result of the operands, which are rounded already."""
    epsilon = units * EPS[found.dtype]
    with mpmath.workdps(110):
        for value, *numbers in zip(found.tolist(), *(operand.tolist() for operand in operands), strict=True):
            right = function(*map(mpmath.mpf, numbers))
            if abs(right) > (1e-37 if found.dtype is cygrad.float32 else 1e-300):
                assert abs(value - right) <= epsilon * abs(right), (numbers, value, float(right))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("n", range(6))
def test_remainders_are_exact_to_some_units(n, dtype):
    x, _ = arguments(dtype)
    units = 2 if dtype is cygrad.float32 else 100
    assert_close(operators.stirling_remainder(n, x), lambda x: remainder(n, x), units, x)


@pytest.mark.parametrize("dtype", EPS)
def test_remainders_of_high_order_are_exact_or_nan(dtype):
    x = cygrad.tensor([0.5, 3.0, 40.0, 1e3], dtype=dtype)
    for n in (10, 20):
        found = operators.stirling_remainder(n, x.double())
        assert_close(found[found.isfinite()], lambda x, n=n: remainder(n, x), 1e5, x[found.isfinite()])
        assert found[1:].isfinite().all()
    for n in (21, 10**9, 2**62, -1):
        assert operators.stirling_remainder(n, x).isnan().all()


@pytest.mark.parametrize("dtype", EPS)
def test_divergences_of_near_and_far_numbers_do_not_cancel(dtype):
    x, y = (operand.requires_grad_() for operand in arguments(dtype))
    found = operators.gamma_divergence(x, y)
    units = 2 if dtype is cygrad.float32 else 2000
    assert_close(found, lambda x, y: remainder(0, y) - remainder(0, x) - (y - x) * remainder(1, x), units, x, y)
    by_x, by_y = cygrad.autograd.grad(found.sum(), (x, y), create_graph=True)
    assert_close(by_x, lambda x, y: (x - y) * remainder(2, x), 4 if dtype is cygrad.float32 else 100, x, y)
    assert_close(by_y, lambda x, y: remainder(1, y) - remainder(1, x), 2 if dtype is cygrad.float32 else 100, x, y)
    second_x, second_y = cygrad.autograd.grad(by_y.sum(), (x, y))
    assert_close(second_x, lambda x: -remainder(2, x), 2 if dtype is cygrad.float32 else 100, x)
    assert_close(second_y, lambda y: remainder(2, y), 2 if dtype is cygrad.float32 else 100, y)


def test_divergences_do_not_depend_on_neighbors_nor_strides():
    x, y = arguments(cygrad.float32)
    for name in ("gamma_divergence", "digamma_divergence"):
        whole = getattr(operators, name)(x, y)
        assert getattr(operators, name)(x[::3], y[::3]).tolist() == whole[::3].tolist()
        assert [getattr(operators, name)(a, b).item() for a, b in zip(x, y, strict=True)] == whole.tolist()


@pytest.mark.parametrize("dtype", EPS)
def test_divergences_outside_of_the_domain(dtype):
    x, y = cygrad.tensor([2.0, -1.0, 3.0, 7.0], dtype=dtype), cygrad.tensor([2.0, 1.0, -3.0, float("nan")], dtype=dtype)
    for found in (operators.gamma_divergence(x, y), operators.digamma_divergence(x, y)):
        np.testing.assert_equal(found.tolist(), [0.0, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("dtype", EPS)
def test_deviances_of_near_and_far_means_do_not_cancel(dtype):
    x, mean = (operand.requires_grad_() for operand in arguments(dtype))
    found = operators.deviance(x, mean, mean.log())
    units = 60
    assert_close(found, lambda x, m: x * mpmath.log(x / m) + m - x, units, x, mean)
    by_x, by_mean = cygrad.autograd.grad(found.sum(), (x, mean))
    assert_close(by_x, lambda x, m: mpmath.log(x / m), units, x, mean)
    assert_close(by_mean, lambda x, m: 1 - x / m, units, x, mean)


def test_deviances_of_means_out_of_range_are_those_of_their_logarithms():
    x = cygrad.tensor([3.0, 0.5], requires_grad=True)
    log_mean = cygrad.tensor([-1000.0, 300.0], requires_grad=True)
    found = operators.deviance(x, log_mean.exp().detach(), log_mean)
    np.testing.assert_allclose(found.tolist(), [3 * (np.log(3) + 1000) - 3, np.inf], rtol=1e-6)
    slopes = cygrad.autograd.grad(found[0], (x, log_mean))
    np.testing.assert_allclose([slopes[0][0].item(), slopes[1][0].item()], [np.log(3) + 1000, -3], rtol=1e-6)
