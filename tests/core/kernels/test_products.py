"""Products of matrices and vectors, against NumPy."""

import itertools

import numpy as np
import pytest

import cygrad
import cygrad._core.kernels.linalg.matmul
from cygrad._core.kernels.linalg.matmul import same_bits_by_rows
from cygrad._core.testing.interop import call_kernel
from cygrad._core.threads.parallel import get_num_threads, set_num_threads

FLOATING = ["float32", "float64", "complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
DTYPES = FLOATING + INTEGERS
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def data(shape, dtype, seed=0):
    generator = np.random.default_rng([seed, *shape])
    if dtype in INTEGERS:
        return generator.integers(0, 100, shape).astype(dtype)
    values = generator.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * generator.standard_normal(shape)
    return np.asarray(values, dtype)


def layouts(array):
    """The same values under different strides."""
    spread = np.zeros([2 * n for n in array.shape], array.dtype)
    every_other = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    every_other[...] = array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., 1:1 + array.shape[-1]] = array
    last = np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2) if array.ndim > 1 else array
    backwards = np.ascontiguousarray(array[::-1])[::-1]
    return {
        "contiguous": array,
        "transposed": last,
        "padded": wide[..., 1:1 + array.shape[-1]],
        "every other": every_other,
        "backwards": backwards,
    }


def check(result, expected, dtype, terms=1):
    expected = np.asarray(expected)
    assert result.dtype == np.dtype(dtype)
    assert result.shape == expected.shape
    if dtype in INTEGERS:
        np.testing.assert_array_equal(result, expected)
    else:
        # the error of a sum depends on its terms, not on its size
        scale = max(terms**0.5, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.fixture
def threads():
    before = get_num_threads()
    yield set_num_threads
    set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 5, 4), (1, 7, 5), (6, 7, 1), (33, 17, 65), (130, 70, 258)])
def test_mm_of_all_layouts(dtype, m, k, n):
    a, b = data((m, k), dtype), data((k, n), dtype, seed=1)
    for (_, x), (_, y) in itertools.product(layouts(a).items(), layouts(b).items()):
        check(call_kernel("mm", x, y)[0], a @ b, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mm_of_expanded_operands(dtype):
    a = np.broadcast_to(data((1, 1), dtype), (4, 5))
    b = np.broadcast_to(data((5, 1), dtype), (5, 3))
    check(call_kernel("mm", a, b)[0], a @ b, dtype)
    check(call_kernel("mm", b.T, a.T)[0], b.T @ a.T, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0), (1, 0, 1)])
def test_mm_of_nothing_is_zero(dtype, m, k, n):
    a, b = np.zeros((m, k), dtype), np.zeros((k, n), dtype)
    check(call_kernel("mm", a, b)[0], a @ b, dtype)
    check(call_kernel("linear", a, np.ascontiguousarray(b.T), None)[0], a @ b, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("batch", "m", "k", "n"), [(1, 2, 3, 4), (5, 3, 4, 2), (0, 2, 3, 4), (7, 1, 5, 3),
                                                    (7, 3, 5, 1), (300, 4, 4, 4), (3, 40, 30, 50)])
def test_bmm(dtype, batch, m, k, n):
    a, b = data((batch, m, k), dtype), data((batch, k, n), dtype, seed=1)
    for (_, x), (_, y) in itertools.product(layouts(a).items(), layouts(b).items()):
        check(call_kernel("bmm", x, y)[0], a @ b, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 100, 70_000, 200_001])
def test_dot_and_vdot(dtype, n):
    a, b = data((n,), dtype), data((n,), dtype, seed=1)
    for (_, x), (_, y) in itertools.product(layouts(a).items(), layouts(b).items()):
        check(call_kernel("dot", x, y)[0], a @ b, dtype, terms=n)
        check(call_kernel("vdot", x, y)[0], np.conj(a) @ b, dtype, terms=n)
    constant = np.broadcast_to(np.ones(1, dtype), (n,))
    check(call_kernel("dot", a, constant)[0], a @ constant, dtype, terms=n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(3, 5), (1, 4), (4, 1), (0, 3), (3, 0), (700, 900)])
