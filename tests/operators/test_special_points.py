"""Derivatives up to third order near special points and range limits."""

import math

import numpy as np
import pytest

import cygrad
from cygrad import special
from cygrad.nn import functional as F
from tests.samples import find

NEAR = [1e-30, 1e-20, 1e-10, 1e-8, 1e-6, 1e-3]
PI = math.pi
# Derivatives of orders 1, 2 and 3 by the first terms of the Taylor series.
SERIES = {
    "i0": [lambda x: x / 2, lambda x: 1 / 2 + 3 * x * x / 16, lambda x: 3 * x / 8],
    "special.i1": [lambda x: 1 / 2 + 3 * x * x / 16, lambda x: 3 * x / 8, lambda x: 3 / 8 + 5 * x * x / 32],
    "special.i1e": [lambda x: 1 / 2 - x, lambda x: -1 + 15 * x / 8, lambda x: 15 / 8 - 7 * x / 2],
    "special.bessel_j0": [lambda x: -x / 2, lambda x: -1 / 2 + 3 * x * x / 16, lambda x: 3 * x / 8],
    "special.bessel_j1": [lambda x: 1 / 2 - 3 * x * x / 16, lambda x: -3 * x / 8, lambda x: -3 / 8 + 5 * x * x / 32],
    "sinc": [lambda x: -PI ** 2 * x / 3, lambda x: -PI ** 2 / 3 + PI ** 4 * x * x / 10, lambda x: PI ** 4 * x / 5],
    "special.spherical_bessel_j0": [lambda x: -x / 3, lambda x: -1 / 3 + x * x / 10, lambda x: x / 5],
    "special.erfcx": [lambda x: 2 * x - 2 / PI ** 0.5, lambda x: 2 - 8 * x / PI ** 0.5,
                      lambda x: -8 / PI ** 0.5 + 12 * x],
}


def derivatives(function, value, dtype=cygrad.float64, count=3):
    x = cygrad.tensor(value, dtype=dtype, requires_grad=True)
    found, result = [], function(x)
    for _ in range(count):
        result, = cygrad.autograd.grad(result, x, create_graph=True)
        found.append(result.item())
    return found


def named(name):
    return getattr(special, name.removeprefix("special.")) if "." in name else find(name)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize(("dtype", "rtol"), [(cygrad.float64, 1e-5), (cygrad.float32, 1e-4)], ids=str)
def test_derivatives_near_zero_are_those_of_the_series(name, dtype, rtol):
    for value in NEAR:
        expected = [term(value) for term in SERIES[name]]
        np.testing.assert_allclose(derivatives(named(name), value, dtype), expected, rtol=rtol, atol=1e-37)


@pytest.mark.parametrize(("name", "border"), [("special.i1", 0.2), ("special.i1e", 0.2), ("special.bessel_j1", 0.2),
                                              ("sinc", 0.5 / PI), ("special.spherical_bessel_j0", 0.5),
                                              ("special.log_ndtr", -8.0), ("special.erfcx", 5.7)])
def test_the_formulas_on_both_sides_of_a_border_agree(name, border):
    below, above = (derivatives(named(name), border * (1 + step)) for step in (-1e-9, 1e-9))
    np.testing.assert_allclose(below, above, rtol=1e-6)


@pytest.mark.parametrize("value", [-1e4, -40.0, -8.0, -2.0, 0.0, 2.0, 10.0, 30.0, 37.0, 39.0, 100.0, 1e4, 1e200])
def test_derivatives_of_log_ndtr_in_the_tails(value):
    """With m = 1 / hazard, the Mills ratio, the second derivative is m' / m**2 - in the lower tail of the asymptotic
    series 1 - 1 / x**2 + 6 / x**4, with the third derivative 2 / x**3."""
    first, second, third = derivatives(special.log_ndtr, value)
    if value < -20:
        np.testing.assert_allclose(second, -1 + 1 / value ** 2 - 6 / value ** 4, rtol=1e-5)
        np.testing.assert_allclose(third, -2 / value ** 3 + 24 / value ** 5, rtol=1e-2)
    else:
        right = -first * (value + first)
        np.testing.assert_allclose(second, right, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(third, -right * (value + first) - first * (1 + right), rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("value", [-101.0, -1e4, -1e8, -1e30])
def test_third_derivative_of_log_ndtr_in_the_lower_tail_does_not_cancel(value):
    found = derivatives(special.log_ndtr, value)[2]
    terms = (-2, 24, -300, 4144, -63540)                  # of the asymptotic series
    right = sum(term * value ** -(3 + 2 * k) for k, term in enumerate(terms))
    np.testing.assert_allclose(found, right, rtol=1e-13)


@pytest.mark.parametrize("value", [1e4, -1e8, 1e30])
def test_derivatives_of_hypot_do_not_cancel_where_one_side_is_small(value):
    """With r = hypot(x, 1) they are x / r, 1 / r**3 and -3 x / r**5."""
    right = [math.copysign(1, value), abs(value) ** -3.0, -3 * math.copysign(1, value) * value ** -4.0]
    found = derivatives(lambda x: cygrad.hypot(x, cygrad.ones_like(x)), value)
    np.testing.assert_allclose(found, right, rtol=1e-7)


@pytest.mark.parametrize(("a", "right"), [(0.5, [math.inf, -math.inf, math.inf]), (1.0, [1, -1, 1]),
                                          (1.5, [0, math.inf, -math.inf]), (2.0, [0, 1, -2]), (3.0, [0, 0, 1]),
                                          (4.5, [0, 0, 0])])
def test_derivatives_of_incomplete_gamma_functions_at_zero(a, right):
    """The first one is the density x**(a - 1) * exp(-x) / gamma(a)."""
    assert derivatives(lambda x: special.gammainc(cygrad.full_like(x, a), x), 0.0) == right
    assert derivatives(lambda x: special.gammaincc(cygrad.full_like(x, a), x), 0.0) == [-value for value in right]
    found = derivatives(lambda x: special.gammainc(cygrad.full_like(x, a), x), 0.7)
    density = 0.7 ** (a - 1) * math.exp(-0.7) / math.gamma(a)
    slope = (a - 1) / 0.7 - 1
    np.testing.assert_allclose(found, [density, density * slope, density * (slope ** 2 - (a - 1) / 0.49)], rtol=1e-13)


def test_powers_of_zero_are_flat_in_every_order_of_modes():
    e, one = cygrad.tensor([0.3, 2.0], dtype=cygrad.float64), cygrad.ones(2, dtype=cygrad.float64)

    def tangent(e):
        return cygrad.func.jvp(lambda e: 0.0 ** e, (e,), (one,))[1]
    assert cygrad.func.jvp(tangent, (e,), (one,))[1].tolist() == [0, 0]
    assert cygrad.func.jvp(cygrad.func.grad(lambda e: (0.0 ** e).sum()), (e,), (one,))[1].tolist() == [0, 0]


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e25])
def test_smooth_l1_loss_of_a_tiny_or_huge_beta(scale):
    x = cygrad.tensor([0.25, 3.0]) * scale
    assert F.smooth_l1_loss(x, cygrad.zeros(2), reduction="none", beta=0.5 * scale).numpy() == pytest.approx(
        [0.0625 * scale, 2.75 * scale], rel=1e-6)


