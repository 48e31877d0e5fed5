"""Vectorized transcendental functions: accuracy, range limits, alignment."""

import math

import numpy as np
import pytest

import cygrad._core.elementwise.elementwise  # fills the table of primitives
from cygrad._core.testing.interop import apply
from cygrad._core.testing.probes import apply_for_target

RNG = np.random.default_rng(3)


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def normal_distribution(x):
    return np.vectorize(lambda value: 0.5 * math.erfc(-value * math.sqrt(0.5)))(x)


# Function, the same for more precise numbers, errors that are allowed in float32 and float64 (0: not our own).
FUNCTIONS = [
    ("exp", np.exp, 1, 0),
    ("exp2", np.exp2, 1, 0),
    ("log1p", np.log1p, 1.5, 1.5),
    ("sigmoid", sigmoid, 2.5, 2.5),
    ("log1p_exp", softplus, 2.7, 2.7),
    ("ndtr", normal_distribution, 5.5, 0),
]
NAMES = [name for name, *_ in FUNCTIONS]


def fusion(dtype, count=60_000):
    """Numbers of all magnitudes, those where exponentials are neither 0 nor infinite, and the last ones."""
    ends = np.array([0.0, -0.0, 1, -1, 88.72283, 88.7229, -87.4, -103.9, -104.1, 709.7, 709.8, -745.1, -745.2])
    wide = 110 if dtype == np.float32 else 760
    bits = RNG.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), count, dtype=np.uint64)
    anything = bits.astype(np.uint32).view(np.float32) if dtype == np.float32 else bits.view(np.float64)
    x = np.concatenate([anything, np.linspace(-wide, wide, count).astype(dtype),
                        np.linspace(-2, 2, count).astype(dtype), ends.astype(dtype),
                        [np.finfo(dtype).max, np.finfo(dtype).min, np.finfo(dtype).tiny]])
    return np.ascontiguousarray(x[np.isfinite(x)], dtype)


def errors(found, exact, dtype):
    """Distances in units in the last place of the rounded result, which is counted as right if it is infinite."""
    rounded = exact.astype(dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    distance = np.abs(found[~same].astype(exact.dtype) - exact[~same])
    return np.append(distance / np.spacing(np.abs(rounded[~same])).astype(exact.dtype), 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "exact", "bound"), [(name, exact, single) for name, exact, single, _ in FUNCTIONS])
def test_errors_of_float32(name, exact, bound):
    x = fusion(np.float32)
    assert errors(apply(name, x), exact(x.astype(np.float64)), np.float32).max() <= bound


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="no type is more precise than float64 here")
@pytest.mark.parametrize(("name", "exact", "bound"), [(name, exact, double) for name, exact, _, double in FUNCTIONS
                                                      if double])
def test_errors_of_float64(name, exact, bound):
    x = fusion(np.float64)
    assert errors(apply(name, x), exact(x.astype(np.longdouble)), np.float64).max() <= bound


@pytest.mark.parametrize(("name", "exact", "bound"), [("erf", math.erf, 2.5), ("erfc", math.erfc, 4)])
def test_error_functions_of_float64(name, exact, bound):
    x = np.concatenate([np.linspace(-28, 28, 20_001), np.linspace(-1.1, 1.1, 20_001), 10.0 ** -np.arange(1, 320, 7)])
    found, expected = apply(name, x), np.vectorize(exact)(x)
    assert errors(found, expected, np.float64).max() <= bound


def test_inverse_error_function_undoes_erf():
    x = np.concatenate([np.linspace(-1, 1, 100_003)[1:-1], 1 - 2.0 ** -np.arange(2, 25)]).astype(np.float32)
    double = apply("erfinv", x.astype(np.float64))
    assert errors(apply("erfinv", x), double, np.float32).max() <= 3.5
    back = np.vectorize(math.erf)(double)
    np.testing.assert_allclose(back, x.astype(np.float64), rtol=0, atol=1e-15)


