"""Operators of the namespace's arrays: promotion, division at infinity, and which tensors follow the standard."""

import itertools
import math
import operator
import pickle

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cygrad
from cygrad import array_api as ours
from cygrad._core.dispatch.dispatch import follows_standard
from tests.array_api.test_against_strict import ALL, BOOLS, COMPLEX, INTEGERS, NUMERIC, REAL_NUMERIC, REALS, array

# Operator -> the function of the standard, dtypes that it takes, elements of the left and the right operand.
ARITHMETIC = {
    "add": ("add", NUMERIC), "sub": ("subtract", NUMERIC), "mul": ("multiply", NUMERIC),
    "truediv": ("divide", REALS + COMPLEX), "floordiv": ("floor_divide", REAL_NUMERIC),
    "mod": ("remainder", REAL_NUMERIC), "pow": ("pow", NUMERIC),
    **{f"{name}_": (f"bitwise_{name}", BOOLS + INTEGERS) for name in ("and", "or")},
    "xor": ("bitwise_xor", BOOLS + INTEGERS),
    "lshift": ("bitwise_left_shift", INTEGERS), "rshift": ("bitwise_right_shift", INTEGERS),
}
COMPARISONS = {"eq": ("equal", ALL), "ne": ("not_equal", ALL), "lt": ("less", REAL_NUMERIC),
               "le": ("less_equal", REAL_NUMERIC), "gt": ("greater", REAL_NUMERIC),
               "ge": ("greater_equal", REAL_NUMERIC)}
OPERATORS = ARITHMETIC | COMPARISONS


def promoted(*dtypes):
    """What the standard promotes two dtypes to, or None."""
    try:
        return np.dtype(strict.result_type(*[getattr(strict, name) for name in dtypes])._np_dtype).name
    except TypeError:
        return None


PAIRS = [pair for pair in itertools.product(ALL, ALL) if promoted(*pair)]
elements = {"b": st.booleans(), "i": st.integers(1, 3), "u": st.integers(1, 3),
            "f": st.sampled_from([0.1, 1.0, 1.1, 2.5, 3.0]), "c": st.sampled_from([0.1 + 1j, 1.0, 2.5 - 0.7j])}


@st.composite
def operands(draw, dtypes, inplace=False):
    pair = draw(st.sampled_from([pair for pair in PAIRS if set(pair) <= set(dtypes)
                                 and (not inplace or promoted(*pair) == pair[0])]))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=0, max_dims=3, max_side=3).filter(
        lambda shapes: not inplace or shapes.result_shape == shapes.input_shapes[0])).input_shapes
    return [draw(hnp.arrays(dtype, shape, elements=elements[np.dtype(dtype).kind], fill=st.nothing()))
            for dtype, shape in zip(pair, shapes, strict=True)]


def compare(found, expected):
    assert isinstance(found, cygrad.Tensor) and follows_standard(found)
    found, expected = array(found), array(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(found, expected, rtol=1e-5 if expected.dtype.itemsize < 8 else 1e-12)
    else:
        np.testing.assert_array_equal(found, expected)


def checked(name, inplace, function):
    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(operands(OPERATORS[name][1], inplace))
    def check(drawn):
        theirs = function(*[strict.asarray(value.copy()) for value in drawn])
        compare(function(*[ours.asarray(value.copy()) for value in drawn]), theirs)

    check()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_those_of_the_standard(name):
    checked(name, False, getattr(operator, name))


@pytest.mark.parametrize("name", OPERATORS)
def test_functions_are_their_operators(name):
    @settings(max_examples=30, deadline=None, database=None, derandomize=True)
    @given(operands(OPERATORS[name][1]))
    def check(drawn):
        x, y = map(ours.asarray, drawn)
        compare(getattr(ours, OPERATORS[name][0])(x, y), getattr(operator, name)(x, y))

    check()


@pytest.mark.parametrize("name", ARITHMETIC)
def test_operators_in_place_are_those_of_the_standard(name):
    checked(name, True, getattr(operator, f"i{name.removesuffix('_')}"))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not set(pair) & set(BOOLS)])
def test_products_of_matrices_promote(pair):
    x, y = (np.arange(1, 5, dtype=dtype).reshape(2, 2) for dtype in pair)
    compare(ours.asarray(x) @ ours.asarray(y), strict.asarray(x) @ strict.asarray(y))
    compare(ours.asarray(x) @ ours.asarray(y[0]), strict.asarray(x) @ strict.asarray(y[0]))