@pytest.mark.parametrize(("value", "rtol"), [(50.0, 1e-13), (100.0, 1e-13), (1e3, 1e-13), (1e6, 1e-13)])
def test_derivatives_of_erfcx_in_the_upper_tail_are_those_of_the_asymptotic_series(value, rtol):
    """erfcx(x) = (1 / x - 1 / (2 x**3) + 3 / (4 x**5) - 15 / (8 x**7) + ...) / sqrt(pi)."""
    right = [0.0] * 3
    term, power = 1 / PI ** 0.5, -1
    for k in range(8):
        factor = term
        for order in range(3):
            factor *= power - order
            right[order] += factor * value ** (power - order - 1)
        term, power = -term * (2 * k + 1) / 2, power - 2
    np.testing.assert_allclose(derivatives(special.erfcx, value), right, rtol=rtol)
    np.testing.assert_allclose(derivatives(special.erfcx, value, cygrad.float32)[0], right[0], rtol=1e-6)


@pytest.mark.parametrize("value", [-700.0, -100.0, -30.0, -1.0, 0.0, 3.0])
def test_derivatives_of_expm1_in_the_lower_tail(value):
    np.testing.assert_allclose(derivatives(cygrad.expm1, value), [math.exp(value)] * 3, rtol=1e-14)


def gradients(function, arguments, dtype):
    leaves = [cygrad.tensor(argument, dtype=dtype, requires_grad=True) for argument in arguments]
    function(*leaves).sum().backward()
    return [np.array(leaf.grad.numpy()) for leaf in leaves]



RANGES = {
    "normalize": (lambda x: F.normalize(x, dim=0, eps=0)[0], [[1, 2]]),
    "cosine_similarity": (lambda a, b: F.cosine_similarity(a, b, dim=0, eps=0), [[1, 2], [1, -3]]),
    "norm": (lambda x: x.norm(), [[1, 2]]),
    "norm of order 3": (lambda x: x.norm(3), [[1, 2]]),
    "norm of order 1/2": (lambda x: cygrad.linalg.vector_norm(x, 0.5), [[1, 2]]),
    "cdist": (cygrad.cdist, [[[1, 2]], [[2, 5], [1, 3]]]),
    "pdist": (F.pdist, [[[1, 2], [5, 1], [2, 2]]]),
    "lp_pool1d": (lambda x: F.lp_pool1d(x, 2.0, 2), [[[1, 2, 3, 5]]]),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 3.0, 2), [[[[1, 2], [4, 3]]]]),
    "atan2": (cygrad.atan2, [[1, -2], [2, 1]]),
    "angle": (lambda x, y: cygrad.complex(x, y).angle(), [[1, -2], [2, 1]]),
    "asinh": (cygrad.asinh, [[1, -2]]),
    "complex sgn": (lambda x, y: cygrad.view_as_real(cygrad.complex(x, y).sgn()) * cygrad.tensor([1, -3]),
                    [[1, -2], [2, 1]]),
    "acos": (lambda x, y: cygrad.complex(x, y).acos().real, [[1, -2], [2, 1]]),
    "asin": (lambda x, y: cygrad.complex(x, y).asin().imag, [[1, -2], [2, 1]]),
    "complex asinh": (lambda x, y: cygrad.complex(x, y).asinh().real, [[1, -2], [2, 1]]),
    "std": (lambda x: x.std(), [[1, 2, -3]]),
    "std of rows": (lambda x: x.std(0), [[[1, 2], [4, -1], [3, 3]]]),
    "mean": (lambda x: x.mean() * 2, [[1, 2, -3]]),
    "quotient by a norm": (lambda x: x / x.norm(), [[1, 2, -3]]),
    "div": (cygrad.div, [[1, 2], [2, -3]]),
    "reciprocal": (lambda x, y: x * y.reciprocal(), [[1, 2], [2, -3]]),
    "addcdiv": (lambda x, y: cygrad.addcdiv(x.detach() * 0, x, y, value=2), [[1, 2], [2, -3]]),
    "negative power": (lambda x, y: x * y ** -1, [[1, 2], [2, -3]]),
    "hypot": (cygrad.hypot, [[1, -2], [2, 1]]),
    "least squares": (lambda a, b: cygrad.linalg.lstsq(a, b).solution, [[[1, 2], [3, 1.5], [1, 1]], [[1], [2], [4]]]),
    "singular values": (cygrad.linalg.svdvals, [[[1, 2], [3, 1.5]]]),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25], ids=str)
