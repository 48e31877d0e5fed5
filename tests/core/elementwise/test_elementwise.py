"""Element-wise programs: every primitive, dtype and layout against NumPy, promotion, overlap, threads."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cygrad._core.elementwise.elementwise  # noqa: F401 - fills the table of primitives
from cygrad._core.primitives.primitive_table import arity_of, dtypes_of, names
from cygrad._core.testing.interop import Expression, add_into, apply, copy, fill_with
from cygrad._core.threads import parallel
from tests.core.primitives.test_special_functions import VALUES
from tests.operator_cases import ROWS
from tests.samples import SAMPLES

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
# By code; NumPy does not have all.
ALL_DTYPES = [*DTYPES, "float16", None, None, "uint16", "uint32", "uint64"]
RENAMED = {
    "sub": "subtract", "mul": "multiply", "div": "true_divide", "neg": "negative", "sgn": "sign",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "bitwise_not": "invert", "complex": None,
}
TANH_BACKWARD = [("mul", 3, 1, 1), ("sub", 4, 2, 3), ("mul", 5, 0, 4)]


def reference(name):
    """The primitive as a NumPy function; None if NumPy has none."""
    own = {
        "where": np.where,
        "relu": lambda x: np.where(x <= 0, np.zeros_like(x), x),
        "real": np.real,
        "imag": np.imag,
        "angle": np.angle,
        "complex": lambda a, b: a + 1j * b,
        "erf": np.vectorize(math.erf),
        "erfc": np.vectorize(math.erfc),
        "lgamma": np.vectorize(math.lgamma),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "trunc_divide": lambda a, b: np.trunc(a / b),
        "square": lambda x: x.astype(np.int64) if x.dtype == bool else np.square(x),
        "signbit": lambda x: x < 0,
        "sign": lambda x: x if x.dtype == bool else np.sign(x),
        "sgn": lambda x: x if x.dtype == bool else np.sign(x),
    }
    return own[name] if name in own else getattr(np, RENAMED.get(name, name), None)


def sample(dtype, shape, seed):
    """Numbers that most functions accept: positive, none that integer division refuses."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype[0] in "ui":
        return random.integers(1, 6, shape).astype(dtype)
    values = random.uniform(0.05, 0.95, shape)
    return (values + 1j * random.uniform(0.05, 0.95, shape) if dtype[0] == "c" else values).astype(dtype)


def operands_of(name, dtype, shape):
    n = arity_of(name)
    operands = [sample(dtype, shape, seed) for seed in range(n)]
    if name == "where":
        operands[0] = sample("bool", shape, 9)
    return operands


def assert_close(result, expected):
    if result.dtype.kind in "fc":
        tolerance = 2e-5 if result.dtype in (np.float32, np.complex64) else 1e-12
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(result, expected)


def layouts(operands):
    """The same values at other places in memory."""
    yield "contiguous", operands
    yield "transposed", [np.ascontiguousarray(x.T).T for x in operands]
    yield "negative", [np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1] for x in operands]
    yield "strided", [np.repeat(x, 3, axis=1)[:, ::3] for x in operands]
    yield "mixed", [np.ascontiguousarray(x.T).T if i % 2 else x for i, x in enumerate(operands)]


@pytest.mark.parametrize(("name", "code"), [(n, d) for n in names() for d in dtypes_of(n) if ALL_DTYPES[d]])
def test_values_and_layouts(name, code):
    operands = operands_of(name, ALL_DTYPES[code], (37, 21))
    first = apply(name, *operands)
    if reference(name) is not None:
        with np.errstate(all="ignore"):
            assert_close(first, reference(name)(*operands))
    for layout, moved in layouts(operands):
        assert apply(name, *moved).tobytes() == first.tobytes(), layout
    assert apply(name, *[x[:0] for x in operands]).shape == (0, 21)
    zero_dim = apply(name, *[np.array(x[3, 4]) for x in operands])
    assert zero_dim.shape == ()
    assert zero_dim.tobytes() == first[3, 4].tobytes()


def test_values_that_numpy_does_not_have_are_tested_elsewhere():
    """Primitives without a NumPy function: in the suite of special functions, or as operators of the table."""
    assert not {name for name in names() if reference(name) is None} - set(VALUES) - set(SAMPLES) - set(ROWS)


