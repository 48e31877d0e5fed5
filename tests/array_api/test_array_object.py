"""Array object of the standard: methods, parameters, operators, indices, and interoperability."""

import inspect
import itertools
import operator

import array_api_strict as strict
import numpy as np
import pytest

import cygrad
from cygrad import array_api as ours
from tests.array_api.test_against_strict import ALL, COMPLEX, INTEGERS, REALS, array

VALUES = {"b": [True, False, True], "i": [2, 3, 7], "u": [2, 3, 7], "f": [0.5, 1.5, 3.0], "c": [0.5 + 1j, 2j, 1.5]}
OPERATORS = [getattr(operator, name) for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "eq", "ne",
    "lt", "le", "gt", "ge")]


def values(dtype):
    return np.array(VALUES[np.dtype(dtype).kind], dtype)


def same(function, *arguments):
    """Return whether the standard has this; if so, ours gives the same dtype, shape and elements."""
    try:
        with np.errstate(all="ignore"):
            expected = array(function(*[strict.asarray(value.copy()) if isinstance(value, np.ndarray) else value
                                        for value in arguments]))
    except (TypeError, ValueError, OverflowError, IndexError):
        return False
    found = array(function(*[ours.asarray(value.copy()) if isinstance(value, np.ndarray) else value
                             for value in arguments]))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    return True


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_promote_as_the_standard_does(function):
    inplace = getattr(operator, f"i{function.__name__.removesuffix('_')}", None)
    known = 0
    for first, second in itertools.product(ALL, ALL):
        known += same(function, values(first), values(second))
        if inplace is not None:
            same(inplace, values(first), values(second))
        same(function, *map(np.asarray, values(first)[:2]))             # of no dimensions, of one dtype
    assert known > len(ALL)


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_take_numbers(function):
    known = 0
    for dtype in ALL:
        for number in (True, 2, 1.5, 2 + 1j):
            if isinstance(number, complex) and function.__name__ in ("lt", "le", "gt", "ge"):
                continue                                                # complex numbers have no order
            known += same(function, values(dtype), number) + same(function, number, values(dtype))
    assert known
    large = np.array([2 ** 63 + 5, 3, 2 ** 64 - 1], np.uint64)
    if function is not operator.truediv and function not in (operator.lshift, operator.rshift):
        assert same(function, large, 2 ** 63 + 1) and same(function, 2 ** 63 + 1, large)


def test_numbers_that_no_integer_of_64_bits_holds_are_refused():
    x = ours.asarray([1], dtype=ours.uint64)
    for call in (lambda: x + 2 ** 64, lambda: cygrad.ones(2) + 2 ** 63, lambda: ours.asarray([1]) + 2 ** 63):
        with pytest.raises(OverflowError, match="does not fit 64 bits"):
            call()
    x += 2 ** 63
    assert x.tolist() == [2 ** 63 + 1] and x.dtype is ours.uint64


# Numbers that int64 does not hold among them.
LARGE = np.array([3, 2 ** 64 - 1, 0, 2 ** 63, 5, 2 ** 63 - 1], np.uint64)


@pytest.mark.parametrize("function", [
    lambda x, xp: xp.sort(x), lambda x, xp: xp.sort(x, descending=True), lambda x, xp: xp.argsort(x),
    lambda x, xp: xp.max(x), lambda x, xp: xp.min(x), lambda x, xp: xp.argmax(x), lambda x, xp: xp.argmin(x),
    lambda x, xp: xp.searchsorted(xp.sort(x), x), lambda x, xp: xp.matmul(x, x), lambda x, xp: xp.isin(x, x[:2]),
    lambda x, xp: xp.tensordot(x, x, axes=1), lambda x, xp: xp.vecdot(x, x), lambda x, xp: xp.linalg.outer(x, x),
    lambda x, xp: xp.sum(x), lambda x, xp: xp.prod(x), lambda x, xp: xp.cumulative_sum(x), lambda x, xp: xp.diff(x),
    lambda x, xp: xp.clip(x, x[4], x[3]), lambda x, xp: xp.pow(x, x), lambda x, xp: xp.floor_divide(x, x[4]),
    lambda x, xp: xp.remainder(x, x[4]), lambda x, xp: xp.where(x > x[4], x, x[0]), lambda x, xp: xp.unique_values(x),
])
def test_large_unsigned_integers(function):
    assert same(lambda x: function(x, ours if isinstance(x, cygrad.Tensor) else strict), LARGE)


def test_what_numpy_does_with_large_unsigned_integers():
    x = cygrad.asarray(LARGE)
    assert np.sort(x).tolist() == sorted(LARGE.tolist()) and np.argsort(x).tolist() == np.argsort(LARGE).tolist()
    assert np.max(x).item() == 2 ** 64 - 1 and np.matmul(x, x).item() == int(LARGE @ LARGE)


def test_large_unsigned_integers_are_written():
    x = ours.asarray(LARGE, copy=True)
    x[x > LARGE[4]] = 2 ** 64 - 2
    x[0] = 2 ** 63 + 1
    assert x.tolist() == [2 ** 63 + 1, 2 ** 64 - 2, 0, 2 ** 64 - 2, 5, 2 ** 64 - 2]