def test_gradients_in_float32_are_those_in_float64(name, scale):
    function, values = RANGES[name]
    arguments = [(np.array(value) * scale).tolist() for value in values]
    singles, doubles = (gradients(function, arguments, dtype) for dtype in (cygrad.float32, cygrad.float64))
    for found, right in zip(singles, doubles, strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-5, atol=1e-41)


def curvatures(function, arguments, dtype):
    """Return second derivatives along a direction that is not radial; the first ones are scaled to be at most 1."""
    leaves = [cygrad.tensor(argument, dtype=dtype, requires_grad=True) for argument in arguments]
    first = cygrad.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
    along = sum((slope / slope.detach().abs().max() * cygrad.arange(1, slope.numel() + 1).reshape(slope.shape)).sum()
                for slope in first)
    return [found.numpy() for found in cygrad.autograd.grad(along, leaves)]


@pytest.mark.parametrize("name", ["normalize", "cosine_similarity", "norm", "norm of order 3", "atan2", "angle", "std",
                                  "std of rows", "complex sgn", "quotient by a norm", "div", "reciprocal", "addcdiv",
                                  "negative power", "hypot", "least squares", "singular values"])
@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25], ids=str)
def test_second_derivatives_in_float32_are_those_in_float64(name, scale):
    function, values = RANGES[name]
    arguments = [(np.array(value) * [1.0, 1.5, 1.0][:np.shape(value)[-1]] * scale).tolist() for value in values]
    singles, doubles = (curvatures(function, arguments, dtype) for dtype in (cygrad.float32, cygrad.float64))
    for found, right in zip(singles, doubles, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5 * np.abs(right).max())


NORMALIZATIONS = {
    "layer_norm": lambda x: F.layer_norm(x, (4,), eps=0),
    "affine layer_norm": lambda x: F.layer_norm(x, (4,), cygrad.arange(1, 5, dtype=x.dtype), eps=0),
    "rms_norm": lambda x: F.rms_norm(x, (4,), eps=0),
    "group_norm": lambda x: F.group_norm(x, 1, eps=0),
    "instance_norm": lambda x: F.instance_norm(x.unsqueeze(0), eps=0),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=1e-300),
    "batch_norm of long channels": lambda x: F.batch_norm(x.reshape(3, 1, 4).repeat(1, 1, 10), None, None,
                                                          training=True, eps=1e-300),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e25], ids=str)
def test_normalizations_of_tiny_and_huge_numbers_keep_two_derivatives(name, scale):
    found = []
    for dtype in (cygrad.float32, cygrad.float64):
        x = (cygrad.tensor([[1, 2, -3, 0.5], [2, 5, 1, 0], [0, 4, 2, -1]], dtype=dtype) * scale).requires_grad_()
        result = NORMALIZATIONS[name](x)
        weights = cygrad.arange(1, result.numel() + 1, dtype=dtype).reshape(result.shape).sqrt()
        first, = cygrad.autograd.grad((result * weights).sum(), x, create_graph=True)
        slopes = first * scale * cygrad.arange(1, 13, dtype=dtype).reshape(3, 4)
        found.append([result, first * scale, cygrad.autograd.grad(slopes.sum(), x)[0] * scale])
    for single, double in zip(*found, strict=True):
        double = double.detach().numpy()
        np.testing.assert_allclose(single.detach().numpy(), double, rtol=1e-5, atol=1e-5 * np.abs(double).max())


@pytest.mark.parametrize("values", [[3e38, -3e38, 1.5e38], [3e38, 3e38, 3e38], [3e38, -3e38, 0, 1e38, 1e38],
                                    [1e-25, 3e-25], [3e-39, -1e-40]])
def test_spreads_of_the_largest_and_of_small_numbers(values):
    x = cygrad.tensor(values, requires_grad=True)
    exact = np.array(x.detach().numpy(), np.float64)
    result = x.std()
    np.testing.assert_allclose(result.item(), exact.std(ddof=1), rtol=1e-6)
    np.testing.assert_allclose(x.mean().item(), exact.mean(), rtol=1e-6)
    result.backward()
    right = (exact - exact.mean()) / (exact.std(ddof=1) or 1) / (len(values) - 1)
    np.testing.assert_allclose(x.grad.numpy(), right, rtol=1e-5)


