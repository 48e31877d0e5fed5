"""Gradients at non-differentiable points: values, PyTorch's, and completeness of the table."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import cygrad
import cygrad.array_api
from cygrad.autograd import grad

pytestmark = pytest.mark.guarantee("N1")

ROOT = Path(__file__).resolve().parents[2]
inf, nan = math.inf, math.nan


def op(name, *arguments, **options):
    """A function of a library and Tensors, by its name: of the library, or of its nn.functional."""
    def call(library, *tensors):
        place = library if hasattr(library, name) else library.nn.functional
        return getattr(place, name)(*tensors, *arguments, **options)
    return call


def loss(name, **options):
    return lambda m, x, y: getattr(m.nn.functional, name)(x, y, reduction="sum", **options)


def weighted(function):
    """Multiply the elements of the first result by 1, 2, 3, ..., so that a gradient identifies its element."""
    def call(m, *tensors):
        values = function(m, *tensors)
        values = values if hasattr(values, "shape") else values[0]
        return values * m.arange(1, values.numel() + 1, dtype=values.dtype).reshape(values.shape)
    return call


def part(function, name="real"):
    return lambda m, z: getattr(function(m, z), name)


def scattered(reduce):
    """Two elements that are reduced into the first of two others."""
    return lambda m, x, y: m.scatter_reduce(x, 0, m.tensor([0, 0]), y, reduce)


# (row of the operator table, function, inputs, gradients of the sum of its result for each input)
KINKS = [
    # derivative, and sub-gradient of least norm
    ("relu", op("relu"), [[0.0, -0.0, 1.0]], [[0, 0, 1]]),
    ("relu6", op("relu6"), [[0.0, 6.0]], [[0, 0]]),
    ("hardtanh", op("hardtanh"), [[-1.0, 1.0]], [[0, 0]]),
    ("hardtanh", op("hardtanh", 0.0, 6.0), [[0.0, 6.0]], [[0, 0]]),
    ("leaky_relu", op("leaky_relu", 0.1), [[0.0, -0.0]], [[0.1, 0.1]]),
    ("elu", op("elu", 2.0), [[0.0]], [[2]]),
    ("celu", op("celu", 2.0), [[0.0]], [[1]]),
    ("selu", op("selu"), [[0.0]], [[1.7580993408473766]]),
    ("gelu", op("gelu"), [[0.0]], [[0.5]]),
    ("silu", op("silu"), [[0.0]], [[0.5]]),
    ("mish", op("mish"), [[0.0]], [[0.6]]),
    ("logsigmoid", op("logsigmoid"), [[0.0, inf, -inf]], [[0.5, 0, 1]]),
    ("softplus", op("softplus", 1.0, 20.0), [[20.0, 21.0, 0.0, inf, -inf]], [[1 / (1 + math.exp(-20)), 1, 0.5, 1, 0]]),
    ("hardsigmoid", op("hardsigmoid"), [[-3.0, 3.0]], [[0, 0]]),
    ("hardswish", op("hardswish"), [[-3.0, 3.0, 0.0]], [[0, 1, 0.5]]),
    ("hardshrink", op("hardshrink", 0.5), [[-0.5, 0.5, 1.0]], [[0, 0, 1]]),
    ("softshrink", op("softshrink", 0.5), [[-0.5, 0.5, 1.0]], [[0, 0, 1]]),
    ("threshold", op("threshold", 1.0, 0.0), [[1.0, 2.0]], [[0, 1]]),
    ("prelu_elementwise", op("prelu"), [[0.0, 1.0], [0.25]], [[0.25, 1], [0]]),
    ("max_pool", lambda m, x: m.nn.functional.max_pool1d(x, 2), [[[1.0, 1.0, 2.0, 3.0]]], [[[1, 0, 0, 1]]]),
    ("adaptive_max_pool", lambda m, x: m.nn.functional.adaptive_max_pool1d(x, 1), [[[1.0, 3.0, 3.0]]], [[[0, 1, 0]]]),
    ("abs", op("abs"), [[0.0, -0.0, -2.0]], [[0, 0, -1]]),
    ("abs", op("abs"), [[0j]], [[0j]]),
    ("abs", lambda m, z: z.abs().pow(2), [[0j]], [[0j]]),
    ("l1_elementwise", loss("l1_loss"), [[1.0], [1.0]], [[0], [0]]),
    ("smooth_l1_elementwise", loss("smooth_l1_loss"), [[1.0, 2.0, 0.0], [1.0, 1.0, 1.0]], [[0, 1, -1], [0, -1, 1]]),
    ("smooth_l1_elementwise", loss("smooth_l1_loss", beta=0.0), [[1.0], [1.0]], [[0], [0]]),
    ("huber_elementwise", loss("huber_loss"), [[1.0, 2.0], [1.0, 1.0]], [[0, 1], [0, -1]]),
    # inf at the border of a domain
    ("sqrt", op("sqrt"), [[0.0, -1.0]], [[inf, nan]]),
    ("rsqrt", op("rsqrt"), [[0.0, -1.0]], [[-inf, nan]]),
    ("reciprocal", op("reciprocal"), [[0.0, -0.0]], [[-inf, -inf]]),
    ("log", op("log"), [[0.0]], [[inf]]),
    ("log1p", op("log1p"), [[-1.0]], [[inf]]),
    ("log2", op("log2"), [[0.0]], [[inf]]),
    ("log10", op("log10"), [[0.0]], [[inf]]),
    ("asin", op("asin"), [[-1.0, 1.0, 2.0]], [[inf, inf, nan]]),
    ("acos", op("acos"), [[-1.0, 1.0, 2.0]], [[-inf, -inf, nan]]),
    ("acosh", op("acosh"), [[1.0, 0.5]], [[inf, nan]]),
    ("atanh", op("atanh"), [[-1.0, 1.0]], [[inf, inf]]),
    ("binary_cross_entropy_elementwise",
     lambda m, x: m.nn.functional.binary_cross_entropy(x, m.tensor([0, 1, 1, 0], dtype=m.float64), reduction="sum"),
     [[0.0, 1.0, 0.0, 1.0]], [[0, 0, -1e12, 1e12]]),
    # points that are undefined, or filled in
    ("sinc", op("sinc"), [[0.0, -0.0]], [[0, 0]]),
    ("atan2", op("atan2"), [[0.0, 0.0, 0.0], [0.0, -1.0, 1.0]], [[0, -1, 1], [0, 0, 0]]),
    ("nextafter", op("nextafter"), [[1.0, 2.0, 0.0], [1.0, 3.0, 0.0]], [[0, 1, 0], [0, 0, 0]]),
    ("hypot", op("hypot"), [[0.0, 3.0], [0.0, 4.0]], [[nan, 0.6], [nan, 0.8]]),
    ("angle", op("angle"), [[0.0, -1.0]], [[0, 0]]),
    ("angle", op("angle"), [[0j]], [[0j]]),
    ("sgn", part(op("sgn")), [[0j]], [[0j]]),
    ("sgn", part(op("sgn"), "imag"), [[0j]], [[0j]]),
    ("sgn", lambda m, x: m.sgn(x) + 0 * x, [[0.0, 2.0]], [[0, 0]]),
    ("copysign", op("copysign"), [[0.0, -0.0, 1.0, 2.0], [1.0, -1.0, 0.0, -0.0]], [[0, 0, 1, -1], [0, 0, 0, 0]]),
    ("xlogy", op("xlogy"), [[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]], [[0, 0, -inf, 0], [nan, 0, inf, 0]]),
    ("div", op("div"), [[1.0, 0.0], [0.0, 0.0]], [[inf, inf], [-inf, nan]]),
    ("logaddexp", op("logaddexp"), [[-inf, -inf, inf, 0.0], [-inf, 0.0, 0.0, 0.0]],
     [[nan, 0, 1, 0.5], [nan, 1, 0, 0.5]]),
    # jumps
    ("sign", op("sign"), [[0.0, -1.0]], [[0, 0]]),
    ("floor", op("floor"), [[0.0, 1.0, 0.5]], [[0, 0, 0]]),
    ("ceil", op("ceil"), [[0.0, 1.0, 0.5]], [[0, 0, 0]]),
    ("trunc", op("trunc"), [[0.0, 1.0, 0.5]], [[0, 0, 0]]),
    ("round", op("round"), [[0.0, 1.0, 0.5]], [[0, 0, 0]]),
    ("round", op("round", decimals=1), [[0.25]], [[0]]),
    ("frac", op("frac"), [[0.0, 1.0, 0.5]], [[1, 1, 1]]),
    ("floor_divide", op("div", rounding_mode="floor"), [[4.0], [2.0]], [[0], [0]]),
    ("floored_quotient", lambda m, x, y: m.div(x, y, rounding_mode="floor") if m is not cygrad else
     m.array_api.floor_divide(x, y), [[4.0, inf], [2.0, 2.0]], [[0, 0], [0, 0]]),
    ("trunc_divide", op("div", rounding_mode="trunc"), [[4.0], [2.0]], [[0], [0]]),
    ("fmod", op("fmod"), [[4.0, -3.0, 0.0, 3.0], [2.0, 2.0, 2.0, 0.0]], [[1, 1, 1, 1], [-2, 1, 0, -inf]]),
    ("remainder", op("remainder"), [[4.0, -3.0, 0.0, 3.0], [2.0, 2.0, 2.0, 0.0]], [[1, 1, 1, 1], [-2, 2, 0, -inf]]),
    ("where", lambda m, x, y: m.where(x > y, x, y), [[1.0, 2.0], [1.0, 1.0]], [[0, 1], [1, 0]]),
    ("where", lambda m, x: m.where(x > 0, m.sqrt(x), 0 * x), [[0.0]], [[nan]]),
    # bounds and ties
    ("clamp_between", op("clamp", 0.0, 1.0), [[0.0, 1.0, -1.0, 2.0]], [[1, 1, 0, 0]]),
    ("clamp_between", op("clamp"), [[0.0, 1.0, -1.0, 2.0, 0.5], [0.0, 0.0, 0.0, 0.0, 2.0], [1.0] * 5],
     [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]),
    ("clamp_min", op("clamp", min=0.0), [[0.0, -1.0]], [[1, 0]]),
    ("clamp_min", op("clamp_min"), [[0.0, -1.0], [0.0, 0.0]], [[1, 0], [0, 1]]),
    ("clamp_max", op("clamp", max=0.0), [[0.0, 1.0]], [[1, 0]]),
    ("clamp_max", op("clamp_max"), [[0.0, 1.0], [0.0, 0.0]], [[1, 0], [0, 1]]),
    ("maximum", op("maximum"), [[1.0, 2.0, nan], [1.0, 1.0, 1.0]], [[0.5, 1, 1], [0.5, 0, 1]]),
    ("minimum", op("minimum"), [[1.0, 2.0, nan], [1.0, 1.0, 1.0]], [[0.5, 0, 1], [0.5, 1, 1]]),
    ("fmax", op("fmax"), [[1.0, nan, 1.0], [1.0, 1.0, nan]], [[1, 0, 1], [0, 1, 0]]),
    ("fmin", op("fmin"), [[1.0, nan, 1.0], [1.0, 1.0, nan]], [[1, 0, 1], [0, 1, 0]]),
    ("amax", op("amax"), [[1.0, 3.0, 3.0, 1.0]], [[0, 0.5, 0.5, 0]]),
    ("amax", op("amax", 1), [[[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]]], [[[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]]),
    ("amin", op("amin"), [[1.0, 3.0, 3.0, 1.0]], [[0.5, 0, 0, 0.5]]),
    ("max_all", op("max"), [[1.0, 3.0, 3.0, 1.0]], [[0, 0.5, 0.5, 0]]),
    ("max_all", op("max"), [[1.0, math.nan, 1.0, math.nan]], [[0, 0.5, 0, 0.5]]),
    ("max_all", op("max"), [[math.nan, math.nan, math.nan]], [[1 / 3, 1 / 3, 1 / 3]]),
    ("min_all", op("min"), [[1.0, 3.0, 3.0, 1.0]], [[0.5, 0, 0, 0.5]]),
    ("min_all", op("min"), [[1.0, math.nan, 1.0, math.nan]], [[0, 0.5, 0, 0.5]]),
    ("median", op("median"), [[1.0, math.nan, 1.0, math.nan]], [[0, 0.5, 0, 0.5]]),
    ("max_dim", weighted(op("max", 0)), [[1.0, 3.0, 3.0, 1.0]], [[0, 1, 0, 0]]),
    ("min_dim", weighted(op("min", 0)), [[1.0, 3.0, 3.0, 1.0]], [[1, 0, 0, 0]]),
    ("sort", weighted(op("sort", stable=True)), [[1.0, 1.0, 0.0]], [[2, 3, 1]]),
    ("topk", weighted(op("topk", 2)), [[2.0, 2.0, 2.0]], [[1, 2, 0]]),
    # powers, products, norms, spread
    *(("pow", lambda m, x, exponent=exponent: x ** exponent, [[0.0]], [[gradient]])
      for exponent, gradient in [(0, 0), (0.5, inf), (1, 1), (1.5, 0), (2, 0), (3, 0), (-1, -inf)]),
    ("pow_tensor", op("pow"), [[0.0, 0.0, 0.0, 0.0, 0.0, -1.0], [0.0, 0.5, 1.0, 2.0, -1.0, 2.0]],
     [[0, inf, 1, 0, -inf, -2], [0, 0, 0, 0, -inf, nan]]),
    ("pow_tensor", lambda m, y: 0.0 ** y, [[0.0, 1.0, 2.0, -1.0]], [[0, 0, 0, -inf]]),
    ("prod", op("prod"), [[2.0, 0.0, 3.0]], [[0, 6, 0]]),
    ("prod", op("prod"), [[0.0, 0.0, 3.0]], [[0, 0, 0]]),
    ("prod", op("prod", 1), [[[2.0, 0.0, 3.0], [0.0, 0.0, 3.0]]], [[[0, 6, 0], [0, 0, 0]]]),
    ("prod", part(op("prod")), [[0j, 1 + 1j, 2j]], [[-2 - 2j, 0, 0]]),
    ("cumprod", op("cumprod", 0), [[2.0, 0.0, 3.0, 4.0]], [[1, 32, 0, 0]]),
    ("cumprod", op("cumprod", 0), [[2.0, 0.0, 3.0, 0.0, 4.0]], [[1, 8, 0, 0, 0]]),
    *(("norm", op("norm", p), [[0.0, 0.0]], [[0, 0]]) for p in (0.5, 1, 1.5, 2, 3, inf, -inf, -1)),
    *(("norm", op("norm", p), [[0j, 0j]], [[0, 0]]) for p in (0.5, 1, 1.5, 2, 3, inf, -inf)),
    ("norm", lambda m, x: m.norm(x, 0) + 0 * x.sum(), [[0.0, 3.0]], [[0, 0]]),
    ("norm", op("norm", 1), [[3.0, -3.0, 0.0]], [[1, -1, 0]]),
    ("norm", op("norm", inf), [[3.0, -3.0, 0.0]], [[0.5, -0.5, 0]]),
    *(("norm", op("norm", p), [[3.0, -3.0, 0.0]], [[0, 0, 0]]) for p in (-0.5, -1, -2)),
    ("norm", op("norm", -inf), [[3.0, -3.0]], [[0.5, -0.5]]),
    ("norm", op("norm", -inf), [[3.0, -3.0, 0.0]], [[0, 0, 0]]),
    ("norm", op("norm", 2, 1), [[[0.0, 0.0], [3.0, 4.0]]], [[[0, 0], [0.6, 0.8]]]),
    ("std", op("std"), [[2.0]], [[nan]]),
    ("std", op("std"), [[2.0, 2.0]], [[0, 0]]),
    ("std", op("std"), [[1j, 1j]], [[0, 0]]),
    ("std", op("std", dim=0, correction=0), [[2.0]], [[0]]),
    ("var", op("var"), [[2.0]], [[nan]]),
    # elements chosen by their order
    ("kthvalue", weighted(op("kthvalue", 2)), [[1.0, 3.0, 2.0]], [[0, 0, 1]]),
    ("median_dim", weighted(op("median", 0)), [[1.0, 3.0, 2.0]], [[0, 0, 1]]),
    ("median_of_all", op("median"), [[1.0, 2.0, 2.0, 3.0]], [[0, 0.5, 0.5, 0]]),
    # a gradient that is nan concerns those that were chosen alone
    ("max_all", lambda m, x: m.max(x) * nan, [[1.0, 3.0, -1.0]], [[0, nan, 0]]),
    ("min_all", lambda m, x: m.min(x) * nan, [[1.0, 3.0, -1.0]], [[0, 0, nan]]),
    ("median_of_all", lambda m, x: m.median(x) * nan, [[1.0, 3.0, -1.0]], [[nan, 0, 0]]),
    ("nanmedian_dim", weighted(op("nanmedian", 0)), [[nan, 1.0, 3.0, 2.0]], [[0, 0, 0, 1]]),
    ("nansum", lambda m, x: m.nansum(x) * 2, [[nan, 1.0, nan, 2.0]], [[0, 2, 0, 2]]),
    ("mode", weighted(op("mode")), [[2.0, 2.0, 1.0]], [[0, 1, 0]]),
    ("cummax", weighted(op("cummax", 0)), [[1.0, 3.0, 3.0, 0.0]], [[1, 2, 7, 0]]),
    ("cummin", weighted(op("cummin", 0)), [[3.0, 1.0, 1.0, 2.0]], [[1, 2, 7, 0]]),
    ("scatter_amax", scattered("amax"), [[3.0, 0.0], [3.0, 3.0]], [[1 / 3, 1], [1 / 3, 1 / 3]]),
    ("scatter_amin", scattered("amin"), [[3.0, 0.0], [3.0, 4.0]], [[0.5, 1], [0.5, 0]]),
    ("scatter_prod", scattered("prod"), [[2.0, 1.0], [0.0, 3.0]], [[0, 1], [6, 0]]),
    # special functions
    ("lgamma", op("lgamma"), [[0.0, -1.0]], [[-inf, nan]]),
    ("i0e", lambda m, x: m.special.i0e(x), [[0.0]], [[0]]),
    ("i1e", lambda m, x: m.special.i1e(x), [[0.0]], [[0.5]]),
    ("entr", lambda m, x: m.special.entr(x), [[0.0, -1.0]], [[inf, nan]]),
    ("xlog1py", lambda m, x, y: m.special.xlog1py(x, y), [[0.0, 1.0], [-1.0, -1.0]], [[0, -inf], [nan, inf]]),
    ("logit_plain", op("logit"), [[0.0, 1.0, 2.0]], [[inf, inf, nan]]),
    ("logit_between", op("logit", 0.25), [[0.0, 0.25, 0.5]], [[0, 16 / 3, 4]]),
    ("logaddexp2", op("logaddexp2"), [[-inf, -inf, inf], [-inf, 0.0, 0.0]], [[nan, 0, 1], [nan, 1, 0]]),
    ("replace_non_finite", op("nan_to_num"), [[nan, inf, 1.0]], [[0, 0, 1]]),
    # exponentials of infinities
    ("logsumexp", op("logsumexp", 0), [[-inf, 0.0]], [[0, 1]]),
    ("logsumexp", op("logsumexp", 0), [[-inf, -inf]], [[nan, nan]]),
    ("logsumexp", op("logsumexp", 0), [[inf, 0.0]], [[nan, 0]]),
    ("softmax", weighted(op("softmax", 0)), [[-inf, 0.0]], [[0, 0]]),
    ("softmax", op("softmax", 0), [[-inf, -inf]], [[nan, nan]]),
    ("log_softmax", op("log_softmax", 0), [[-inf, 0.0]], [[1, -1]]),
    ("log_softmax", op("log_softmax", 0), [[-inf, -inf]], [[nan, nan]]),
]
EVERY_KINK = pytest.mark.parametrize(
    ("function", "values", "expected"), [entry[1:] for entry in KINKS],
    ids=[f"{number}-{entry[0]}" for number, entry in enumerate(KINKS)])


def gradients(library, differentiate, function, values):
    """The gradients of the sum of a function's result as arrays."""
    kind = library.complex128 if np.iscomplexobj(values[0]) else library.float64
    places = [library.tensor(value, dtype=kind, requires_grad=True) for value in values]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*degrees of freedom")
        found = differentiate(function(library, *places).sum(), places)
    return [gradient.numpy() for gradient in found]


