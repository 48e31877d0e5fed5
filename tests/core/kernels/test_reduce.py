"""Reductions compared with PyTorch: dtypes, layouts, errors, bit-identical for any number of threads."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cygrad
from cygrad._core.arrays import dtype as dtypes
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import set_num_threads
from tests.reference import as_torch, torch

ALL = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
FLOATING = ALL[6:]
REAL = ALL[:8]
SHAPES = [(), (1,), (5,), (3, 4), (4, 1, 5), (2, 3, 4), (70, 3), (3, 70), (2, 65, 37), (2, 2, 3, 2, 2)]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.random(shape) > 0.3)
    if dtype.startswith("complex"):
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.integers(0 if dtype == "uint8" else -9, 9, shape)).astype(dtype)


def layouts(x):
    """Yield the array contiguous, transposed, reversed, strided, and broadcast."""
    yield x
    yield x.T
    yield x[tuple(slice(None, None, -1) for _ in x.shape)] if x.ndim else x
    if x.ndim:
        yield np.repeat(x, 2, axis=-1)[..., ::2]
        yield np.broadcast_to(x[:1], x.shape)
        yield np.broadcast_to(x[..., None], (*x.shape, 3))
    if x.ndim > 2:
        yield x.transpose(1, 0, *range(2, x.ndim))
        yield np.moveaxis(x, 0, -1)


def dims_of(ndim):
    yield None
    if ndim:
        yield from ((d,) for d in range(-1, ndim))
    if ndim > 1:
        yield (0, ndim - 1)
        yield (-1, -2)
        yield tuple(range(ndim))


def close(ours, theirs, scale=1.0):
    ours, theirs = np.asarray(ours), theirs.numpy()
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    tolerance = 1e-5 if ours.dtype in (np.float32, np.complex64) else 1e-11
    np.testing.assert_allclose(ours, theirs, rtol=tolerance * scale, atol=tolerance * scale * 10)


def each_case(dtype):
    for shape in SHAPES:
        for x in layouts(numbers(shape, dtype)):
            for dims in dims_of(x.ndim):
                yield x, as_torch(x), dims


@pytest.mark.parametrize("dtype", ALL)
def test_sum_and_prod(dtype):
    for x, t, dims in each_case(dtype):
        close(call_kernel("sum", x, dims, False, None)[0], t.sum(dims))
        if dtype.startswith("complex"):
            x = np.asarray(x / np.abs(x))
            t = as_torch(x)
        small = x if dtype.startswith(("float", "complex", "bool")) else np.asarray(x % 3)
        expected = as_torch(np.asarray(small))
        for dim in sorted((d % x.ndim for d in dims or range(x.ndim)), reverse=True):
            expected = expected.prod(dim)
        if x.ndim == 0:
            expected = expected.prod()
        close(call_kernel("prod", np.asarray(small), dims, False, None)[0], expected, 10)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom", "ignore:Casting complex")
def test_mean_var_std_norm(dtype):
    for x, t, dims in each_case(dtype):
        close(call_kernel("mean", x, dims, True, None)[0], t.mean(dims, keepdim=True))
        for correction in (None, 0, 0.5, 3):
            theirs = t.var(dims, correction=1 if correction is None else correction)
            close(call_kernel("var", x, dims, correction, False)[0], theirs)
        close(call_kernel("std", x, dims, None, True)[0], t.std(dims, keepdim=True))
        for p in (0, 1, 2, 3.0, 0.5, -1.5, np.inf, -np.inf):
            close(call_kernel("norm", x, p, dims, False, None)[0], torch.linalg.vector_norm(t, p, dims), 10)


@pytest.mark.parametrize("n", [3, 300, 120_000])
def test_variances_that_overflow_are_infinite(n):
    x = np.resize([1e308, -1e308, 1e308], n)
    assert call_kernel("var", x, None, None, False)[0] == np.inf
    assert call_kernel("std", x, None, None, True)[0] == pytest.approx(1e308 * np.std(x / 1e308, ddof=1), rel=1e-12)
    assert np.all(call_kernel("var", np.stack([x, x], 1), (0,), None, False)[0] == np.inf)
    x[1] = np.nan
    assert np.isnan(call_kernel("var", x, None, None, False)[0])


@np.errstate(over="ignore")
@pytest.mark.parametrize("size", [1.5e308, 1e200, 1e-170, 1e-305])
@pytest.mark.parametrize("shape", [(3, 2), (300, 5), (2, 1000)])
def test_moments_of_float64_neither_overflow_nor_underflow(size, shape):
    unscaled = np.random.default_rng(0).uniform(-1, 1, shape)
    unscaled[:, 0] = 1.0                                                  # constant column, whose sum overflows
    x = unscaled * size
    for dims in ((0,), (1,), (0, 1)):
        mean, deviation = unscaled.mean(dims) * size, unscaled.std(dims, ddof=1)
        np.testing.assert_allclose(call_kernel("mean", x, dims, False, None)[0], mean, atol=1e-12 * size)
        std, variance = (call_kernel(name, x, dims, None, False)[0] for name in ("std", "var"))
        np.testing.assert_allclose(std, deviation * size, rtol=1e-9)
        np.testing.assert_allclose(variance, std * std, rtol=1e-9)
        of_complex = call_kernel("std", x + 0.25j * x, dims, None, False)[0]
        np.testing.assert_allclose(of_complex, deviation * np.hypot(1, 0.25) * size, rtol=1e-9)
    assert call_kernel("std", x[:, 0], None, None, False)[0] == 0


@pytest.mark.parametrize("dtype", REAL)
def test_extrema(dtype):
    for x, t, dims in each_case(dtype):
        close(call_kernel("amax", x, dims, False)[0], t.amax(dims or ()))
        close(call_kernel("amin", x, dims, True)[0], t.amin(dims or (), keepdim=True))
        if dims is None:
            if dtype != "bool":
                close(call_kernel("argmax", x, None, False)[0], t.argmax())
                close(call_kernel("argmin", x, None, True)[0], t.argmin(keepdim=True))
        elif len(dims) == 1:
            values, indices = call_kernel("max_dim", x, dims[0], False)
            theirs = t.max(dims[0])
            close(values, theirs.values)
            close(indices, theirs.indices)
            values, indices = call_kernel("min_dim", x, dims[0], True)
            theirs = t.min(dims[0], keepdim=True)
            close(values, theirs.values)
            close(indices, theirs.indices)
            if dtype != "bool":
                close(call_kernel("argmax", x, dims[0], False)[0], t.argmax(dims[0]))


@pytest.mark.parametrize("dtype", ALL)
def test_all_any(dtype):
    for x, t, dims in each_case(dtype):
        close(call_kernel("all", x, dims, False)[0], t.all(dims))
        close(call_kernel("any", x, dims, True)[0], t.any(dims, keepdim=True))
    x = np.ones((2, 3), bool)
    assert call_kernel("all", x, (), False)[0].shape == (2, 3)


@pytest.mark.parametrize("dtype", REAL)
def test_logsumexp(dtype):
    for x, t, dims in each_case(dtype):
        every = tuple(range(x.ndim)) if dims is None else dims
        theirs = t.logsumexp(every) if every or x.ndim == 0 else t.float()
        close(call_kernel("logsumexp", x, dims, False)[0], theirs if x.ndim else t.logsumexp(0))


def test_logsumexp_of_infinities():
    inf = np.inf
    x = np.array([[-inf, -inf], [inf, 0], [-inf, inf], [1e5, 1e5], [np.nan, 1], [-1e5, -inf]])
    for array, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        np.testing.assert_array_equal(call_kernel("logsumexp", array, (dim,), False)[0],
                                      torch.from_numpy(array).logsumexp(dim).numpy())
    far = np.repeat([-inf, -1e30, 3.0, 5.0, -inf], 4000)
    np.testing.assert_allclose(call_kernel("logsumexp", far, None, False)[0],
                               torch.from_numpy(far).logsumexp(0).numpy())


def test_nan_and_ties_of_extrema():
    for n in (4, 50, 5000):
        x = np.ones(n)
        assert [int(v) for v in call_kernel("max_dim", x, 0, False)] == [1, 0]
        x[n // 2] = x[-1] = np.nan
        for array in (x, x.astype("float32"), np.repeat(x, 3)[::3]):
            values, indices = call_kernel("max_dim", array, 0, False)
            assert np.isnan(values)
            assert indices == n // 2
            assert call_kernel("argmin", array, None, False)[0] == n // 2
            assert np.isnan(call_kernel("amin", array, None, False)[0])
        columns = np.repeat(x[:, None], 20, axis=1)
        assert (call_kernel("max_dim", columns, 0, False)[1] == n // 2).all()
        assert np.isnan(call_kernel("amax", columns, (0,), False)[0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [0, 1])
def test_extrema_of_rows_and_columns_with_nan_in_any_place(dtype, dim):
    rng = np.random.default_rng(4)
    for n in (15, 16, 17, 31, 63, 64, 65, 130, 300):
        x = rng.standard_normal((n, n)).astype(dtype)
        x[0] = -np.inf
        np.testing.assert_array_equal(call_kernel("amax", x, (dim,), False)[0], x.max(dim))
        np.testing.assert_array_equal(call_kernel("amin", x, (dim,), False)[0], x.min(dim))
        np.fill_diagonal(x, np.nan)
        for name in ("amax", "amin"):
            assert np.isnan(call_kernel(name, x, (dim,), False)[0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [4, 15, 70, 700])
def test_extrema_of_columns_are_the_first_of_equal_zeros_and_the_last_nan(dtype, n):
    rng = np.random.default_rng(n)
    bits = f"int{8 * np.dtype(dtype).itemsize}"
    x = np.copysign(rng.choice([0.0, 0.0, np.inf], (n, 150)), rng.standard_normal((n, 150))).astype(dtype)
    for name, farther in (("amax", np.greater), ("amin", np.less)):
        for part in (x, x[:, :33], x[:, :3].copy()):
            expected = part[0]
            for row in part[1:]:
                expected = np.where(farther(row, expected) | np.isnan(row), row, expected)
            found = call_kernel(name, part, (0,), False)[0]
            np.testing.assert_array_equal(np.asarray(found).view(bits), expected.view(bits))
        payloads = np.full(150, np.nan, dtype).view(bits) + rng.integers(1, 9, 150).astype(bits)
        x[rng.integers(0, n, 150), np.arange(150)] = payloads.view(dtype)


def test_extrema_of_0_dim():
    x = np.array(3.0)
    assert [int(v) for v in call_kernel("max_dim", x, -1, True)] == [3, 0]
    assert call_kernel("argmin", x, 0, False)[0] == 0


def test_results_of_nothing():
    x = np.empty((0, 3), "float32")
    np.testing.assert_array_equal(call_kernel("sum", x, (0,), False, None)[0], np.zeros(3))
    np.testing.assert_array_equal(call_kernel("prod", x, (0,), False, None)[0], np.ones(3))
    assert call_kernel("sum", x, (1,), False, None)[0].shape == (0,)
    assert np.isnan(call_kernel("mean", x, None, False, None)[0])
    assert np.isnan(call_kernel("var", x, (0,), None, False)[0]).all()
    assert call_kernel("norm", x, 2, None, False, None)[0] == 0
    np.testing.assert_array_equal(call_kernel("logsumexp", x, (0,), False)[0], [-np.inf] * 3)
    assert call_kernel("amax", x, (1,), False)[0].shape == (0,)
    assert call_kernel("all", x, None, False)[0]
    assert not call_kernel("any", x, None, False)[0]


def test_dtype_arguments():
    x = numbers((5, 7), "int32")
    t = torch.from_numpy(x)
    for name in ALL:
        if name != "bool":
            close(call_kernel("sum", x, (0,), False, getattr(dtypes, name))[0],
                  t.sum(0, dtype=getattr(torch, name)))
    close(call_kernel("sum", x + 0.75, None, False, dtypes.int64)[0], (t + 0.75).sum(dtype=torch.int64))
    close(call_kernel("prod", x, (0,), False, dtypes.bool)[0], t.prod(0, dtype=torch.bool))
    close(call_kernel("mean", x, (0,), False, dtypes.float64)[0], t.mean(0, dtype=torch.float64))
    single = x.astype("float32")
    assert call_kernel("norm", single, 2, None, False, dtypes.float64)[0].dtype == np.float64


@pytest.mark.parametrize(("name", "arguments", "error", "text"), [
    ("sum", (np.ones((2, 3)), (0, -2), False, None), RuntimeError, "given twice"),
    ("sum", (np.ones((2, 3)), (2,), False, None), IndexError, "out of range"),
    ("mean", (np.ones(3, int), None, False, None), RuntimeError, "mean: needs a floating"),
    ("var", (np.ones(3, int), None, None, False), RuntimeError, "only supports floating"),
    ("amax", (np.empty(0), None, False), RuntimeError, "Specify the reduction dim"),
    ("amax", (np.empty((0, 3)), (0,), False), IndexError, "non-zero size"),
    ("amax", (np.ones(3, complex), None, False), NotImplementedError, "no order"),
    ("max_dim", (np.empty((0, 3)), 0, False), IndexError, "non-zero size"),
    ("max_dim", (np.ones((2, 3)), None, False), TypeError, "expected one dimension"),
    ("argmax", (np.empty((0, 3)), None, False), IndexError, "Specify the reduction dim"),
    ("argmax", (np.ones(3, bool), None, False), RuntimeError, "bool"),
    ("argmax", (np.ones(3, complex), 0, False), RuntimeError, "no order"),
    ("norm", (np.ones(3, int), 2, None, False, None), RuntimeError, "floating point or complex"),
    ("norm", (np.empty((0, 3)), np.inf, (0,), False, None), RuntimeError, "not defined"),
    ("norm", (np.ones(3), 2, None, False, dtypes.complex128), RuntimeError, "should be real"),
    ("norm", (np.ones(3), 2, None, False, dtypes.float32), RuntimeError, "narrower"),
    ("logsumexp", (np.ones(3, complex), None, False), NotImplementedError, "complex"),
    ("sum_to", (np.ones((2, 3)), (4,)), RuntimeError, "broadcast"),
    ("sum_to", (np.ones(3), (1, 3)), RuntimeError, "more dimensions"),
])
def test_errors(name, arguments, error, text):
    with pytest.raises(error, match=text):
        call_kernel(name, *arguments)


def test_sum_to():
    x = numbers((2, 3, 4), "float64")
    t = torch.from_numpy(x)
    for shape in [(2, 3, 4), (3, 4), (1, 4), (3, 1), (4,), (1,), (1, 1, 1), (2, 1, 4), ()]:
        close(call_kernel("sum_to", x, shape)[0], t.sum_to_size(shape))
    same = call_kernel("sum_to", x, x.shape, raw=True)[0]
    assert np.shares_memory(same, x)
    assert call_kernel("sum_to", np.ones((2, 3), "int32"), (3,))[0].dtype == np.int32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_accuracy_of_long_sums(dtype):
    x = np.random.default_rng(0).random(3_000_001).astype(dtype)
    for array, dim in ((x, 0), (np.ascontiguousarray(x[: 3_000_000].reshape(-1, 10)), 0)):
        exact = array.astype("longdouble").sum(dim)
        ours = np.abs(call_kernel("sum", array, (dim,), False, None)[0] - exact).max()
        assert ours <= 2 * np.finfo(dtype).eps * np.abs(exact).max()
    shifted = (x + 1000).astype(dtype)
    np.testing.assert_allclose(call_kernel("var", shifted, None, None, False)[0],
                               shifted.astype("longdouble").var(ddof=1),
                               rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_same_bits_for_any_number_of_threads(dtype):
    x = numbers((300, 1100), dtype)
    results = []
    for threads in (1, 2, 3, 8):
        set_num_threads(threads)
        found = []
        for array in (x, x.T, x.reshape(10, 30, 1100), x[:, ::-3]):
            for dims in (None, (0,), (1,)):
                found += [call_kernel(name, array, dims, *rest)[0].tobytes() for name, rest in
                          (("sum", (False, None)), ("mean", (False, None)), ("var", (None, False)))]
                found.append(call_kernel("norm", array, 2, dims, False, None)[0].tobytes())
                if dtype != "complex64":
                    found.append(call_kernel("logsumexp", array, dims, False)[0].tobytes())
        results.append(found)
    set_num_threads(1)
    assert all(found == results[0] for found in results)


LAYOUTS = {
    "transposed": lambda x: x.permute(2, 0, 1), "steps": lambda x: x[:, ::2], "gaps": lambda x: x[:, :, :-3],
    "repeated": lambda x: x[:, :1].expand(x.shape), "repeated inside": lambda x: x[..., :1].expand(x.shape),
    "narrow": lambda x: x[..., :2], "one": lambda x: x[:1, :1, :1], "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0, 0], "row": lambda x: x[0, 0],
}


@pytest.mark.parametrize("dtype", [cygrad.int8, cygrad.bool, cygrad.float32, cygrad.float16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cast_while_reducing(layout, dtype):
    """Whole numbers, so that no order of summation matters."""
    x = LAYOUTS[layout](cygrad.from_numpy(np.random.default_rng(0).integers(-3, 4, (5, 12, 33))).to(dtype))
    for dim in (None, *range(x.ndim), *([(0, 2), (1, 2)] if x.ndim == 3 else [])):
        given = {} if dim is None else {"dim": dim}
        wanted = x.to(cygrad.float64).contiguous().sum(**given)
        for into in (cygrad.float64, cygrad.complex128):
            assert cygrad.equal(x.sum(dtype=into, **given), wanted.to(into))


def test_casting_makes_no_copy():
    script = """
        import resource, cygrad
        x = cygrad.ones(4000, 4000)                                 # 64 MB, twice as much as float64
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seen in (x, x.t(), x[:, ::2], x[:, :-1]):
            for given in ({}, {"dim": 0}, {"dim": 1}):
                seen.sum(dtype=cygrad.float64, **given)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [16, 100, 1000])