def test_products_with_zeros_and_factors_that_overflow():
    x = cygrad.tensor([[1e13, 0, 0], [1e13, 1e13, 0], [1e13, 1e13, 1e13]], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 3
    y = cygrad.tensor([1e200, 0.0, 0.0, 1e200, 1e200], dtype=cygrad.float64, requires_grad=True)
    y.cumprod(0).sum().backward()
    assert y.grad.tolist() == [1, 1e200, 0, 0, 0]
    z = cygrad.tensor([2.0, 0.0, 3.0], dtype=cygrad.float64, requires_grad=True)
    assert cygrad.autograd.gradgradcheck(lambda z: z.prod(), [z])
    assert cygrad.autograd.gradgradcheck(lambda z: z.cumprod(0), [z])
    assert derivatives(lambda t: (t * z.detach() + (z.detach() == 0) * t).prod(), 1.0) == [18, 36, 36]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("sparse_first", [True, False])
@pytest.mark.parametrize("create_graph", [True, False])
def test_sparse_and_dense_gradients_of_a_leaf_add_up(together, sparse_first, create_graph):
    """Tied embeddings: one table is looked up and multiplied."""
    index, values = cygrad.tensor([1, 3, 1]), cygrad.rand(5, 3, dtype=cygrad.float64)

    def parts(table, sparse):
        found = [(F.embedding(index, table, sparse=sparse) ** 2).sum(), (table @ table.t()).sum()]
        return found if sparse_first else found[::-1]

    table, dense = values.clone().requires_grad_(), values.clone().requires_grad_()
    first, second = parts(table, True)
    if together:
        (first + second).backward(create_graph=create_graph)
    else:
        first.backward(create_graph=create_graph)
        second.backward(create_graph=create_graph)
    sum(parts(dense, False)).backward(create_graph=create_graph)
    np.testing.assert_allclose(table.grad.to_dense().detach().numpy(), dense.grad.detach().numpy())
    if create_graph:
        by_table, = cygrad.autograd.grad((table.grad ** 2).sum(), table)
        by_dense, = cygrad.autograd.grad((dense.grad ** 2).sum(), dense)
        np.testing.assert_allclose(by_table.numpy(), by_dense.numpy())


@pytest.mark.parametrize("options", [{}, {"preserve_rng_state": False}])
def test_checkpoints_under_vmap_and_in_forward_mode(options):
    def function(x):
        return cygrad.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, **options)
    x = cygrad.tensor([0.3, 0.7], dtype=cygrad.float64)
    right = x.cos() * x.sin().exp()
    assert cygrad.vmap(function)(x).tolist() == x.sin().exp().tolist()
    np.testing.assert_allclose(cygrad.vmap(cygrad.func.grad(function))(x).tolist(), right.tolist())
    np.testing.assert_allclose(cygrad.func.jvp(function, (x,), (cygrad.ones_like(x),))[1].tolist(), right.tolist())


@pytest.mark.parametrize(("order", "value", "right"), [
    (20, -0.5, -487772949462609.9), (20, -1.5, -10709198259.124132), (12, -1.5, -3256.697980402698),
    (5, -0.5, 15371.113548602436), (3, -1.5, 194.59427621918763)])
def test_polygamma_of_high_order_between_poles(order, value, right):
    """Where the largest terms on both sides of zero cancel."""
    found = special.polygamma(order, cygrad.tensor(value, dtype=cygrad.float64)).item()
    np.testing.assert_allclose(found, right, rtol=1e-12)


@pytest.mark.parametrize(("name", "loss", "right"), [
    ("hinge_embedding_loss", lambda x: F.hinge_embedding_loss(x, -cygrad.ones(1), margin=1.0), -1),
    ("margin_ranking_loss", lambda x: F.margin_ranking_loss(x, cygrad.zeros(1), cygrad.ones(1), margin=1.0), -1),
    ("triplet_margin_loss", lambda x: F.triplet_margin_with_distance_loss(
        x, cygrad.ones(1), 2 * cygrad.ones(1), margin=1.0, distance_function=lambda a, b: a * b), -1),
])
def test_losses_at_their_margin_have_the_derivative_of_clamp(name, loss, right):
    x = cygrad.ones(1, requires_grad=True)
    result = loss(x)
    assert result.item() == 0
    assert cygrad.autograd.grad(result, x)[0].tolist() == [right]