@pytest.mark.parametrize("shapes", [
    ((4, 5), (5,)), ((4, 1), (1, 5)), ((300, 700), (700,)), ((300, 700), (300, 1)), ((2, 3, 1, 5), (4, 1)),
    ((), (3,)), ((1,), (0,)), ((5000, 3), (3,)), ((3, 5000), (3, 1)), ((1, 1), (1,)), ((2, 1, 4, 1), (3, 1, 5)),
])
def test_broadcast(shapes):
    a, b = (sample("float64", shape, i) for i, shape in enumerate(shapes))
    np.testing.assert_array_equal(apply("sub", a, b), a - b)
    np.testing.assert_array_equal(apply("sub", b, a), b - a)
    expected = a * (1 - b * b)
    np.testing.assert_array_equal(Expression(2, TANH_BACKWARD, (1,))(a, b), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [48, 64, 80, 100, 255, 257, 1000, 1024, 4095, 4112])
def test_rows_with_a_broadcast_operand(dtype, length):
    """Long rows and rows of whole vectors are computed in place, others in tiles: the values are those of NumPy."""
    x = sample(dtype, (14, 7, length), 0)
    others = [sample(dtype, shape, 1) + 3 for shape in ((7, 1), (7, 1, 1), (length,), (7, length), (7, 1, length))]
    for view in (x[:7], x[6::-1], x[::2], x[:7].transpose(1, 0, 2), x[:7, :, ::-1]):
        for name, f in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
            for other in others:
                np.testing.assert_array_equal(apply(name, view, other), f(view, other))
                np.testing.assert_array_equal(apply(name, other, view), f(other, view))
        np.testing.assert_array_equal(apply("neg", view), -view)
    expected = x[1:-1, 1:] * others[0][1:]
    apply("mul", x[1:-1, 1:], others[0][1:], into=x[1:-1, 1:])
    np.testing.assert_array_equal(x[1:-1, 1:], expected)


def test_many_dimensions():
    a = sample("float32", (2,) * 12 + (1,) * 50, 0)
    b = a.transpose(*reversed(range(12)), *range(12, 62))
    np.testing.assert_array_equal(apply("add", a, b), a + b)


def test_shapes_that_do_not_fit():
    with pytest.raises(RuntimeError, match=r": cannot broadcast shapes \(2, 3\) and \(2,\): the size of tensor a"):
        apply("add", np.ones((2, 3)), np.ones(2))


@pytest.mark.parametrize("name", ["add", "div", "eq", "pow", "where"])
def test_promotion(name):
    """Result dtypes: arrays with dimensions decide, then 0-dim arrays, then numbers."""
    torch = pytest.importorskip("torch")
    operator = {"where": lambda a, b: torch.where(torch.ones(2, dtype=torch.bool), a, b)}.get(name)
    operator = operator or getattr(torch, name)
    pool = [np.ones(shape, dtype) for dtype in DTYPES for shape in ((2,), ())] + [True, 2, 0.5, 1 + 2j]
    for a, b in itertools.product(pool, pool):
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and name != "where":
            continue
        theirs = [torch.from_numpy(x) if isinstance(x, np.ndarray) else x for x in (a, b)]
        if not isinstance(theirs[0], torch.Tensor) and name == "eq":
            theirs[0] = torch.tensor(theirs[0])     # their eq() takes no number first
            if isinstance(b, np.ndarray) and b.ndim == 0:
                continue
        condition = [np.ones(2, bool)] if name == "where" else []
        try:
            expected = operator(*theirs).numpy()
        except (RuntimeError, NotImplementedError):
            continue
        expression = Expression(len(condition) + 2, [(name, 5, *range(len(condition) + 2))])
        if name == "pow" and expected.dtype == bool:
            continue
        result = expression(*condition, a, b)
        assert result.dtype == expected.dtype, (a, b)
        assert expression.result_dtype(*condition, a, b) == expected.dtype, (a, b)
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_numbers_keep_their_precision():
    """Results of numbers alone are computed in double precision and promoted as numbers."""
    expression = Expression(2, [("sub", 3, 1, 2), ("mul", 4, 0, 3)], (1,))
    x = np.ones(3)
    np.testing.assert_array_equal(expression(x, 0.1), x * (0.1 - 1))
    assert expression(x.astype(np.float32), 0.1).dtype == np.float32
    assert expression(np.array(2.0), 3).dtype == np.float64
    assert expression(2, 3).dtype == np.int64
    assert expression(2, 3.0).dtype == np.float32