def test_mv(dtype, m, n):
    a, x = data((m, n), dtype), data((n,), dtype, seed=1)
    for (_, matrix), (_, vector) in itertools.product(layouts(a).items(), layouts(x).items()):
        check(call_kernel("mv", matrix, vector)[0], a @ x, dtype, terms=n)


@pytest.mark.parametrize("dtypes", [*[(d, d) for d in ["bool", *DTYPES]], ("bool", "float32"),
                                    ("int64", "float32"), ("float64", "complex64"), ("uint8", "int8")])
@pytest.mark.parametrize(("m", "n"), [(3, 5), (0, 3), (3, 0), (300, 400)])
def test_outer(dtypes, m, n):
    a = data((m,), "uint8").astype(dtypes[0])
    b = data((n,), "uint8", seed=1).astype(dtypes[1])
    # float32 with int64 stays float32, unlike NumPy
    expected = "float32" if dtypes == ("int64", "float32") else np.result_type(*dtypes).name
    for (_, x), (_, y) in itertools.product(layouts(a).items(), layouts(b).items()):
        check(call_kernel("outer", x, y)[0].astype("int64") if expected == "bool" else
              call_kernel("outer", x, y)[0],
              np.multiply.outer(a.astype(expected), b.astype(expected)),
              "int64" if expected == "bool" else expected)


@pytest.mark.parametrize("dtype", ["float64", "complex64", "int32"])
@pytest.mark.parametrize(("a", "b"), [
    ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((3, 4), (4, 5)),
    ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)), ((5, 2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((7, 1, 3, 4), (1, 6, 4, 1)),
    ((2, 0, 4), (4, 5)), ((2, 3, 0), (0, 5)), ((0, 3, 4), (1, 4, 5)), ((2, 3, 0), (2, 0, 5)), ((0,), (0, 3)),
])
def test_matmul_of_all_ranks(dtype, a, b):
    x, y = data(a, dtype), data(b, dtype, seed=1)
    for (_, left), (_, right) in itertools.product(layouts(x).items(), layouts(y).items()):
        check(call_kernel("matmul", left, right)[0], x @ y, dtype)