@pytest.mark.parametrize("name", ["sinc", "special.i1e", "special.bessel_j1", "special.spherical_bessel_j0"])
@pytest.mark.parametrize("value", [3e38, -1e150])
def test_second_derivatives_of_huge_arguments_are_finite(name, value):
    x = cygrad.tensor(value, dtype=cygrad.float64)
    forward = cygrad.func.jvp(cygrad.func.grad(named(name)), (x,), (cygrad.ones_like(x),))[1]
    assert derivatives(named(name), value, count=2)[1] == pytest.approx(forward.item(), rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("distance", [100.0, 300.0, 700.0, 1e5])
def test_derivatives_of_logaddexp2_in_both_tails(distance):
    """With p = 2**-distance, the first derivatives are 1 - p and p, the second ones p * log(2)."""
    p = 2.0 ** -distance if distance < 1e4 else 0.0
    zero = cygrad.tensor(0.0, dtype=cygrad.float64)
    larger = derivatives(lambda x: cygrad.logaddexp2(x, zero), distance, count=2)
    smaller = derivatives(lambda x: cygrad.logaddexp2(x, zero), -distance, count=2)
    assert larger == pytest.approx([1.0, p * math.log(2)], rel=1e-12, abs=0)
    assert smaller == pytest.approx([p, p * math.log(2)], rel=1e-12, abs=0)


def test_acosh_has_infinite_derivatives_at_one():
    assert derivatives(cygrad.acosh, 1.0, count=2) == [math.inf, -math.inf]


@pytest.mark.parametrize("value", [0.5, 1.0, 2.0, 7.0])
def test_powers_have_mixed_derivatives_at_integer_exponents(value):
    """The slope e x**(e - 1) is 0 at e = 0, but grows with e as 1 / x; the one of x**x appears in all orders at 1."""
    x, e = (cygrad.tensor(number, dtype=cygrad.float64, requires_grad=True) for number in (value, 0.0))
    slope, = cygrad.autograd.grad(x ** e, x, create_graph=True)
    found = [slope.item(), cygrad.autograd.grad(slope, e, create_graph=True)[0].item()]
    np.testing.assert_allclose(found, [0.0, 1 / value], rtol=1e-14)
    np.testing.assert_allclose(derivatives(lambda x: x ** x, 1.0, count=4), [1, 2, 3, 8], rtol=1e-14)
    _, tangent = cygrad.func.jvp(cygrad.func.grad(lambda x, e: x ** e), (x.detach(), e.detach()),
                                 (cygrad.zeros_like(x), cygrad.ones_like(e)))
    assert tangent.item() == pytest.approx(1 / value)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
def test_derivatives_of_gelu_of_huge_arguments(approximate, dtype):
    for value in (150.0, 1e15, 3e38):
        for sign, right in ((1, [1, 0, 0]), (-1, [0, 0, 0])):
            assert derivatives(lambda x: F.gelu(x, approximate=approximate), sign * value, dtype) == right


@pytest.mark.parametrize("value", [1e18, 1e25, 1e100, 1e200])
def test_polygamma_and_zeta_of_huge_arguments(value):
    x = cygrad.tensor(value, dtype=cygrad.float64)
    assert cygrad.polygamma(1, x).item() == pytest.approx(1 / value)
    assert special.zeta(2.0, x).item() == pytest.approx(1 / value)
    assert derivatives(cygrad.lgamma, value)[1] == pytest.approx(1 / value)


@pytest.mark.parametrize(("name", "value", "right"), [
    ("i0e", 51.0, [-0.00055178065101328843, 1.631083857889521e-5]),
    ("i0e", -300.0, [3.8436374816510892e-5, 1.9234283212528123e-7]),
    ("i0e", 1000.0, [-6.3101989626271155e-6, 9.4676683256014869e-9]),
    ("i1e", 51.0, [-0.00053546981243439322, 1.5507206046243513e-5]),
    ("i1e", -300.0, [-3.8244031984385611e-5, -1.9073863049232582e-7]),
    ("i1e", 1000.0, [-6.300731294301514e-6, 9.4439932256286566e-9]),
    ("scaled_modified_bessel_k0", 51.0, [-0.001708154078650886, 5.00005086377974e-05]),
    ("scaled_modified_bessel_k0", 1000.0, [-1.9809212205993364e-05, 2.970640097347964e-08]),
    ("scaled_modified_bessel_k0", 100000000.0, [-6.266570663077861e-13, 9.399855971117152e-21]),
    ("scaled_modified_bessel_k1", 51.0, [-0.0017581545872886835, 5.243994730785462e-05]),
    ("scaled_modified_bessel_k1", 1000.0, [-1.9838918606966846e-05, 2.9780648446447416e-08]),
    ("scaled_modified_bessel_k1", 100000000.0, [-6.266570757076421e-13, 9.39985620611355e-21])])
def test_derivatives_of_scaled_bessel_functions_do_not_cancel_in_the_tails(name, value, right):
    assert derivatives(named("special." + name), value, count=2) == pytest.approx(right, rel=5e-14, abs=0)


@pytest.mark.parametrize(("dtype", "values"), [(cygrad.float32, [1e4, 1e8, 1e18]),
                                               (cygrad.float64, [1e8, 1e18, 1e100])])
def test_derivatives_far_out_are_the_leading_terms(dtype, values):
    """i0e and i1e fall as x**-1/2, softsign approaches its limit as 1 / x."""
    rtol = 1e-3 if dtype is cygrad.float32 else 1e-7
    for sign, value in [(sign, value) for sign in (1, -1) for value in values]:
        fall = value ** -1.5 / math.sqrt(8 * math.pi)
        np.testing.assert_allclose(derivatives(cygrad.special.i0e, sign * value, dtype, 1), [-sign * fall], rtol)
        np.testing.assert_allclose(derivatives(cygrad.special.i1e, sign * value, dtype, 1), [-fall], rtol)
        np.testing.assert_allclose(derivatives(F.softsign, sign * value, dtype, 2)[0], value ** -2.0, rtol)
    assert derivatives(F.softsign, 1e12, cygrad.float64) == pytest.approx([1e-24, -2e-36, 6e-48], rel=1e-11)


@pytest.mark.parametrize(("value", "dtype"), [(100.0, cygrad.float32), (-100.0, cygrad.float32),
                                              (720.0, cygrad.float64)])
def test_derivatives_of_bessel_functions_that_overflow_are_infinite(value, dtype):
    assert derivatives(cygrad.special.i1, value, dtype, 1) == [math.inf]
    assert derivatives(cygrad.i0, value, dtype, 2) == [math.copysign(math.inf, value), math.inf]


FAR = {
    "cdist": (lambda x: cygrad.cdist(x[:1], x[1:]), 1), "pdist": (cygrad.pdist, 1),
    "hypot": (lambda x: cygrad.hypot(x[0], x[1]), 1),
    "abs": (lambda x: cygrad.complex(x[0], x[1]).abs(), 1),
    "norm": (cygrad.linalg.vector_norm, 1),
    "renorm": (lambda x: cygrad.renorm(x, 2, 0, 1.0)[:, 0], 0),
}


@pytest.mark.parametrize(("name", "scale"), [(name, scale) for name in FAR for scale in (1e-25, 1e-15, 1e15, 1e25)
                                         if name != "renorm" or scale > 1])       # it adds 1e-7 to the norm
def test_first_and_second_derivatives_of_distances_scale_with_their_arguments(name, scale):
    """They are homogeneous: those of order k at s * x are s**(degree - k) times those at x."""
    function, degree = FAR[name]
    points, found = cygrad.tensor([[1.0, -2.0, 0.5], [0.7, 1.5, 3.0]], dtype=cygrad.float64), []
    for x in (points, (points * scale).float()):
        x.requires_grad_()
        first, = cygrad.autograd.grad(function(x).sum(), x, create_graph=True)
        weights = cygrad.arange(1.0, 7.0, dtype=x.dtype).reshape(2, 3)
        found.append([first.detach(), cygrad.autograd.grad((first * weights).sum(), x)[0]])
    for order in (1, 2) if 1e-37 < scale ** (degree - 2) < 1e38 else (1,):
        right = found[0][order - 1] * scale ** (degree - order)
        largest = right.abs().max()
        np.testing.assert_allclose(found[1][order - 1].double() / largest, right / largest, atol=1e-5)


@pytest.mark.parametrize(("z", "right"), [
    (1e-30 + 0j, 1e-30 + 0j), (1e-30j, 5e-61 + 1e-30j), (-1e-20 + 3e-10j, 3.5e-20 + 3e-10j),
    (1e200 - 0j, 460.51701859880916 - 0j),
    (complex(-0.0, -0.0), complex(0.0, -0.0)), (-1 + 1j, 0.5j * PI), (complex(-math.inf, 1), complex(math.inf, PI)),
    (-0.049886305361495964 - 0.3119037788491372j, -2.4700950721608554e-18 - 0.31719611312672444j)])
def test_log1p_of_complex_numbers_does_not_cancel_near_zero_and_on_the_circle(z, right):
    found = cygrad.log1p(cygrad.tensor([z], dtype=cygrad.complex128)).item()
    for part, expected in ((found.real, right.real), (found.imag, right.imag)):
        assert part == pytest.approx(expected, rel=1e-14, abs=0)
        assert math.copysign(1, part) == math.copysign(1, expected)
    single = cygrad.log1p(cygrad.tensor([1e-20 + 1e-25j])).item()
    assert single == pytest.approx(1e-20 + 1e-25j, rel=1e-6)

LOGISTIC = {
    "logsigmoid": F.logsigmoid, "softplus": lambda x: F.softplus(x, threshold=1e3), "silu": F.silu, "mish": F.mish,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "logaddexp": lambda x: cygrad.logaddexp(x, cygrad.zeros_like(x)),
    "soft margin": lambda x: F.soft_margin_loss(x, -cygrad.ones_like(x)),
    "bce with logits": lambda x: F.binary_cross_entropy_with_logits(x, cygrad.ones_like(x)),
    "weighted bce": lambda x: F.binary_cross_entropy_with_logits(
        x, cygrad.ones_like(x), pos_weight=cygrad.ones_like(x), weight=cygrad.ones_like(x)),
}
DERIVATIVES = [
    ("logsigmoid", -40.0, [1.0, -4.248354255291589e-18, -4.248354255291589e-18]),
    ("logsigmoid", 1e-30, [0.5, -0.25, 1.25e-31]),
    ("logsigmoid", 20.0, [2.061153618190204e-9, -2.061153613941849e-9, 2.061153605445141e-9]),
    ("logsigmoid", 80.0, [1.804851387845415e-35, -1.804851387845415e-35, 1.804851387845415e-35]),
    ("softplus", -40.0, [4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18]),
    ("softplus", 1e-30, [0.5, 0.25, -1.25e-31]),
    ("softplus", 20.0, [0.9999999979388464, 2.061153613941849e-9, -2.061153605445141e-9]),
    ("softplus", 80.0, [1.0, 1.804851387845415e-35, -1.804851387845415e-35]),
    ("silu", -40.0, [-1.65685815956372e-16, -1.614374617010804e-16, -1.571891074457888e-16]),
    ("silu", 1e-30, [0.5, 0.5, -5.0e-31]),
    ("silu", 20.0, [1.000000039161919, -3.710076488101912e-8, 3.503961095269906e-8]),
    ("silu", 80.0, [1.0, -1.407784082519424e-33, 1.38973556864097e-33]),
    ("mish", -40.0, [-1.65685815956372e-16, -1.614374617010804e-16, -1.571891074457888e-16]),
    ("mish", 1e-30, [0.6, 0.64, -0.096]),
    ("mish", 20.0, [1.0, -6.457498407097901e-16, 1.25751284159795e-15]),
    ("mish", 80.0, [1.0, -2.058732752355153e-67, 4.091405596452647e-67]),
    ("gelu tanh", 1e-30, [0.5, 0.7978845608028654, -1.60366745226011e-30]),
    ("gelu tanh", 1e-10, [0.5000000000797885, 0.7978845608028654, -1.60366745226011e-10]),
    ("gelu tanh", 4.0, [1.000335123197123, -0.001474059663765336, 0.005870094264273697]),
    ("logaddexp", -40.0, [4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18]),
    ("logaddexp", 1e-30, [0.5, 0.25, -1.25e-31]),
    ("logaddexp", 20.0, [0.9999999979388464, 2.061153613941849e-9, -2.061153605445141e-9]),
    ("logaddexp", 80.0, [1.0, 1.804851387845415e-35, -1.804851387845415e-35]),
    ("bce with logits", -40.0, [-1.0, 4.248354255291589e-18, 4.248354255291589e-18]),
    ("bce with logits", 1e-30, [-0.5, 0.25, -1.25e-31]),
    ("bce with logits", 20.0, [-2.061153618190204e-9, 2.061153613941849e-9, -2.061153605445141e-9]),
    ("bce with logits", 80.0, [-1.804851387845415e-35, 1.804851387845415e-35, -1.804851387845415e-35])
]
DERIVATIVES += [("soft margin", value, right) for name, value, right in DERIVATIVES if name == "softplus"]
DERIVATIVES += [("weighted bce", value, right) for name, value, right in DERIVATIVES if name == "bce with logits"]


@pytest.mark.parametrize(("name", "value", "right"), DERIVATIVES)
def test_derivatives_of_functions_of_exp_do_not_cancel(name, value, right):
    """The right values were computed by mpmath, with 200 digits."""
    np.testing.assert_allclose(derivatives(LOGISTIC[name], value), right, rtol=1e-13)
    np.testing.assert_allclose(derivatives(LOGISTIC[name], value, cygrad.float32), right, rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize(("a", "x", "right"), [
    (1e-300, 1e-10, 2.244863526513892e-299), (1e-10, 1.0, 2.193839344179678e-11), (1e-3, 0.1, 0.001821990262049724),
    (0.05, 1e-5, 0.4223537817943035), (0.0999, 1.05, 0.02225789794874948)])
def test_upper_incomplete_gamma_function_of_small_shapes(a, x, right):
    """The right values were computed by mpmath; the difference of 1 and the lower function cancels."""
    found = special.gammaincc(*(cygrad.tensor(value, dtype=cygrad.float64) for value in (a, x)))
    np.testing.assert_allclose(found.item(), right, rtol=1e-14)


@pytest.mark.parametrize("a", [1e-300, 0.5, 1.0, 100.0, 1e5, 1e7, 1e10])
@pytest.mark.parametrize("x", [1e78, 1e100, 1e155, 1e300, 1.7e308, math.inf])
def test_incomplete_gamma_functions_of_huge_arguments(a, x):
    shape, point = (cygrad.tensor(value, dtype=cygrad.float64) for value in (a, x))
    assert special.gammainc(shape, point).item() == 1
    assert special.gammaincc(shape, point).item() == 0
    assert special.gammainc(point, 1 / point).item() == 0 or x == math.inf


@pytest.mark.parametrize("finite", [0.0, -0.0, 1.0, -2.5, 1e-30, -3e38])
@pytest.mark.parametrize("infinite", [math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64], ids=str)
def test_gradients_of_atan2_at_infinity_are_zero(finite, infinite, dtype):
    for arguments in ((finite, infinite), (infinite, finite), (infinite, infinite)):
        assert gradients(cygrad.atan2, arguments, dtype) == [0, 0]


COMPLEX = {
    "softsign": F.softsign, "asin": cygrad.asin, "acos": cygrad.acos, "asinh": cygrad.asinh, "acosh": cygrad.acosh,
    "abs": cygrad.abs, "sgn": cygrad.sgn, "angle": cygrad.angle, "sinc": cygrad.sinc, "sigmoid": cygrad.sigmoid,
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("z", [0.3 + 0.4j, -2 + 0.5j, 1e-12 - 2e-12j, 1e-30 + 1e-30j, 1e20 + 2e20j])
def test_second_derivatives_of_complex_functions_agree_in_all_orders_of_modes(name, z):
    def energy(pair):
        result = COMPLEX[name](cygrad.view_as_complex(pair))
        return (result * (0.7 - 0.4j)).real.sum()
    pair = cygrad.tensor([[z.real, z.imag]], dtype=cygrad.float64)
    ways = [cygrad.func.jacrev(cygrad.func.jacrev(energy)), cygrad.func.jacfwd(cygrad.func.jacrev(energy)),
            cygrad.func.jacrev(cygrad.func.jacfwd(energy)), cygrad.func.jacfwd(cygrad.func.jacfwd(energy))]
    found = [way(pair).reshape(2, 2).numpy() for way in ways]
    atol = 1e-9 * np.abs(found[0]).max()
    np.testing.assert_allclose(found[0], found[0].T, rtol=1e-9, atol=atol)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=atol)


@pytest.mark.parametrize("z", [1e-30 + 1e-30j, 1e-12 - 2e-12j])
def test_second_derivatives_of_inverse_sines_of_small_complex_numbers(z):
    """asin'' and -acos'' are z, asinh'' is -z, to the first order."""
    for function, right in ((cygrad.asin, z), (cygrad.acos, -z), (cygrad.asinh, -z)):
        x = cygrad.tensor([z], dtype=cygrad.complex128, requires_grad=True)
        first, = cygrad.autograd.grad(function(x).real.sum(), x, create_graph=True)
        second, = cygrad.autograd.grad(first.real.sum(), x)
        np.testing.assert_allclose(second.item(), right.conjugate(), rtol=1e-10)


@pytest.mark.parametrize("function", [cygrad.abs, cygrad.sgn, cygrad.angle, F.softsign])
def test_tangents_of_complex_functions_at_zero_are_not_nan(function):
    zero, one = cygrad.zeros(1, dtype=cygrad.complex128), cygrad.ones(1, dtype=cygrad.complex128)

    def slope(x):
        return cygrad.func.vjp(function, x)[1](cygrad.ones_like(function(x)))[0]
    assert not cygrad.func.jvp(slope, (zero,), (one,))[1].isnan().any()


@pytest.mark.parametrize(("dtype", "value"), [(cygrad.float32, 92.0), (cygrad.float32, 100.0), (cygrad.float64, 714.0),
                                              (cygrad.float32, 700.0), (cygrad.float64, 1e5)])
def test_third_derivatives_of_bessel_functions_that_overflow_are_infinite(dtype, value):
    inf = float("inf")
    assert derivatives(special.i0, value, dtype) == derivatives(special.i1, value, dtype) == [inf] * 3
    assert derivatives(special.i0, -value, dtype) == [-inf, inf, -inf]
    assert derivatives(special.i1, -value, dtype) == [inf, -inf, inf]


def test_second_derivatives_of_i1_where_its_gradient_is_zero():
    """Of ``(i1(x) - i1(3)) ** 2 / 2`` at 3: the square of the slope."""
    x = cygrad.tensor(3.0, dtype=cygrad.float64, requires_grad=True)
    loss = (special.i1(x) - special.i1(x).detach()).square() / 2
    first, = cygrad.autograd.grad(loss, x, create_graph=True)
    slope = (special.i0(x) - special.i1(x) / x).item()
    assert first.item() == 0
    np.testing.assert_allclose(cygrad.autograd.grad(first, x)[0].item(), slope**2)


@pytest.mark.parametrize("dtype", [cygrad.float32, cygrad.float64])
@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-3, 0.25, 0.9, 1.0])
@pytest.mark.parametrize("eps", [None, 0.0])
def test_derivatives_of_logit_next_to_its_poles(dtype, value, eps):
    x = cygrad.tensor(value, dtype=dtype).item()
    with np.errstate(divide="ignore", over="ignore"):
        low, high = np.array([x, 1 - x]) if dtype is cygrad.float64 else np.float32([x, 1 - x])
        right = [1 / low + 1 / high, 1 / high**2 - 1 / low**2, 2 / low**3 + 2 / high**3]
    np.testing.assert_allclose(derivatives(lambda x: cygrad.logit(x, eps), value, dtype), right, rtol=1e-5)