# ---- which tensors follow the standard

WIDE = {"dtype": ours.float64}
ZERO_DIM = {
    "made": lambda: ours.asarray(2.0, **WIDE), "full": lambda: ours.full((), 2.0, **WIDE),
    "index": lambda: ours.ones((2, 2), **WIDE)[0, 1], "index by index": lambda: ours.ones((2, 2), **WIDE)[0][1],
    "empty index": lambda: ours.asarray(2.0, **WIDE)[()], "transposed": lambda: ours.ones((2, 2), **WIDE).T[0, 0],
    "reduced": lambda: ours.sum(ours.ones(2, **WIDE)), "by a method": lambda: ours.ones(2, **WIDE).sum(),
    "operator": lambda: ours.asarray(2.0, **WIDE) + ours.asarray(1.0, **WIDE), "negative": lambda: -ours.asarray(
        2.0, **WIDE), "with a number": lambda: 1 + ours.asarray(2.0, **WIDE),
    "with another": lambda: cygrad.tensor(1.0, **WIDE) * ours.asarray(2.0, **WIDE),
    "detached": lambda: ours.asarray(2.0, **WIDE).detach(), "data": lambda: ours.asarray(2.0, **WIDE).data,
    "view": lambda: ours.ones(1, **WIDE).view(()), "part": lambda: ours.ones(3, **WIDE).unbind()[1],
    "of NumPy": lambda: np.sin(ours.asarray(2.0, **WIDE)),
    "product": lambda: ours.ones(2, **WIDE) @ ours.ones(2, **WIDE),
    "of a tensor": lambda: ours.asarray(cygrad.tensor(2.0, **WIDE)),
    "same of a tensor": lambda: ours.astype(cygrad.tensor(2.0, **WIDE), ours.float64, copy=False),
    "view of a tensor": lambda: ours.reshape(cygrad.tensor([2.0], **WIDE), ()),
    "one of several": lambda: ours.broadcast_arrays(cygrad.tensor(2.0, **WIDE))[0],
    "changed": lambda: operator.iadd(ours.asarray(2.0, **WIDE), 1),
    "memory of NumPy": lambda: ours.from_dlpack(np.ones((), **{"dtype": "float64"})),
}


@pytest.mark.parametrize("name", ZERO_DIM)
@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_made_of_arrays_follows_the_standard(name, recorded):
    x = ours.ones(3, dtype=ours.float32)
    with cygrad.set_grad_enabled(recorded):
        s = ZERO_DIM[name]()
        assert s.shape == () and follows_standard(s)
        for other in (x, x.requires_grad_(recorded), cygrad.ones(3)):
            assert (s * other).dtype is (other * s).dtype is ours.float64
            assert follows_standard(s * other)
            assert bool((s == other).any()) == bool((s == other.to(ours.float64)).any())