def test_gelu_and_its_slope():
    x = np.concatenate([np.linspace(-20, 20, 40_001), [0.0, -0.0, 1e30, -1e30]]).astype(np.float32)
    wide = x.astype(np.float64)
    product = wide * normal_distribution(wide)
    np.testing.assert_allclose(apply("gelu", x), product, rtol=1e-6, atol=2e-44)      # below the normal numbers: steps
    np.testing.assert_allclose(apply("gelu", wide), product, rtol=1e-13)
    exact = normal_distribution(wide) + wide * np.exp(-0.5 * wide * wide) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(apply("gelu_backward", np.ones_like(x), x), exact, rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(apply("gelu_backward", np.ones_like(wide), wide), exact, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("name", "expected"), [
    ("exp", [np.nan, np.inf, 0, 1, 1]),
    ("exp2", [np.nan, np.inf, 0, 1, 1]),
    ("log1p", [np.nan, np.inf, np.nan, 0, -0.0]),
    ("sigmoid", [np.nan, 1, 0, 0.5, 0.5]),
    ("log1p_exp", [np.nan, np.inf, 0, math.log(2), math.log(2)]),
    ("ndtr", [np.nan, 1, 0, 0.5, 0.5]),
    ("erfinv", [np.nan, np.nan, np.nan, 0, -0.0]),
    ("relu", [np.nan, np.inf, 0, 0, 0]),
])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends(name, expected, dtype):
    found = apply(name, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype))
    np.testing.assert_array_equal(found, np.array(expected, dtype))
    np.testing.assert_array_equal(np.signbit(found[1:]), np.signbit(np.array(expected, dtype)[1:]))


def test_ends_of_their_own():
    one = np.array([1, -1, 1.5], np.float32)
    np.testing.assert_array_equal(apply("erfinv", one), [np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(apply("log1p", -one), np.array([-np.inf, np.log(np.float32(2)), np.nan], np.float32))


# Exponentials bent: the number that is their last operand, and the same for more precise numbers.
BENT = [
    ("elu", [1.5], lambda x: np.where(x > 0, x, 1.5 * np.expm1(np.minimum(x, 0)))),
    ("selu", [], lambda x: np.where(x > 0, 1.0507009873554805 * x, 1.7580993408473766 * np.expm1(np.minimum(x, 0)))),
    ("celu", [-1.5], lambda x: np.where(x > 0, x, -1.5 * np.expm1(np.minimum(x, 0) / -1.5))),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="no type is more precise than float64 here")
@pytest.mark.parametrize(("name", "numbers", "exact"), BENT)
@pytest.mark.parametrize(("dtype", "wide"), [(np.float32, np.float64), (np.float64, np.longdouble)])
def test_errors_of_bent_exponentials(name, numbers, exact, dtype, wide):
    x = fusion(dtype)
    x = x[np.abs(x) < np.sqrt(np.finfo(dtype).max)] if name != "celu" else x[np.abs(x) < 60]
    found = apply(name, x, *(np.array(number, dtype) for number in numbers))
    # An argument that is rounded itself has that much more of an error at the exponential.
    assert errors(found, exact(x.astype(wide)), dtype).max() <= (3.5 if name != "celu" else 40)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_of_zeros_infinities_and_nan_are_those_of_numpy(dtype):
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 2], dtype)
    x, low, high = (grid.ravel() for grid in np.meshgrid(values, values, values))
    for found, expected in [(apply("maximum", x, low), np.maximum(x, low)),
                            (apply("minimum", x, low), np.minimum(x, low)),
                            (apply("clamp_between", x, low, high), np.minimum(np.maximum(x, low), high))]:
        np.testing.assert_array_equal(found, expected)
        number = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["fmod", "remainder", "copysign", "hypot"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rests_of_divisions_and_signs_are_those_of_numpy(name, dtype):
    ends = np.array([0.0, -0.0, 1, -3, 0.1, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max, 16777217, np.inf,
                     -np.inf, np.nan], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(ends, ends))
    divisors = (RNG.standard_normal(3000) * 10.0 ** RNG.integers(-6, 6, 3000)).astype(dtype)
    multiples = divisors * RNG.integers(-10**6, 10**6, 3000).astype(dtype)           # quotients close to integers
    others = (RNG.standard_normal(3000) * 10.0 ** RNG.integers(-6, 9, 3000)).astype(dtype)
    tiny = (RNG.standard_normal((2, 3000)) * np.finfo(dtype).tiny * [[8], [1]]).astype(dtype)
    for first, second in [(x, y), (multiples, divisors), (others, divisors), tiny]:
        found, expected = apply(name, first, second), getattr(np, name)(first, second)
        np.testing.assert_array_equal(found, expected)
        number = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_below_logarithms(name, dtype):
    ends = np.array([0.0, 1, -1, 500, -np.finfo(dtype).max, np.inf, -np.inf, np.nan], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(ends, ends))
    x, y = np.concatenate([x, RNG.uniform(-20, 20, 2000).astype(dtype)]), np.concatenate([y, RNG.uniform(
        -20, 20, 2000).astype(dtype)])
    expected = getattr(np, name)(x.astype(np.longdouble), y.astype(np.longdouble))
    # Relative to the larger operand, because the result may be small.
    tolerance = 4 * np.finfo(dtype).eps * np.maximum(1, np.maximum(np.abs(x), np.abs(y)))
    found = apply(name, x, y)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected.astype(dtype)))
    finite = np.isfinite(found)
    assert (np.abs(found - expected)[finite] <= tolerance[finite]).all()
    np.testing.assert_array_equal(found[~finite], expected[~finite].astype(dtype))