def test_conditions_cast():
    x = np.arange(4)
    np.testing.assert_array_equal(apply("where", x, x, -1), [-1, 1, 2, 3])
    assert apply("where", x > 1, 1.5, 2).dtype == np.float32


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
@pytest.mark.parametrize("dtype", DTYPES[1:6])
def test_integer_division(name, dtype):
    """Zero is refused, the smallest integer divided by -1 is not fatal."""
    ones = np.ones(100000, dtype)
    zero = ones.copy()
    zero[70000] = 0
    for size in (100000, 70001):
        with pytest.raises(ZeroDivisionError, match="integer division by zero"):
            apply(name, ones[:size], zero[:size])
    with pytest.raises(ZeroDivisionError):
        apply(name, ones[:3], 0)
    np.testing.assert_array_equal(apply(name, ones, ones), ones if "divide" in name else 0 * ones)
    if dtype[0] == "i":
        least = np.full(3, np.iinfo(dtype).min, dtype)
        result = apply(name, least, -1)
        np.testing.assert_array_equal(result, least if "divide" in name else 0 * least)
        a, b = np.meshgrid(np.arange(-9, 10), [-4, -3, -1, 1, 2, 5])
        numpy_name = {"trunc_divide": lambda x, y: np.trunc(x / y)}.get(name) or getattr(np, name)
        np.testing.assert_array_equal(apply(name, a.astype(dtype), b.astype(dtype)), numpy_name(a, b))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "trunc_divide"])
@pytest.mark.parametrize("dtype", DTYPES[1:6])
def test_integer_division_where_only_some_elements_need_one(name, dtype):
    """Of rows of indices that lie within the divisor, with others at some places; zero is refused everywhere."""
    a = np.arange(1000).astype(dtype) % 7
    for places in ([], [0], [63, 64, 65], [130, 999], range(500, 600)):
        x = a.copy()
        x[list(places)] = 100 if np.dtype(dtype).kind == "u" else -100
        expected = np.trunc(x / 7.0) if name == "trunc_divide" else getattr(np, name)(x.astype(np.int64), 7)
        np.testing.assert_array_equal(apply(name, x, np.full_like(x, 7)), expected.astype(dtype))
    for place in (0, 1, 500, 999):
        zero = np.full_like(a, 7)
        zero[place] = 0
        with pytest.raises(ZeroDivisionError):
            apply(name, a, zero)


def test_integer_power():
    a, b = np.meshgrid(np.arange(-4, 5), np.arange(6))
    np.testing.assert_array_equal(apply("pow", a, b), a**b)
    np.testing.assert_array_equal(apply("pow", np.array([1, -1, -1, 2]), np.array([-3, -3, -2, -1])), [1, -1, 1, 0])


def test_special_values():
    x = np.array([np.nan, -np.inf, -0.0, 0.0, np.inf])
    np.testing.assert_array_equal(apply("relu", x), [np.nan, 0, 0, 0, np.inf])
    np.testing.assert_array_equal(apply("sign", x), [0, -1, 0, 0, 1])
    np.testing.assert_array_equal(apply("sigmoid", x), [np.nan, 0, 0.5, 0.5, 1])
    np.testing.assert_array_equal(apply("angle", x), [np.nan, np.pi, 0, 0, 0])
    np.testing.assert_array_equal(apply("maximum", x, 1.0), [np.nan, 1, 1, 1, np.inf])
    np.testing.assert_array_equal(apply("fmax", x, 1.0), [1, 1, 1, 1, np.inf])


@pytest.mark.parametrize("scale", [1e-8, 1, 100, 1e6, 1e12])
def test_own_sines(scale):
    """Within two units in the last place of NumPy's for all angles; the sign of zero is kept."""
    x = np.random.default_rng(0).uniform(-scale, scale, 3001)
    for name in ("sin", "cos"):
        expected = getattr(np, name)(x)
        assert np.all(np.abs(apply(name, x) - expected) <= 2 * np.spacing(np.abs(expected)))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    assert np.signbit(apply("sin", special))[:2].tolist() == [False, True]
    np.testing.assert_array_equal(apply("sin", special), [0, 0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(apply("cos", special), [1, 1, np.nan, np.nan, np.nan])


def test_own_error_function():
    x = np.random.default_rng(0).uniform(-5, 5, 3001).astype(np.float32)
    expected = np.vectorize(math.erf)(x.astype(np.float64)).astype(np.float32)
    assert np.all(np.abs(apply("erf", x) - expected) <= 3 * np.spacing(np.abs(expected)))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    np.testing.assert_array_equal(apply("erf", special)[:5], [0, 0, 1, -1, np.nan])


def test_own_complementary_error_function():
    """Small results, too, are right to some units in the last place, down to where numbers lose digits."""
    x = np.random.default_rng(0).uniform(-9, 9, 20_001).astype(np.float32)
    expected = np.vectorize(math.erfc)(x.astype(np.float64)).astype(np.float32)
    assert np.all(np.abs(apply("erfc", x) - expected) <= 5 * np.spacing(expected))
    np.testing.assert_array_equal(apply("erfc", x[::-2]), apply("erfc", x)[::-2])
    x = np.linspace(9.2, 11, 1001, dtype=np.float32)
    assert np.all(np.abs(apply("erfc", x) - np.vectorize(math.erfc)(x.astype(np.float64))) <= 7e-45)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 100.0], np.float32)
    np.testing.assert_array_equal(apply("erfc", special), [1, 1, 0, 2, np.nan, 1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 64, 1000])
