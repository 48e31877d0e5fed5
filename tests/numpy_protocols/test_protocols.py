"""NumPy's protocols: precedence, errors, overhead."""

import array
import math
import operator
import statistics
import struct

import numpy as np
import pytest
from scipy import special

import cygrad
from tests.tools import leaf, run_program


def test_operators_between_arrays_and_tensors_are_those_of_the_tensor():
    x = cygrad.tensor([1.0, 2.0])
    assert (np.float64(2) * x).dtype is (x * np.float64(2)).dtype is cygrad.float32
    assert (np.arange(2) * x).dtype is (x * np.arange(2)).dtype is cygrad.float32
    assert np.multiply(np.float64(2), x).dtype is cygrad.float32
    assert (np.array([1.5, 2.5]) > x).tolist() == [True, True]
    assert (np.array([3.0, 1.0]) - x).tolist() == [2.0, -1.0]
    assert (np.eye(2, dtype=np.float32) @ x).tolist() == [1.0, 2.0]
    assert (np.array([2.0, 3.0]) ** x).tolist() == [2.0, 9.0]


def test_among_tensors_and_numbers_numpy_promotes():
    single, double, whole = cygrad.ones(2), cygrad.tensor(2.0, dtype=cygrad.float64), cygrad.arange(2)
    assert np.multiply(single, double).dtype is cygrad.float64           # 0 dimensions are no less than others
    assert np.add(whole, 0.5).dtype is cygrad.float64
    assert np.add(single, 0.5).dtype is np.maximum(single, 0.5).dtype is cygrad.float32
    assert np.sin(whole).dtype is np.divide(whole, 2).dtype is np.mean(whole).dtype is cygrad.float64
    assert np.concatenate([single, whole]).dtype is np.where(single > 0, single, whole).dtype is cygrad.float64


def test_a_change_in_place_of_an_array_is_one():
    array = np.ones(2)
    array += cygrad.tensor([1.0, 2.0])
    assert array.tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"numpy\.add: out is an ndarray, in which the result would lose its history"):
        array += leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="cannot be cast to out"):
        np.add(leaf([1.0]), 1.0, out=cygrad.zeros(1, dtype=cygrad.int64))
    with pytest.raises(ValueError, match="wrong shape"):
        np.add(leaf(1.0), 1.0, out=cygrad.zeros(2))


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: np.spacing(x), "spacing"), (lambda x: np.histogram2d(x, x), "histogram2d"),
    (lambda x: np.setdiff1d(x, x), "setdiff1d"), (lambda x: np.save("x", x), "save"),
    (lambda x: np.vecdot.outer(x, x), "outer"), (lambda x: special.struve(1.0, x), "struve"),
    (lambda x: np.add(x, 1.0, axes=[0]), "axes"), (lambda x: np.array2string(x), "array2string"),
    (lambda x: np.nanmedian(x, out=3), "out must be"), (lambda x: np.quantile(x, 0.5, weights=x), "weights"),
    (lambda x: np.pad(x, 1, "mean"), "mean"), (lambda x: np.quantile(x, 0.5, method="inverted_cdf"), "inverted_cdf"),
])
def test_what_has_no_counterpart_is_refused_by_name(call, name):
    with pytest.raises(TypeError, match=name):
        call(leaf(1.0, 2.0))


def test_without_a_history_numpy_computes_what_has_no_counterpart():
    x = cygrad.tensor([1.0, 2.0], dtype=cygrad.float64)
    assert np.spacing(x).tolist() == np.spacing(np.array([1.0, 2.0])).tolist()
    assert np.setdiff1d(x, [1.0]).tolist() == [2.0]
    assert np.array2string(x) == "[1. 2.]"
    with cygrad.no_grad():
        assert np.setdiff1d(leaf(1.0, 2.0), [1.0]).tolist() == [2.0]