# Operands with one number for all of them, or for one: the other operand is x.
OF_SEVERAL = {
    "maximum": 1, "minimum": 1, "clamp_between": 2, "leaky_relu": 1, "elu": 1, "celu": 1, "softplus": 2,
    "hardshrink": 1, "softshrink": 1, "leaky_relu_backward": 2, "elu_backward": 2, "celu_backward": 2,
    "softplus_backward": 2, "shrink_backward": 2, "sigmoid_backward": 1, "tanh_backward": 1, "relu_backward": 1,
    "selu_backward": 1, "silu_backward": 1, "mish_backward": 1, "gelu_backward": 1, "gelu_tanh_backward": 1,
    "logsigmoid_backward": 1, "hardswish_backward": 1, "hardsigmoid_backward": 1, "smooth_l1_elementwise": 2,
    "smooth_l1_backward": 2, "huber_elementwise": 2, "huber_backward": 2, "threshold": 2,
    "threshold_backward": 2, "lerp": 2, "copysign": 1, "hypot": 1, "logaddexp": 1, "logaddexp2": 1, "fmod": 1,
    "remainder": 1, "trunc_divide": 1, "logit_loss_slope": 2,
}


@pytest.mark.parametrize("name", OF_SEVERAL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operands_lie_anywhere(name, dtype):
    operands = [RNG.uniform(0.1, 2, 1100).astype(dtype) * RNG.choice(np.array([-1, 1], dtype), 1100) ** (k < 2)
                for k in range(1 + OF_SEVERAL[name])]
    whole = apply(name, *operands)
    for n in (1, 3, 8, 17, 33, 520):
        for begin in (0, 1, 13, 500):
            part = [operand[begin:begin + n] for operand in operands]
            np.testing.assert_array_equal(apply(name, *part), whole[begin:begin + n])
    np.testing.assert_array_equal(apply(name, *(operand[::-3] for operand in operands)), whole[::-3])
    spread = [np.repeat(operand, 2).reshape(-1, 2)[:, k % 2] for k, operand in enumerate(operands)]
    np.testing.assert_array_equal(apply(name, *spread), whole)
    for k in range(len(operands)):
        number = [np.full_like(operand, operand[5]) if i == k else operand for i, operand in enumerate(operands)]
        cell = [operand[5:6].reshape(()) if i == k else operand for i, operand in enumerate(operands)]
        np.testing.assert_array_equal(apply(name, *cell), apply(name, *number))
        into = operands[k].copy()
        apply(name, *(into if i == k else operand for i, operand in enumerate(operands)), into=into)
        np.testing.assert_array_equal(into, whole)


@pytest.mark.parametrize("name", [*NAMES, "erf", "erfc", "erfinv", "gelu", "gelu_tanh", "relu", "selu", "silu", "mish",
                                  "hardswish", "hardsigmoid", "logsigmoid"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_element_has_the_same_bits_in_any_place(name, dtype):
    x = RNG.uniform(-1, 1, 1100).astype(dtype)
    whole = apply(name, x)
    for n in (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63):
        for begin in (0, 1, 13, 500):
            np.testing.assert_array_equal(apply(name, x[begin:begin + n]), whole[begin:begin + n])
    np.testing.assert_array_equal(apply(name, x[::-3]), whole[::-3])
    np.testing.assert_array_equal(apply(name, np.repeat(x, 2).reshape(-1, 2)[:, 1]), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floor_divide_is_bit_identical_to_numpy(dtype):
    rng = np.random.default_rng(0)
    special = np.array([0, -0.0, 1, -1, -3, 0.1, 1e-45, -1e-40, 3e38, np.inf, -np.inf, np.nan, 1e10, 7], dtype=dtype)
    tenths = (np.round(rng.standard_normal((2, 5000)) * 20) / 10).astype(dtype)
    x = np.concatenate([np.repeat(special, len(special)), rng.standard_normal(5000).astype(dtype) * 10, tenths[0]])
    y = np.concatenate([np.tile(special, len(special)), rng.standard_normal(5000).astype(dtype), tenths[1]])
    with np.errstate(all="ignore"):
        expected = np.floor_divide(x, y)
    found = cygrad.floor_divide(cygrad.tensor(x), cygrad.tensor(y)).numpy()
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def for_targets(name, x, y):
    """Results of the vector code for float32 of each SIMD target that has any."""
    results = []
    for target in range(3):
        out = np.empty_like(x)
        if apply_for_target(name, target, x, y, out):
            results.append(out)
    assert results
    return results


WIDE = {"sinh": np.sinh, "cosh": np.cosh, "expm1": np.expm1, "atanh": np.arctanh, "log": np.log, "log2": np.log2,
        "log10": np.log10, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WIDE)
def test_float32_computed_in_double_precision_is_rounded_once(name):
    x = np.concatenate([fusion(np.float32, 20_000), RNG.uniform(-1, 1, 20_000).astype(np.float32)])
    for found in for_targets(name, x, x):
        assert errors(found, WIDE[name](x.astype(np.longdouble)), np.float32).max() < 0.502


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WIDE)
def test_float32_computed_in_double_precision_at_ends(name):
    x = np.array([0.0, -0.0, 1, -1, 2, -2, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38], np.float32)
    expected = WIDE[name](x.astype(np.float64)).astype(np.float32)
    for found in for_targets(name, x, x):
        np.testing.assert_array_equal(found, expected)
        assert np.array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


def test_atan2_in_all_quadrants():
    ends = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38], np.float32)
    y, x = (part.ravel() for part in np.meshgrid(ends, ends))
    y = np.concatenate([y, RNG.standard_normal(10_000, dtype=np.float32)])
    x = np.concatenate([x, RNG.standard_normal(10_000, dtype=np.float32)])
    expected = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(np.float32)
    for found in for_targets("atan2", y, x):
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        number = ~np.isnan(expected)
        np.testing.assert_array_max_ulp(found[number], expected[number], 1)
        assert np.array_equal(np.signbit(found[number]), np.signbit(expected[number]))
    for whole, single in zip(for_targets("atan2", y, np.full_like(y, 1.5)),
                             for_targets("atan2", y, np.array([1.5], np.float32)), strict=True):
        np.testing.assert_array_equal(whole, single)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_computed_in_double_precision_are_rounded_once():
    """Blocks of positive numbers alone, of which some results are subnormal, 0 or infinite, and blocks with others."""
    ends = np.array([0.0, -0.0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1e30, -1e30], np.float32)
    x, y = (part.ravel() for part in np.meshgrid(ends, ends))
    x = np.concatenate([x, RNG.uniform(0, 8, 20_000).astype(np.float32), fusion(np.float32, 20_000)[:10_000]])
    y = np.concatenate([y, RNG.uniform(-60, 60, len(x) - len(y)).astype(np.float32)])
    exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    expected, positive = exact.astype(np.float32), (x > 0) & np.isfinite(x) & np.isfinite(y)
    for found in for_targets("pow", x, y):
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        number = ~np.isnan(expected)
        np.testing.assert_array_max_ulp(found[number], expected[number], 1)
        assert np.array_equal(np.signbit(found[number]), np.signbit(expected[number]))
    for found in for_targets("pow", np.ascontiguousarray(x[positive]), np.ascontiguousarray(y[positive])):
        assert errors(found, exact[positive], np.float32).max() < 0.502
    for whole, single in zip(for_targets("pow", x, np.full_like(x, 1.7)),
                             for_targets("pow", x, np.array([1.7], np.float32)), strict=True):
        np.testing.assert_array_equal(whole, single)


def test_powers_written_over_an_operand():
    x, y = RNG.standard_normal((2, 3000), dtype=np.float32)
    y[::7] = 3
    expected = cygrad.pow(cygrad.tensor(x), cygrad.tensor(y)).numpy()
    for target in (0, 1):
        operands = [cygrad.tensor(x), cygrad.tensor(y)]
        cygrad.pow(*operands, out=operands[target])
        np.testing.assert_array_equal(operands[target].numpy(), expected)