def test_sums_have_lanes_of_64_bytes_on_every_processor(dtype, n):
    """Four groups of lanes get the blocks of 64 bytes in turn; they are added in pairs, then halved, then the rest."""
    x = (np.random.default_rng(n).random(n) - 0.5).astype(dtype)
    width = 64 // x.itemsize
    lanes, i = np.zeros((4, width), dtype), 0
    while i + 4 * width <= n:
        lanes += x[i:i + 4 * width].reshape(4, width)
        i += 4 * width
    while i + width <= n:
        lanes[0] += x[i:i + width]
        i += width
    total, rest = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]), x.dtype.type(0)
    while len(total) > 1:
        total = total[:len(total) // 2] + total[len(total) // 2:]
    for element in x[i:]:
        rest += element
    assert call_kernel("sum", x, (0,), False, None)[0] == total[0] + rest


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 97, 1000])
def test_argmax_and_argmin_find_the_first_extremum_at_any_place_of_a_block(n, dtype):
    for place in {0, 1 % n, 31 % n, 32 % n, n // 2, n - 1}:
        for name, value in (("argmax", 9), ("argmin", 1)):
            x = np.full(n, 5, dtype)
            x[place:] = value               # equal ones: the first counts
            assert call_kernel(name, x, None, False)[0] == place
            assert call_kernel(name, np.repeat(x, 2)[::2], None, False)[0] == place
            if x.dtype.kind == "f":
                x[n - 1] = np.nan
                assert call_kernel(name, x, None, False)[0] == n - 1