def test_no_history_is_lost_in_an_array():
    x = leaf(1.0, 2.0)
    for call in (lambda: np.asarray(x), lambda: np.array([x[0], x[1]]), lambda: np.sum([x, x]),
                 lambda: np.zeros(2) @ [x, x], lambda: np.zeros(2).__setitem__(slice(None), x)):
        with pytest.raises(RuntimeError, match="lose its history"):
            call()
    assert np.asarray(x.detach()).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("kind", [float, int, complex])
def test_no_history_is_lost_by_an_assignment_to_one_element(kind):
    x, made = leaf(1.0, 2.0), np.zeros((2, 2), kind)
    for target, place, value in ((made, (0, 0), x[0]), (made, (0, 0), x[1] * 2)):
        with pytest.raises((RuntimeError, ValueError)) as caught:       # NumPy's own may have ours as its cause
            target[place] = value
        text = f"{caught.value} {caught.value.__cause__}"
        assert f"{kind.__name__}: a tensor that requires grad would lose its history" in text
    with pytest.raises((RuntimeError, ValueError)):
        made[0, 0] += x[0]
    with pytest.raises((RuntimeError, ValueError)):
        made.flat[1] = x[0]
    made[0, 0] = x[0].item()
    made[0, 1] = kind(x[1])                                         # conversion to a number
    with cygrad.no_grad():
        made[1, 0] = x[0]
    made[1, 1] = x.detach()[1]
    assert made.tolist() == [[1, 2], [1, 2]]
    kept = {float(x[0]): x[0]}
    kept[float(x[1])] = float(x[1])
    assert list(kept) == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="float: a tensor that requires grad would lose its history"):
        array.array("d", [0.0])[0] = x[0]


def test_whoever_asks_for_a_number_gets_it():
    x, many, place = leaf(2.0).sum(), leaf(1.0, 2.0), cygrad.tensor(1)
    losses, kept, made = [0.0, 0.0, 0.0], {}, np.zeros(3)
    for _ in range(100):                                    # by then Python has specialized its instructions
        assert (float(x), int(x), complex(x), math.exp2(x), math.floor(x), f"{float(x):.1f}", bool(x)) == (
            2, 2, 2, 4, 2, "2.0", True)
        assert operator.mod("%d", x) == "2"
        assert list(range(place)) == [0] and losses[place] == losses[place:][0]
        assert struct.unpack("d", struct.pack("d", x)) == (2,)
        losses[0] = x
        losses[place] = float(x)
        losses[:2] = map(float, many)
        losses[::2] = map(float, many)
        losses[2], kept[x] = float(x), 1
        kept["mean"] = statistics.mean(map(float, many))
        made[0] = made[place] = float(x)
        made[1:] = [int(x), math.sin(x)]
        made[0] += float(x)
        made[made > 3] = x.item()
    assert losses == [1, 2, 2] and kept["mean"] == 1.5 and made[1] == 2


def test_special_functions_of_scipy():
    x = leaf(0.2, 0.7)
    for name in ("erf", "erfc", "expit", "gammaln", "digamma", "ndtr", "log_ndtr", "i0e", "j1", "xlogy"):
        arguments = (x, x) if name == "xlogy" else (x,)
        function = getattr(special, name)
        expected = function(*[x.detach().numpy()] * len(arguments))
        np.testing.assert_allclose(function(*arguments).detach().numpy(), expected)
        assert cygrad.autograd.gradcheck(function, arguments)


def test_elements_that_a_mask_leaves_out_get_no_nan():
    x = leaf(0.0, 4.0)
    np.sum(np.log(x, where=x > 0, out=np.zeros_like(x))).backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_forward_mode_and_second_derivatives_go_through():
    x = leaf(0.3, 0.6)
    slope, = cygrad.autograd.grad(np.sum(np.sin(x) ** 2), x, create_graph=True)
    curvature, = cygrad.autograd.grad(np.sum(slope), x)
    np.testing.assert_allclose(curvature.numpy(), 2 * np.cos(2 * x.detach().numpy()))
    direction = cygrad.ones(2, dtype=cygrad.float64)
    _, tangent = cygrad.autograd.functional.jvp(lambda v: np.cumsum(np.exp(v)), x.detach(), direction)
    np.testing.assert_allclose(tangent.numpy(), np.cumsum(np.exp(x.detach().numpy())))