@EVERY_KINK
def test_gradient_at_a_kink(function, values, expected):
    for found, wanted in zip(gradients(cygrad, grad, function, values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


@EVERY_KINK
def test_recorded_backward_gives_the_same(function, values, expected):
    """The formula that `create_graph=True` records is the one that runs without."""
    def differentiate(output, places):
        return [gradient.detach() for gradient in grad(output, places, create_graph=True)]

    for found, wanted in zip(gradients(cygrad, differentiate, function, values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


@EVERY_KINK
def test_as_the_peer(function, values, expected):
    torch = pytest.importorskip("torch")
    for found, wanted in zip(gradients(torch, torch.autograd.grad, function, values), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=0)   # its 1e-12 is a float32


def test_polar_has_its_derivative_at_zero():
    """The real part of polar(r, 0) is r, so its derivative is 1 at r = 0 too; PyTorch has 0."""
    radius, angle = (cygrad.tensor([0.0], requires_grad=True) for _ in range(2))
    found = grad(cygrad.polar(radius, angle).real.sum(), (radius, angle))
    assert [gradient.tolist() for gradient in found] == [[1.0], [0.0]]


def test_every_documented_kink_is_tested():
    operator_table = pytest.importorskip("build_tools.operator_table", reason="build_tools is only in the source tree")
    rows = operator_table.read_table(ROOT / "cygrad" / "_core" / "table" / "ops")
    documented = {name for family in rows.values() for name, row in family.items() if "kink" in row["row"]}
    assert len(documented) > 50
    assert not documented - {entry[0] for entry in KINKS}
