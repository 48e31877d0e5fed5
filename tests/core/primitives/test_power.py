"""Powers: fast paths for special exponents, and the general path."""

from fractions import Fraction

import numpy as np
import pytest

import cygrad

WHOLE = [2, 3, 4, 5, 7, 11, 32, -1, -2, -3, -4, -32]
HALVES = [0.5, 1.5, 2.5, 7.5, -0.5, -1.5, -2.5]
DTYPES = {"float32": np.float32, "float64": np.float64}


def wide(dtype, seed=0):
    """Numbers of every size, of both signs, and some that are special."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(-20, 20, 500)) * rng.choice([-1, 1], 500)
    return np.concatenate([sizes, rng.standard_normal(300)]).astype(dtype)


def units_off(found, x, exponent):
    """Return the error of a power with an integral exponent in units in the last place, by exact arithmetic."""
    exact = Fraction(float(x)) ** exponent
    with np.errstate(over="ignore", under="ignore"):
        unit = Fraction(float(np.spacing(np.abs(found))))
    return abs(Fraction(float(found)) - exact) / unit


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("exponent", WHOLE)
def test_integral_exponents_are_exact_to_little_more_than_half_a_unit(name, exponent):
    x = wide(DTYPES[name])
    found = (cygrad.tensor(x) ** exponent).numpy()
    smallest = np.finfo(DTYPES[name]).tiny
    normal = np.isfinite(found) & (np.abs(found) > smallest)
    assert normal.sum() > 300
    assert max(units_off(f, v, exponent) for f, v in zip(found[normal], x[normal], strict=True)) < 0.505


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("exponent", HALVES)
def test_half_integral_exponents_are_exact_to_little_more_than_half_a_unit(name, exponent):
    x = np.abs(wide(DTYPES[name]))
    found = (cygrad.tensor(x) ** exponent).numpy()
    normal = np.isfinite(found) & (found > np.finfo(DTYPES[name]).tiny)
    # Its square is an integral power: twice the relative error.
    for f, v in zip(found[normal], x[normal], strict=True):
        square = Fraction(float(v)) ** int(2 * exponent)
        assert abs(Fraction(float(f)) ** 2 / square - 1) < Fraction(2.02) * Fraction(float(np.spacing(f))) / Fraction(
            float(f)) / 2


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("exponent", [*WHOLE, *HALVES, 0, 1, 2.3, -1.7, 33, 100, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("seed", [0, 1])
def test_special_values(name, exponent, seed):
    dtype = DTYPES[name]
    limits = np.finfo(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, limits.max, -limits.max, limits.tiny, -limits.tiny,
                        limits.smallest_subnormal, 1.5, -1.5, 1e30, -1e-30], dtype)
    x = np.concatenate([special, wide(dtype, seed)[:150]])      # more than one block
    found = (cygrad.tensor(x) ** exponent).numpy()
    with np.errstate(all="ignore"):
        expected = np.array([np.float64(v) ** np.float64(dtype(exponent)) for v in x]).astype(dtype)
        if abs(exponent) == 0.5:           # a root and its inverse, as for sqrt()
            expected = (np.sqrt(x) if exponent > 0 else 1 / np.sqrt(x)).astype(dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=4 * limits.eps, atol=2 * limits.smallest_subnormal)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("name", DTYPES)
def test_exponents_of_many_kinds_and_negative_numbers(name):
    dtype = DTYPES[name]
    x = np.repeat(np.array([-2.0, -1.5, 2.0, 0.0, -0.0, -np.inf, np.nan, -1.0], dtype), 9)
    exponents = np.tile(np.array([2, 3, -3, 0.5, 0, np.inf, -np.inf, np.nan, 1e20], dtype), 8)
    with np.errstate(all="ignore"):
        expected = np.array([np.float64(a) ** np.float64(b) for a, b in zip(x, exponents, strict=True)]).astype(dtype)
    for copies in (1, 20):
        found = cygrad.pow(cygrad.tensor(np.tile(x, copies)), cygrad.tensor(np.tile(exponents, copies))).numpy()
        np.testing.assert_allclose(found, np.tile(expected, copies), rtol=4 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(np.signbit(found[found == 0]),
                                      np.signbit(np.tile(expected, copies)[np.tile(expected, copies) == 0]))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("exponent", [3, -2, 2.5, 2.3])
def test_layout_and_place_make_no_difference(name, exponent):
    x = cygrad.tensor(np.abs(wide(DTYPES[name])).reshape(20, 40))
    expected = (x ** exponent).numpy()
    np.testing.assert_array_equal((x.t().contiguous().t() ** exponent).numpy(), expected)
    np.testing.assert_array_equal((cygrad.stack([x, x], 2)[:, :, 1] ** exponent).numpy(), expected)
    np.testing.assert_array_equal(x.clone().pow_(exponent).numpy(), expected)
    out = cygrad.empty_like(x)
    assert cygrad.pow(x, exponent, out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal((x ** cygrad.tensor(exponent, dtype=x.dtype)).numpy(), expected)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_a_root_for_a_number_and_a_power_for_a_tensor(name, exponent):
    x = cygrad.tensor(np.array([-np.inf, -0.0, 0.0, np.inf, np.nan, -4.0, 4.0] * 40, DTYPES[name]))
    with np.errstate(all="ignore"):
        powers = np.power(x.numpy(), np.full(x.shape, exponent, DTYPES[name]))
        roots = np.sqrt(x.numpy()) if exponent > 0 else 1 / np.sqrt(x.numpy())
    for given, expected in ((exponent, roots), (cygrad.tensor(exponent, dtype=x.dtype), powers),
                            (cygrad.full(x.shape, exponent, dtype=x.dtype), powers)):
        found = (x ** given).numpy()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [-1, 0.5, 2, 3, 4, 5, 1 + 2j])
def test_complex(name, exponent):
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(700) + 1j * rng.standard_normal(700)).astype(name)
    found = cygrad.tensor(x) ** exponent
    expected = np.power(x.astype("complex128"), exponent)
    np.testing.assert_allclose(found.numpy(), expected, rtol=40 * np.finfo(name).eps)
    np.testing.assert_allclose(cygrad.tensor(x).pow_(exponent).numpy(), expected, rtol=40 * np.finfo(name).eps)


@pytest.mark.parametrize("exponent", [2, 3, -1, -2, 0.5, 1.5, -0.5, 2.3, 0, 1])
def test_derivatives(exponent):
    x = cygrad.rand(40, dtype=cygrad.float64) + 0.5
    x.requires_grad_()
    assert cygrad.autograd.gradcheck(lambda x: x ** exponent, (x,))
    assert cygrad.autograd.gradgradcheck(lambda x: x ** exponent, (x,))


@pytest.mark.parametrize("dtype", [cygrad.bool, cygrad.uint8, cygrad.int64])
def test_exponents_of_any_type_have_second_derivatives(dtype):
    x, exponent = cygrad.tensor([1.5, 2.0, 0.0], requires_grad=True), cygrad.tensor([1, 0, 1])
    found = []
    for own in (exponent.to(dtype), exponent.float()):
        (first,) = cygrad.autograd.grad((x.pow(own) * x).sum(), x, create_graph=True)
        found.append((first.detach(), *cygrad.autograd.grad(first.sum(), x)))
    for a, b in zip(*found, strict=True):
        assert cygrad.equal(a, b)