def test_choices_of_all_steps(dtype, size):
    """Loops for neighboring elements and for one value for all."""
    condition = np.arange(size) % 3 != 0
    x, y = sample(dtype, (size,), 0), sample(dtype, (size,), 1)
    one, other = sample(dtype, (1,), 2), sample(dtype, (1,), 3)
    mask = condition.view(np.uint8) != 0
    for a in (x, one, x[::-1]):
        for b in (y, other, y[::-1]):
            np.testing.assert_array_equal(apply("where", condition, a, b), np.where(mask, a, b))
            np.testing.assert_array_equal(apply("where", condition[::-1], a, b), np.where(mask[::-1], a, b))


def test_unknown_and_missing():
    with pytest.raises(ValueError, match="unknown name"):
        apply("tangent", 1)
    with pytest.raises(NotImplementedError, match="bitwise_and: not implemented for float64"):
        apply("bitwise_and", np.ones(2), np.ones(2))


# Overlap, in place, reuse

def test_in_place():
    x = sample("float64", (50, 60), 0)
    for view in (x, x.T, x[::-1, ::2], x[:, :1]):
        expected = view + view * 2
        Expression(2, [("mul", 3, 1, 2), ("add", 4, 0, 3)], (2,))(view, view, into=view)
        np.testing.assert_array_equal(view, expected)


@pytest.mark.parametrize("size", [5, 5000, 300000])
def test_partial_overlap(size):
    x = np.arange(float(size))
    expected = x[:-1] * (1 - x[1:] * x[1:])
    Expression(2, TANH_BACKWARD, (1,))(x[:-1], x[1:], into=x[1:])
    np.testing.assert_array_equal(x[1:], expected)
    y = np.arange(float(size))
    expected = y[::-1] + y
    np.testing.assert_array_equal(apply("add", y, y[::-1], into=y), expected)
    z = np.arange(float(size)) + 2
    expected = z * z[0]
    apply("mul", z, z[:1].reshape(()), into=z)
    np.testing.assert_array_equal(z, expected)


def test_into_is_checked():
    x = np.ones((3, 2))
    shared = np.lib.stride_tricks.as_strided(np.zeros(2), (3, 2), (0, 8))
    with pytest.raises(RuntimeError, match="share a memory location"):
        apply("add", x, x, into=shared)
    with pytest.raises(RuntimeError, match=r"output with shape \(2,\) doesn't match the broadcast shape \(3, 2\)"):
        apply("add", x, x, into=np.zeros(2))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        apply("add", x, x, into=np.zeros((3, 2), np.int64))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_into_casts(dtype, transposed):
    out = np.zeros((40, 300), dtype)
    if transposed:
        out = np.zeros((300, 40), dtype).T
    x = sample("float64", (40, 300), 0)
    apply("add", x, 1, into=out)
    np.testing.assert_array_equal(out, (x + 1).astype(dtype))


def test_reuse():
    """The result may take over the memory of an operand that fits, and only of one that fits."""
    for size in (3, 100000):
        x, y = sample("float64", (size,), 0), sample("float64", (size,), 1)
        for bits in range(4):
            result = Expression(2, TANH_BACKWARD, (1,))(x, y, reuse=bits)
            np.testing.assert_array_equal(result, x * (1 - y * y))
        z = sample("float64", (4, size), 2)
        np.testing.assert_array_equal(apply("add", x, z, reuse=3), x + z)
        w = sample("float32", (size,), 3)
        np.testing.assert_array_equal(apply("add", w, x, reuse=1), w + x)


# Threads

@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_same_bits_for_any_number_of_threads(dtype):
    before = parallel.get_num_threads()
    x, y = sample(dtype, (701, 907), 0), sample(dtype, (907, 701), 1).T
    code = [("tanh", 3, 1), ("mul", 4, 3, 3), ("sub", 5, 2, 4), ("mul", 6, 0, 5), ("exp", 7, 6)]
    expression = Expression(2, code, (1,))
    try:
        results = set()
        for n in (1, 2, 3, 8):
            parallel.set_num_threads(n)
            results.add(expression(x, y).tobytes())
    finally:
        parallel.set_num_threads(before)
    assert len(results) == 1