def test_reductions_without_elements_along_other_axes():
    for name in ("max", "min", "argmax", "argmin"):
        assert same(lambda x, name=name: getattr(ours if isinstance(x, cygrad.Tensor) else strict, name)(x, axis=0),
                    np.ones((2, 0), np.float32))
        with pytest.raises(ValueError, match=r"zero-size array|empty array"):
            getattr(ours, name)(ours.ones((2, 0)), axis=1)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_masks(shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for sizes in ((), (3,), (2,), (2, 3), (0,), (0, 3), (2, 0), (1, 3)):
        for value in (True, False):
            mask = np.full(sizes, value)

            def written(x, mask=mask):
                x[mask if isinstance(x, np.ndarray) else type(x).__array_namespace__(x).asarray(mask)] = 7
                return x

            if len(sizes) > len(shape) or any(size not in (0, own) for size, own in zip(sizes, shape, strict=False)):
                with pytest.raises(IndexError):
                    ours.asarray(x)[ours.asarray(mask)]
            else:
                assert same(operator.getitem, x, mask)
                assert same(written, x)


def test_slices_and_integers():
    x = np.arange(12).reshape(3, 4)
    for key in ((0, 0), (-1, 2), (slice(None), 1), (..., -1), (slice(None, None, -1), 0), (..., slice(None, None, 2)),
                (slice(2, 0, -1), slice(1, 3)), (0, slice(3, None, -2)), (None, 0, 0), (slice(0, 0), 0)):
        assert same(lambda x, key=key: x[key], x)
        if None not in key:
            def written(x, key=key):
                x[key] = 7
                return x
            assert same(written, x)


def test_methods_have_the_parameters_of_the_standard():
    assert str(inspect.signature(ours.ones(1).to_device)) == "(device, /, *, stream=None)"
    assert str(inspect.signature(ours.ones(1).__array_namespace__)) == "(*, api_version=None)"
    parameters = inspect.signature(ours.ones(1).__dlpack__).parameters
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
               for name in ("stream", "max_version", "dl_device", "copy"))
    x = ours.ones((2, 3))
    assert x.mT.shape == x.T.shape == (3, 2) and x.device == ours.__array_namespace_info__().default_device()
    theirs = {name for name in dir(strict.ones(1)) if not name.startswith("_") or name.startswith("__")}
    assert theirs - set(dir(x)) <= {
        "__annotations__", "__buffer__", "__imatmul__", "__module__", "__slots__", "__weakref__"}


def test_elements_as_numbers():
    for dtype in INTEGERS:
        x = ours.asarray(3, dtype=getattr(ours, dtype))
        assert int(x) == x.__index__() == 3 and [10, 11, 12, 13][x] == 13
    for dtype in REALS + COMPLEX:
        assert complex(ours.asarray(1.5, dtype=getattr(ours, dtype))) == 1.5
    assert bool(ours.asarray(True)) is True and float(ours.asarray(1.5)) == 1.5
    with pytest.raises(TypeError, match="only integer tensors"):
        ours.asarray(1.0).__index__()


def test_memory_of_other_libraries():
    made = np.arange(3.0)
    shared = ours.from_dlpack(made)
    shared[0] = 5
    assert made[0] == 5 and ours.from_dlpack(made, copy=True, device=shared.device) is not shared
    for copy, version in itertools.product((None, True, False), ((0, 0), (1, 0), (2, 0))):
        for dtype in ALL:
            x = ours.ones(2, dtype=getattr(ours, dtype))
            x.__dlpack__(copy=copy, max_version=version, dl_device=(1, 0))
            y = ours.from_dlpack(x, copy=copy)
            assert y.dtype is x.dtype and bool(ours.all(y == x))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


GRID = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5]
# sign has a separate test: strict divides infinite numbers.
UNARY = [name for name in strict.__all__ if inspect.isfunction(getattr(strict, name)) and list(
    inspect.signature(getattr(strict, name)).parameters) == ["x"] and not name.startswith("unique")
    and name not in ("matrix_transpose", "nonzero", "sign")]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_special_values_of_complex_numbers(name, dtype):
    x = np.array([complex(real, imaginary) for real in GRID for imaginary in GRID], dtype)
    try:
        with np.errstate(all="ignore"):
            expected = array(getattr(strict, name)(strict.asarray(x)))
    except TypeError:
        return                                                          # not for complex numbers
    found = array(getattr(ours, name)(ours.asarray(x)))
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(expected, part)
        np.testing.assert_allclose(a, b, rtol=tolerance)
        np.testing.assert_array_equal(np.signbit(a)[~np.isnan(b)], np.signbit(b)[~np.isnan(b)])


def test_signs_of_complex_numbers():
    x = ours.asarray([complex("nan+infj"), complex("1+nanj"), 0j, 3 - 4j], dtype=ours.complex128)
    found = ours.sign(x).numpy()
    assert np.isnan(found.real[:2]).all() and np.isnan(found.imag[:2]).all()
    np.testing.assert_allclose(found[2:], [0, 0.6 - 0.8j])