def test_matmul_reads_broadcast_batches_in_place():
    a = np.broadcast_to(data((1, 3, 4), "float64"), (6, 3, 4))
    b = data((6, 4, 5), "float64", seed=1)
    check(call_kernel("matmul", a, b)[0], a @ b, "float64")
    strange = np.broadcast_to(data((3, 1), "float64"), (2, 3, 4))
    check(call_kernel("matmul", strange, b[0])[0], strange @ b[0], "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5), (5,), (1, 5), (3, 1), (1,), ()])
def test_addmm(dtype, shape):
    c, a, b = data(shape, dtype), data((3, 4), dtype, seed=1), data((4, 5), dtype, seed=2)
    check(call_kernel("addmm", c, a, b)[0], c + a @ b, dtype)
    expected = (np.multiply(c, np.array(2, dtype)) + np.multiply(a @ b, np.array(3, dtype))).astype(dtype)
    check(call_kernel("addmm", c, a, b, 2, 3)[0], expected, dtype)
    check(call_kernel("addmm", c, a[:, :0], b[:0], 2, 3)[0],
          np.broadcast_to(np.multiply(c, np.array(2, dtype)), (3, 5)), dtype)
    if dtype.startswith("complex"):
        check(call_kernel("addmm", c, a, b, 1 + 2j, 0.5j)[0], (1 + 2j) * c + 0.5j * (a @ b), dtype)
    for layout in layouts(c).values() if shape else ():
        check(call_kernel("addmm", layout, a, b, 1, True)[0], c + a @ b, dtype)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(("m", "k", "n"), [(3, 4, 5), (1, 4, 5), (3, 4, 1), (300, 20, 400)])
def test_a_factor_of_zero_hides_nan(dtype, m, k, n):
    a, b = data((m, k), dtype), data((k, n), dtype, seed=1)
    nan = np.full((m, n), np.nan, dtype)
    check(call_kernel("addmm", nan, a, b, 0, 1)[0], a @ b, dtype)
    check(call_kernel("addmm", data((m, n), dtype), nan[:, :1], b[:1], 1, 0)[0], data((m, n), dtype), dtype)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(("m", "k", "n"), [(3, 4, 5), (1, 4, 5), (3, 4, 1), (20, 20, 20), (300, 70, 140)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_inf_reach_every_sum_that_they_are_part_of(dtype, m, k, n, value):
    a, b = np.zeros((m, k), dtype), np.zeros((k, n), dtype)
    a[m // 2, k // 2] = value
    for left, right in itertools.product(layouts(a).values(), layouts(b).values()):
        result = call_kernel("mm", left, right)[0]
        assert np.isnan(result[m // 2]).all()
        assert (np.delete(result, m // 2, axis=0) == 0).all()


def test_garbage_in_recycled_memory_does_not_matter():
    for shape in [(3, 4), (1, 4), (200, 300)]:
        for _ in range(3):
            call_kernel("outer", np.full(shape[0], np.nan), np.full(shape[1] * 2, np.nan))
            a = np.ones((shape[0], 5))
            assert (call_kernel("mm", a, np.ones((5, shape[1])))[0] == 5).all()
            assert (call_kernel("mv", a, np.ones(5))[0] == 5).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [*itertools.product([False, True], repeat=2)])
def test_small_products_of_all_sizes(dtype, transposed):
    """What vectors of our own multiply, up to where BLAS takes over, with columns left over and an addend."""
    def operand(rows, columns, turned, seed):
        return data((columns, rows), dtype, seed).T if turned else data((rows, columns), dtype, seed)

    for m, k, n in [*itertools.product([1, 2, 3, 4, 7, 8, 9, 15], [1, 2, 5, 8], [1, 3, 4, 8, 9, 16, 17]),
                    *itertools.product([1, 2, 4], [31, 32, 33], [4, 7]),
                    *itertools.product([2], [2], [31, 32, 33, 50])]:
        a, b = operand(m, k, transposed[0], 1), operand(k, n, transposed[1], 2)
        product = a.astype("float64") @ b.astype("float64")
        check(call_kernel("mm", a, b)[0], product, dtype, k)
        for addend in (data((m, n), dtype, 3), data((n,), dtype, 3), data((m, 1), dtype, 3), data((n, m), dtype, 3).T):
            check(call_kernel("addmm", addend, a, b, 0.5, 2.0)[0], 0.5 * addend + 2 * product, dtype, k)
        if not transposed[1]:
            weight, bias = np.ascontiguousarray(b.T), data((n,), dtype, 3)
            check(call_kernel("linear", a, weight, bias)[0], product + bias, dtype, k)


def test_small_products_in_a_batch_are_those_one_by_one():
    a, b = data((5, 8, 6), "float32"), data((5, 6, 9), "float32", 1)
    found = call_kernel("bmm", a, b)[0]
    for result, left, right in zip(found, a, b, strict=True):
        np.testing.assert_array_equal(result, call_kernel("mm", left, right)[0])


def test_small_products_write_nothing_beside_their_result():
    """Columns that do not fill a vector: nan after an operand has no effect."""
    wide = np.full((8, 32), np.nan, "float32")
    wide[:, :5] = data((8, 5), "float32")
    rows = np.ascontiguousarray(wide[:, :5])
    check(call_kernel("mm", wide[:, :5].T, wide[:, :5])[0], rows.T @ rows, "float32", 8)
    check(call_kernel("mm", wide[:, :5], wide[:, :5].T)[0], rows @ rows.T, "float32", 5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [*itertools.product([False, True], repeat=2)])
def test_products_in_blocks_of_all_sizes(dtype, transposed):
    """Integer products are exact in any order: remainders of blocks, strides, an addend, in place."""
    generator = np.random.default_rng(0)

    def operand(rows, columns, turned):
        made = generator.integers(-8, 9, (columns, rows) if turned else (rows, columns)).astype(dtype)
        return made.T if turned else made

    for m, k, n in [*itertools.product([4, 9, 16, 19, 70], [8, 24, 29], [15, 16, 17, 31, 32, 48, 50, 64, 97, 112]),
                    *itertools.product([6, 17, 65], [511, 512, 513, 1100], [32, 99, 112]), (150, 40, 1000),
                    (3000, 24, 32), (20, 40, 1024), (1024, 30, 40), (40, 100, 512)]:
        a, b = operand(m, k, transposed[0]), operand(k, n, transposed[1])
        product = a.astype("float64") @ b.astype("float64")
        np.testing.assert_array_equal(call_kernel("mm", a, b)[0], product)
        for shape in [(m, n), (n,), (m, 1), ()]:
            addend = generator.integers(-8, 9, shape).astype(dtype)
            np.testing.assert_array_equal(call_kernel("addmm", addend, a, b, 1, 1)[0], product + addend)
        total = operand(m, n, False)
        expected = total + product
        call_kernel("add_product_into", total, a, b)
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k", "n"), [(16, 64, 64), (16, 64, 256), (40, 600, 100), (64, 784, 256), (130, 40, 50),
                                           (20, 30, 512)])
def test_bits_of_products_in_blocks(m, k, n, dtype):
    """Results of a row depend neither on the layout of the other matrix nor on other rows."""
    a, b = data((m, k), dtype), data((k, n), dtype, 1)
    found = call_kernel("mm", a, b)[0]
    turned = call_kernel("mm", a, np.ascontiguousarray(b.T).T)[0]
    if same_bits_by_rows(a.itemsize, m, n, k):
        np.testing.assert_array_equal(found, turned)
        np.testing.assert_array_equal(found[3:12], call_kernel("mm", a[3:12], b)[0])
        np.testing.assert_array_equal(found, call_kernel("mm", np.ascontiguousarray(a.T).T, b)[0])
    check(turned, found, dtype, k)


def test_what_blocks_are_for():
    """Enough rows to turn a matrix for, and any inner dimension; where there are vectors of eight numbers."""
    vectors = same_bits_by_rows(4, 16, 64, 64)
    assert all(same_bits_by_rows(4, *sizes) == vectors for sizes in [(64, 256, 784), (160, 512, 10000)])
    assert not any(same_bits_by_rows(4, *sizes) for sizes in [(8, 64, 64), (1, 64, 64), (1024, 32000, 1000)])
    assert not same_bits_by_rows(2, 16, 64, 64) and same_bits_by_rows(8, 16, 64, 64) == vectors


@pytest.mark.parametrize("sizes", [(64, 256, 784), (160, 512, 3000), (70, 100, 10000)])
def test_long_sums_are_bit_identical_for_transposed_and_copied_operands(sizes):
    m, n, k = sizes
    a, b = data((m, k), "float32"), data((n, k), "float32", seed=1)
    found = call_kernel("mm", a, b.T)[0]
    if same_bits_by_rows(4, m, n, k):
        np.testing.assert_array_equal(found, call_kernel("mm", a, np.ascontiguousarray(b.T))[0])
    check(found, a.astype(float) @ b.T.astype(float), "float32", k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 0, 4), (5, 1, 3, 4)])
def test_linear(dtype, shape):
    x, weight, bias = data(shape, dtype), data((6, 4), dtype, seed=1), data((6,), dtype, seed=2)
    for left, right in itertools.product(layouts(x).values(), layouts(weight).values()):
        check(call_kernel("linear", left, right, None)[0], x @ weight.T, dtype)
        check(call_kernel("linear", left, right, bias)[0], x @ weight.T + bias, dtype)
    check(call_kernel("linear", x, weight, bias[::-1])[0], x @ weight.T + bias[::-1], dtype)
    check(call_kernel("linear", x, weight, bias[:1])[0], x @ weight.T + bias[:1], dtype)
    check(call_kernel("linear", x, weight, np.array(bias[0]))[0], x @ weight.T + bias[0], dtype)
    check(call_kernel("linear", x, weight[0], None)[0], x @ weight[0], dtype)


@pytest.mark.parametrize("dtype", [*FLOATING, "int16", "int64"])
@pytest.mark.parametrize(("name", "shapes"), [
    ("mm", [(512, 300), (300, 700)]),
    ("mm", [(1, 3000), (3000, 900)]),
    ("mm", [(64, 1000), (1000, 1100)]),
    ("mv", [(900, 3000), (3000,)]),
    ("bmm", [(50, 40, 30), (50, 30, 20)]),
    ("matmul", [(5, 100, 200), (200, 300)]),
    ("dot", [(300_001,), (300_001,)]),
    ("outer", [(500,), (700,)]),
    ("linear", [(300, 200), (500, 200), (500,)]),
])
def test_the_bits_do_not_depend_on_the_number_of_threads(name, shapes, dtype, threads):
    operands = [data(shape, dtype, seed=i) for i, shape in enumerate(shapes)]
    if name == "linear" and len(operands) < 3:
        operands.append(None)
    results = []
    for n in (1, 2, 3, 8):
        threads(n)
        results.append(call_kernel(name, *operands)[0])
    for result in results[1:]:
        assert result.tobytes() == results[0].tobytes()


@pytest.mark.parametrize(("name", "shapes", "error", "match"), [
    ("mm", [(2, 3), (2, 3)], RuntimeError, r"mm: mat1 and mat2 shapes cannot be multiplied \(got \(2, 3\) and"),
    ("mm", [(2, 3), (3,)], RuntimeError, r"mm: mat2 must be a matrix \(got shape \(3,\), expected 2 dimensions\)"),
    ("bmm", [(2, 3, 4), (2, 3, 4)], RuntimeError, r"first two dimensions of batch2 tensor to be: \[2, 4\]"),
    ("bmm", [(2, 3), (2, 3, 4)], RuntimeError, r"bmm: batch1 must be a 3-D tensor \(got shape \(2, 3\)"),
    ("mv", [(2, 3), (2,)], RuntimeError, "mv: size mismatch, the matrix has 3 columns and the vector 2 elements"),
    ("mv", [(2, 3), (3, 1)], RuntimeError, "mv: vec must be a vector"),
    ("dot", [(2,), (3,)], RuntimeError, "dot: inconsistent tensor size"),
    ("dot", [(2, 2), (3,)], RuntimeError, "dot: 1D tensors expected, but got 2D and 1D"),
    ("vdot", [(2,), (3,)], RuntimeError, "vdot: inconsistent tensor size"),
    ("outer", [(2, 2), (3,)], RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
    ("outer", [(2,), ()], RuntimeError, "outer: Expected 1-D argument vec2, but got 0-D"),
    ("matmul", [(), (3,)], RuntimeError, "matmul: both arguments to matmul need to be at least 1D"),
    ("matmul", [(2, 3), (2,)], RuntimeError, "matmul: mat1 and mat2 shapes cannot be multiplied"),
    ("matmul", [(3,), (2, 2)], RuntimeError, "matmul: mat1 and mat2 shapes cannot be multiplied"),
    ("matmul", [(5, 2, 3), (4, 3, 2)], RuntimeError, r"size of tensor a \(5\) must match the size of tensor b \(4\)"),
    ("addmm", [(3,), (2, 3), (3, 2)], RuntimeError, r"addmm: cannot broadcast input of shape \(3,\) to the product"),
    ("addmm", [(1, 2, 2), (2, 3), (3, 2)], RuntimeError, "addmm: cannot broadcast input of shape"),
    ("addmm", [(2,), (2,), (2, 2)], RuntimeError, "addmm: mat1 must be a matrix"),
    ("addmm", [(2,), (2, 3), (2, 2)], RuntimeError, "addmm: mat1 and mat2 shapes cannot be multiplied"),
    ("linear", [(4, 2), (3, 3)], RuntimeError, "linear: mat1 and mat2 shapes cannot be multiplied"),
    ("linear", [(4, 3), (3, 3), (2,)], RuntimeError, r"linear: cannot broadcast bias of shape \(2,\)"),
    ("linear", [(2, 4, 3), (3, 3), (8, 3)], RuntimeError, r"linear: cannot broadcast bias of shape \(8, 3\)"),
    ("linear", [(), (3, 3)], RuntimeError, "linear: input must have at least one dimension"),
    ("linear", [(4, 3), (3,), (1,)], RuntimeError, "linear: weight must be a matrix"),
    ("linear", [(4, 3), (1, 3, 3)], RuntimeError, "linear: weight must be a matrix, or a vector"),
])
def test_shapes_that_do_not_fit(name, shapes, error, match):
    with pytest.raises(error, match=match):
        call_kernel(name, *[data(shape, "float64") for shape in shapes])


@pytest.mark.parametrize(("name", "shapes"), [("mm", [(2, 2)] * 2), ("bmm", [(2, 2, 2)] * 2), ("mv", [(2, 2), (2,)]),
                                          ("dot", [(2,)] * 2), ("vdot", [(2,)] * 2), ("matmul", [(2, 2)] * 2),
                                          ("addmm", [(2, 2)] * 3), ("linear", [(2, 2), (2, 2), (2,)])])
def test_dtypes_that_do_not_fit(name, shapes):
    operands = [data(shape, "float64") for shape in shapes]
    operands[1] = operands[1].astype("float32")
    with pytest.raises(RuntimeError, match=rf"{name}: expected the operands to have the same dtype \(got float64 and "
                                           r"float32\)"):
        call_kernel(name, *operands)
    with pytest.raises(NotImplementedError, match=f"{name}: not implemented for bool"):
        call_kernel(name, *[data(shape, "float64") > 0 for shape in shapes])
    with pytest.raises(TypeError, match=f"{name}: argument 1 must be a tensor"):
        call_kernel(name, None, *operands[1:])


@pytest.mark.parametrize(("factors", "match"), [
    ((1j, 1), "beta cannot be a complex number for operands of dtype float64"),
    ((1, 1j), "alpha cannot be a complex number for operands of dtype float64"),
    ((1, "x"), "alpha must be a number"),
])
def test_factors_that_do_not_fit(factors, match):
    a = data((2, 2), "float64")
    with pytest.raises((RuntimeError, TypeError), match=match):
        call_kernel("addmm", a, a, a, *factors)
    with pytest.raises(RuntimeError, match="addmm: beta cannot be a floating-point number"):
        call_kernel("addmm", *[a.astype(int)] * 3, 1.5, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 300, 70), (3, 70, 1), (2, 1, 90), (1, 65, 66), (4, 40, 129)])
def test_outer_products(shape, dtype):
    """Columns times rows, each product rounded once; steps of any kind."""
    n, rows, columns = shape
    random = np.random.default_rng(1)
    a, b = random.standard_normal((n, rows)).astype(dtype), random.standard_normal((n, columns)).astype(dtype)
    a[0, 0], b[0, -1] = np.inf, np.nan
    wanted = a[:, :, None] * b[:, None, :]
    x, y = cygrad.tensor(a), cygrad.tensor(b)
    spread = cygrad.tensor(np.repeat(a, 2, axis=1))[:, ::2]
    for left, right in ((x, y), (spread, y), (x.t().contiguous().t(), y.t().contiguous().t()), (x, y.flip(1).flip(1))):
        np.testing.assert_array_equal((left.unsqueeze(2) @ right.unsqueeze(1)).numpy(), wanted)
    np.testing.assert_array_equal(cygrad.outer(x[0], y[0]).numpy(), wanted[0])
    addend = cygrad.ones(n, rows, columns, dtype=x.dtype)
    np.testing.assert_allclose(cygrad.baddbmm(addend, x.unsqueeze(2), y.unsqueeze(1), alpha=2).numpy(), 1 + 2 * wanted,
                               rtol=1e-5)