def test_other_classes_of_arrays_are_asked_first():
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return "ufunc"

        def __array_function__(self, func, types, args, kwargs):
            return "function"

    assert np.add.outer(leaf(1.0), Other()) == "ufunc"
    assert np.dot(leaf(1.0), Other()) == "function"


def test_subclasses_keep_their_class():
    class Mine(cygrad.Tensor):
        pass

    assert type(np.sin(cygrad.ones(2).as_subclass(Mine))) is Mine


def test_the_protocols_are_loaded_by_the_first_call():
    program = """
import sys, numpy, cygrad
x = cygrad.ones(2)
assert not any(name.startswith("cygrad.numpy_protocols") for name in sys.modules)
print(numpy.sum(x).item(), numpy.exp(x * 0).tolist())
"""
    assert run_program(program) == ["2.0", "[1.0,", "1.0]"]


@pytest.mark.parametrize("power", [np.power, operator.pow, cygrad.pow, cygrad.float_power, cygrad.Tensor.pow],
                         ids=lambda function: function.__name__)
def test_an_array_is_an_exponent(power):
    base, exponent = np.array([1.0, 2.0, 3.0]), np.array([[2.0], [-1.0]])
    x = cygrad.tensor(base, requires_grad=True)
    result = power(x, exponent)
    assert result.tolist() == (base ** exponent).tolist()
    gradient, = cygrad.autograd.grad(result.sum(), x)
    np.testing.assert_allclose(gradient.tolist(), (exponent * base ** (exponent - 1)).sum(0))
    assert power(x, np.array(2.0)).tolist() == [1, 4, 9]


def test_an_array_is_an_exponent_in_place():
    x = cygrad.tensor([1.0, 2.0, 3.0])
    x **= np.array([2.0, 1.0, 0.0])
    assert x.tolist() == x.pow_(np.array([1.0, 1.0, 5.0])).tolist() == [1, 2, 1]


@pytest.mark.parametrize("compare", [
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, np.less, np.less_equal, np.greater,
    np.greater_equal, np.equal, np.not_equal], ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint64, np.int64])
def test_integers_compare_with_numbers_that_their_dtype_does_not_hold(compare, dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, 1, limits.max], dtype)
    for number in (-1, -129, 127, 128, 255, 256, 70000, -2 ** 40, 2 ** 40):
        assert compare(cygrad.tensor(values), number).tolist() == [bool(compare(int(v), number)) for v in values]
        assert compare(number, cygrad.tensor(values)).tolist() == [bool(compare(number, int(v))) for v in values]


@pytest.mark.parametrize("ufunc", [
    np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or, np.subtract, np.hypot, np.logical_xor],
    ids=lambda ufunc: ufunc.__name__)
@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [1, 2, 0], [[3, 1], [2, 5]], []], ids=str)
def test_reductions_begin_with_the_initial_value_in_their_dtype(ufunc, values):
    array = np.array(values)
    for initial in (0, 10, 2.5, -1, True, np.float64(2.5)):
        for options in ({}, {"keepdims": True}, {"axis": -1}):
            expected = ufunc.reduce(array, initial=initial, **options)
            found = ufunc.reduce(cygrad.tensor(array), initial=initial, **options)
            np.testing.assert_allclose(found.numpy(), expected)
            assert found.dtype.is_floating_point == (expected.dtype.kind == "f")


def test_an_initial_value_that_requires_grad():
    start = cygrad.tensor(2.0, requires_grad=True)
    np.multiply.reduce(cygrad.tensor([3.0, 4.0]), initial=start).backward()
    assert start.grad.item() == 12