def test_other_tensors_follow_pytorch():
    s, x = cygrad.tensor(2.0, dtype=cygrad.float64), cygrad.ones(3)
    assert ours.asarray(s) is not s and ours.reshape(s, ()) is not s
    assert (s * x).dtype is (x * s).dtype is cygrad.float32 and not follows_standard(s * x)
    assert (cygrad.tensor([math.inf]) // 2).isnan().all()
    assert not follows_standard(pickle.loads(pickle.dumps(s)))
    with pytest.raises(RuntimeError, match="dtype"):
        cygrad.ones(2, 2) @ cygrad.ones(2, dtype=cygrad.float64)


def test_an_array_is_handed_on_as_it_is():
    x = ours.ones(2)
    assert ours.asarray(x) is x and ours.astype(x, x.dtype, copy=False) is x and x.to_device(x.device) is x


def test_an_argument_that_is_the_result_shares_memory_and_history():
    leaf = cygrad.ones(2, dtype=cygrad.float64, requires_grad=True)
    same = ours.asarray(leaf)
    assert same is not leaf and same.data_ptr() == leaf.data_ptr()
    (same * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    plain = cygrad.zeros(2)
    ours.asarray(plain)[0] = 5
    assert plain.tolist() == [5, 0]
    assert cygrad.autograd.gradcheck(lambda x: ours.asarray(x) ** 2, [leaf])


def test_gradients_are_of_the_kind_of_their_tensor():
    x = ours.asarray([1.0, 2.0], dtype=ours.float64)
    x.requires_grad_()
    ours.sum(x * x).backward()
    assert follows_standard(x.grad)
    gradient, = cygrad.autograd.grad(ours.sum(x), x)
    assert (gradient[0] * ours.ones(3)).dtype is ours.float64
    leaf = cygrad.ones(2, requires_grad=True)
    leaf.sum().backward()
    assert not follows_standard(leaf.grad)


def test_gradients_through_promotion():
    s = cygrad.tensor(1.5, dtype=cygrad.float64, requires_grad=True)
    z = cygrad.tensor([1.0 + 2j, 0.5 - 1j], dtype=cygrad.complex128, requires_grad=True)
    for function in (operator.mul, operator.add, operator.truediv, operator.pow):
        assert cygrad.autograd.gradcheck(lambda a, b, f=function: f(ours.asarray(a), ours.asarray(b)), [s, z])
        assert cygrad.autograd.gradgradcheck(lambda a, b, f=function: f(ours.asarray(a), ours.asarray(b)), [s, z])
    x, y = ours.asarray(2.0, dtype=ours.float64), ours.ones(3)
    x.requires_grad_(), y.requires_grad_()
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (ours.float64, ours.float32)
    assert x.grad.item() == 3 and y.grad.tolist() == [2, 2, 2]


def test_saved_memory_and_versions_of_arrays():
    x = ours.asarray([1.0, 2.0])
    x.requires_grad_()
    y = x * 2
    z = y * y
    part = y[0]
    y += 1
    assert part.item() == 3 and y._version == part._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    before = cygrad.memory_stats()["small_in_use"]
    for _ in range(100):
        ours.ones(3)[0].detach().data.view(1)
    assert cygrad.memory_stats()["small_in_use"] == before


def test_inference_mode_frees_arrays():
    def work():
        with cygrad.inference_mode():
            x = ours.ones((2, 2), dtype=ours.float64)
            y = ours.asarray(2.0, dtype=ours.float64) * ours.ones(2)
            assert follows_standard(x[0] + x[1]) and follows_standard(-y) and follows_standard(ours.sum(x @ x))
            assert follows_standard(ours.asarray(outside)) and follows_standard(x.detach().data)

    outside = cygrad.ones(2)
    work()
    before = cygrad.memory_stats()["small_in_use"]
    for _ in range(100):
        work()
    assert cygrad.memory_stats()["small_in_use"] - before < 100


def test_compiled_functions_ask_which_rule_holds():
    compiled = cygrad.compile(lambda s, x: s * x)
    x = cygrad.ones(3)
    for _ in range(3):
        assert compiled(cygrad.tensor(2.0, dtype=cygrad.float64), x).dtype is cygrad.float32
        found = compiled(ours.asarray(2.0, dtype=ours.float64), x)
        assert found.dtype is cygrad.float64 and follows_standard(found)


def test_indices_of_uint8_are_integers():
    x = ours.asarray([5, 6, 7])
    assert x[ours.asarray([2, 0], dtype=ours.uint8)].tolist() == [7, 5]
    assert x[ours.asarray(2, dtype=ours.uint8)].item() == 7
    x[ours.asarray([1], dtype=ours.uint8)] = 0
    assert x.tolist() == [5, 0, 7]
    with pytest.warns(UserWarning, match="uint8"):
        assert cygrad.tensor([5, 6])[cygrad.tensor([0, 1], dtype=cygrad.uint8)].tolist() == [6]


# ---- quotients rounded down

# Dividend, divisor, quotient; "positive" and "negative" stand for finite numbers.
QUOTIENTS = """
    nan any nan | any nan nan | inf inf nan | inf -inf nan | -inf inf nan | -inf -inf nan | 0.0 0.0 nan | -0.0 0.0 nan
    0.0 -0.0 nan | -0.0 -0.0 nan | 0.0 positive 0.0 | -0.0 positive -0.0 | 0.0 negative -0.0 | -0.0 negative 0.0
    positive 0.0 inf | positive -0.0 -inf | negative 0.0 -inf | negative -0.0 inf | inf positive inf | inf negative -inf
    -inf positive -inf | -inf negative inf | positive inf 0.0 | positive -inf -0.0 | negative inf -0.0
    negative -inf 0.0
"""
VALUES = {"positive": [1.0, 0.3, 2.5, 1e30], "negative": [-1.0, -0.3, -2.5, -1e30],
          "any": [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -2.5]}


def inplace(x, y):
    x = ours.asarray(x, copy=True)
    x //= y
    return x


@pytest.mark.parametrize("function", [ours.floor_divide, operator.floordiv, inplace])
@pytest.mark.parametrize("dtype", REALS)
def test_quotients_at_infinities_and_zeros(function, dtype):
    def quotient(x, y):
        return function(ours.asarray(x, dtype=getattr(ours, dtype)), ours.asarray(y, dtype=getattr(ours, dtype)))

    for line in [line.strip() for row in QUOTIENTS.strip().splitlines() for line in row.split(" | ")]:
        first, second, expected = line.split()
        for a, b in itertools.product(VALUES.get(first) or [float(first)], VALUES.get(second) or [float(second)]):
            for found in (quotient(a, b).item(), quotient([a, a], [b, b])[1].item(), quotient([[a]], b).item()):
                np.testing.assert_array_equal(found, float(expected), err_msg=line)
                assert math.isnan(found) or np.signbit(found) == np.signbit(float(expected)), line


def test_quotients_with_numbers():
    x = ours.asarray([math.inf, -1.0, 7.0])
    assert (x // 2).tolist() == (x // 2.0).tolist() == ours.floor_divide(x, 2).tolist() == [math.inf, -1, 3]
    assert (x // math.inf).tolist()[1:] == [0, 0] and (1 // x).tolist() == [0, -1, 0]
    assert ours.floor_divide(7.0, x).tolist() == [0, -7, 1]
    assert (ours.asarray([7, -7]) // 2).tolist() == [3, -4]
    assert (1.0 // ours.asarray(0.1, dtype=ours.float64)).item() == 9            # exactly, not floor(1 / 0.1)


def test_quotients_have_zero_derivatives():
    x, y = (ours.asarray(value, dtype=ours.float64) for value in ([7.5, math.inf], [2.0, 2.0]))
    x.requires_grad_(), y.requires_grad_()
    (x // y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0, 0]


@pytest.mark.parametrize("function", [
    ours.pow, operator.pow, lambda x, y: operator.ipow(ours.asarray(x, copy=True), y)])
@pytest.mark.parametrize("dtype", REALS)
def test_powers_of_infinities_and_zeros_with_a_sign(function, dtype):
    x = ours.asarray([[-math.inf, -0.0], [-0.0, -math.inf]], dtype=getattr(ours, dtype))
    for exponent in (0.5, -0.5, 1.5, -1.5, 0.25, 2.0, -2.0, 3.0, -3.0):
        with np.errstate(all="ignore"):
            expected = np.power(x.numpy(), np.full((2, 2), exponent, dtype))
        for shape in ((), (1,), (2,), (2, 1), (2, 2)):
            found = function(x, ours.full(shape, exponent, dtype=x.dtype)).numpy()
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    s = ours.asarray(0.5, dtype=ours.float64)
    s.requires_grad_()
    assert cygrad.autograd.gradcheck(lambda e: ours.pow(ours.asarray([1.5, 2.0], dtype=ours.float64), e), [s])


# ---- shapes that few functions see

def test_shapes_that_the_suite_asks_for():
    x = ours.asarray([[3.0, -4.0]])
    for ord in (2, 1, -1, math.inf, -3.5):
        np.testing.assert_allclose(ours.linalg.vector_norm(x, axis=(), ord=ord).numpy(), [[3, 4]])
    assert ours.linalg.vector_norm(ours.asarray([0.0, 2.0]), axis=(), ord=0).tolist() == [0, 1]
    assert ours.linalg.solve(ours.full((1, 1, 1), 2.0), ours.ones(1)).shape == (1, 1)
    assert ours.linalg.solve(ours.eye(2)[None], ours.ones(2)).shape == (1, 2)
    for function in (ours.vecdot, ours.linalg.vecdot, np.vecdot, np.linalg.vecdot):
        with pytest.raises(ValueError, match="same length"):
            function(ours.ones((2, 1)), ours.ones((2, 3)))
        assert function(ours.ones((1, 3)), ours.ones((2, 3))).tolist() == [3, 3]