def dense(function, x, orders):
    """Return the derivatives of a function of a vector, as nested lists of numbers."""
    if orders == 0:
        return function(x).item()
    derivative = cygrad.func.jacrev
    for _ in range(orders):
        function = derivative(function)
    return function(x).tolist()


@pytest.mark.parametrize("values", [(2.0, 3.0, 4.0, 5.0), (0.0, 3.0, 4.0, 5.0), (0.0, 0.0, 4.0, 5.0),
                                    (0.0, 0.0, 0.0, 5.0), (0.0, 0.0, 0.0, 0.0)])
@pytest.mark.parametrize("orders", [0, 1, 2, 3])
def test_derivatives_of_products_by_index_are_those_of_products_where_elements_are_zero(values, orders):
    x = cygrad.tensor(values, dtype=cygrad.float64)
    index = cygrad.zeros(4, dtype=cygrad.int64)
    ones = cygrad.ones(1, dtype=cygrad.float64)
    expected = dense(lambda x: x.prod(), x, orders)
    for function in (lambda x: ones.scatter_reduce(0, index, x, "prod")[0],
                     lambda x: ones.scatter_reduce(0, index, x, "prod", include_self=False)[0],
                     lambda x: ones.index_reduce(0, index, x, "prod")[0],
                     lambda x: x[:1].scatter_reduce(0, index[1:], x[1:], "prod")[0]):
        np.testing.assert_allclose(dense(function, x, orders), expected, rtol=1e-14, atol=1e-13)