def test_threads_share_a_program():
    """Specializations are published safely to all threads that run the same expression."""
    expression = Expression(2, TANH_BACKWARD, (1,))
    cases = [(sample(a, (50,), 0), sample(b, (50,), 1)) for a in DTYPES[6:] for b in DTYPES[1:]]

    def run(_):
        return [expression(a, b).tobytes() for a, b in cases for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(8)))
    assert all(result == results[0] for result in results)


# Copies, casts, fills, accumulation

@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)))
def test_cast(source, target):
    x = sample(source, (70, 90), 0) * np.array(3).astype(source) if source != "bool" else sample(source, (70, 90), 0)
    real = x.real if target[0] != "c" and target != "bool" else x
    expected = real.astype(target)
    for _, (view,) in layouts([x]):
        out = np.zeros((70, 90), target)
        copy(out, view)
        np.testing.assert_array_equal(out, expected)
        turned = np.zeros((90, 70), target).T
        copy(turned, view)
        np.testing.assert_array_equal(turned, expected)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3,), (1000, 3), (3, 1000), (513, 517), (5, 1, 7, 6)])
def test_copy_layouts(shape):
    source = sample("float32", shape, 0)
    ndim = len(shape)
    for axes in itertools.permutations(range(ndim)):
        view = np.ascontiguousarray(source.transpose(axes)).transpose(np.argsort(axes))
        out = np.zeros(shape, np.float32)
        copy(out, view)
        np.testing.assert_array_equal(out, source)
        view = np.zeros(source.transpose(axes).shape, np.float32).transpose(np.argsort(axes))
        copy(view[(slice(None, None, -1),) * ndim], source)
        np.testing.assert_array_equal(view[(slice(None, None, -1),) * ndim], source)


def test_copy_broadcasts_and_overlaps():
    out = np.zeros((3, 4))
    copy(out, np.arange(4.0))
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(4.0), (3, 4)))
    square = sample("float64", (60, 60), 0)
    expected = square.T.copy()
    copy(square, square.T)
    np.testing.assert_array_equal(square, expected)
    with pytest.raises(RuntimeError, match="one that broadcasts to"):
        copy(out, np.zeros(3))


def test_float_out_of_range_to_integer_is_harmless():
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1.0])
    for dtype in DTYPES[1:6]:
        copy(np.zeros(5, dtype), x)
        copy(np.zeros(4, dtype), np.array([np.nan, np.inf, 1e30, -1], np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill(dtype):
    for out in (np.zeros(7, dtype), np.zeros((300, 400), dtype).T[::-1, ::3], np.zeros((), dtype)):
        for number in (True, 3, 2.5, 0):
            fill_with(out, number)
            np.testing.assert_array_equal(out, np.full(out.shape, number).astype(dtype))
    if dtype[0] != "c" and dtype != "bool":        # masks of nonzero elements
        with pytest.raises(RuntimeError, match="a complex number cannot be cast"):
            fill_with(np.zeros(2, dtype), 1j)


@pytest.mark.parametrize("size", [0, 1, 1000, 200000])
def test_accumulate(size):
    a, b = sample("float32", (size,), 0), sample("float32", (size,), 1)
    expected = a + b
    add_into(a, b)
    np.testing.assert_array_equal(a, expected)
    expected = a + a
    add_into(a, a)
    np.testing.assert_array_equal(a, expected)
    expected = a + a[::-1]
    add_into(a, a[::-1])
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(7, 25, 32), (3, 5, 7, 11), (2, 300, 3), (41, 13, 2, 16), (5, 1000, 2)])
def test_operands_that_are_broadcast_to_blocks(shape, dtype):
    """Tiles hold whole inner dimensions where that spares copies; all else is put there row by row."""
    x = sample(dtype, shape, 1)
    expression = Expression(3, [("mul", 3, 0, 1), ("add", 4, 3, 2)])
    masks = list(itertools.product([False, True], repeat=len(shape)))
    for first, second in zip(masks, masks[1:] + masks[:1], strict=True):
        given = [sample(dtype, [1 if gone else size for gone, size in zip(mask, shape, strict=True)], seed)
                 for seed, mask in ((2, first), (3, second))]
        np.testing.assert_array_equal(expression(x, *given), x * given[0] + given[1])
        np.testing.assert_array_equal(expression(given[0], x, given[1]), given[0] * x + given[1])
        if dtype[0] == "f":               # not correctly rounded: operands must be contiguous
            assert_close(apply("atan2", x, given[0]), np.arctan2(x, given[0]))
