"""Indexing kernels: advanced indexing, gather, scatter, rows, masks, and their gradients."""


import numpy as np
import pytest

from cygrad._core.testing.interop import call_kernel

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]
INDEX_DTYPES = ["uint8", "int8", "int16", "int32", "int64"]


def call(name, *arguments):
    """The single result of a kernel."""
    return call_kernel(name, *arguments)[0]


def numbers(shape, dtype="float64"):
    """Distinct small numbers (as far as the dtype has them)."""
    values = np.arange(int(np.prod(shape))) % 100
    if dtype == "bool":
        values = values % 3 == 0
    if dtype.startswith("complex"):
        values = values + 1j * (values + 1)
    return np.asarray(values).astype(dtype).reshape(shape)


def layouts(shape, dtype="float64"):
    """The same numbers contiguous, transposed, reversed and with gaps."""
    array = numbers(shape, dtype)
    yield array
    yield np.asfortranarray(array)
    reverse = (slice(None, None, -1),) * array.ndim
    yield np.ascontiguousarray(array[reverse])[reverse]
    gaps = np.zeros([2 * n for n in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
    gaps[...] = array
    yield gaps


def same(result, expected):
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


def full(entries):
    """Kernel entries as a NumPy index."""
    return tuple(slice(None) if entry is None else entry for entry in entries)


I = np.array  # noqa: E741
MASK = np.array([True, False, True, True])
ENTRIES = [
    [I([1, -1, 0])], [None, I([3, 0])], [None, None, I([2, 2, 0, -3])], [I([[0, 1], [1, 0]]), None, I([2])],
    [I([0, 1]), I([1, 3])], [None, I([[0], [3]]), I([0, 2])], [I([0, 1]), I([1, 3]), I([2, 0])], [I(1), None, I([0,
                                                                                                                 1])],
    [None, MASK], [None, MASK, I([0, 1, 2])], [I([1]), None, I([True, False, True])],
    [np.arange(24).reshape(2, 4, 3) % 5 == 1], [np.arange(8).reshape(2, 4) > 3], [None, np.arange(12).reshape(4,
                                                                                                              3) > 8],
    [I(True)], [I(False)], [None, I(True), I([0])], [np.zeros((0,), "int64")], [None, np.zeros((2, 0), "int64")],
    [None, np.zeros(4, bool)], [I(0)], [I([0]), I([[1]]), I([[[2]]])], [None, None, None, I(True)],
]


# ---- index

@pytest.mark.parametrize("entries", ENTRIES, ids=range(len(ENTRIES)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_index(entries, dtype):
    for array in layouts((2, 4, 3), dtype):
        same(call("index", array, entries), array[full(entries)])


@pytest.mark.parametrize("entries", ENTRIES, ids=range(len(ENTRIES)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_index_put(entries, dtype):
    for array in layouts((2, 4, 3), dtype):
        values = numbers(array[full(entries)].shape, dtype)[::-1] if array[full(entries)].ndim else I(1).astype(dtype)
        expected, target = array.copy(), array
        expected[full(entries)] = values
        same(call("index_put", target, entries, values, False), expected)
        same(target, expected)


@pytest.mark.parametrize("entries", ENTRIES, ids=range(len(ENTRIES)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_index_accumulate_and_backward(entries, dtype):
    for array in layouts((2, 4, 3), dtype):
        values = numbers(array[full(entries)].shape, dtype)
        expected = array.copy()
        np.add.at(expected, full(entries), values)
        same(call("index_put", array, entries, values, True), expected)
        expected = np.zeros_like(expected)
        np.add.at(expected, full(entries), values)
        same(call("index_backward", values, [2, 4, 3], entries), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_index_dtypes_and_strides(dtype):
    array = numbers((5, 6))
    index = I([[0, 9, 1], [9, 9, 9], [4, 9, -1]], dtype)[::2, ::-2]
    same(call("index", array, [index]), array[index])
    same(call("index", array, [index, index]), array[index, index])


def test_index_large_is_right():
    generator = np.random.default_rng(1)
    array = generator.random((300, 70))
    rows, columns = generator.integers(-300, 300, 100_000), generator.integers(-70, 70, 100_000)
    same(call("index", array, [rows, columns]), array[rows, columns])
    same(call("index", array, [rows]), array[rows])
    same(call("index", array, [None, columns[:5000]]), array[:, columns[:5000]])
    wide = generator.random((3, 100, 1300))
    grad = generator.random((3, 500, 1300))
    expected = np.zeros_like(wide)
    np.add.at(expected, (slice(None), rows[:500] % 100), grad)
    same(call("index_backward", grad, [3, 100, 1300], [None, rows[:500] % 100]), expected)
    mask = generator.random((300, 70)) > 0.4
    same(call("index", array, [mask]), array[mask])
    many = generator.random(500_000) > 0.7
    same(call("nonzero", many), np.argwhere(many))


def test_index_put_values():
    array = numbers((2, 3))
    call("index_put", array, [I([0])], 7, False)
    same(array[0], np.full(3, 7.0))
    call("index_put", array, [None, I([1])], np.array(2.5), False)
    same(array[:, 1], np.full(2, 2.5))
    call("index_put", array, [I([0, 0, 0]), I([0, 0, 0])], I([1.0, 2.0, 3.0]), False)
    assert array[0, 0] == 3.0
    call("index_put", array, [I([1])], numbers((1, 3)), False)
    same(array[1], numbers((3,)))


def test_index_put_from_its_own_memory():
    array = np.arange(6.0)
    call("index_put", array, [np.arange(1, 6)], array[:5], False)
    same(array, I([0.0, 0, 1, 2, 3, 4]))
    index = I([2, 0, 1])
    call("index_put", index, [index], I([5, 6, 7]), False)
    same(index, I([6, 7, 5]))


INDEX_ERRORS = [
    (IndexError, "index: index 5 is out of bounds for dimension 0 with size 2", [I([0, 5])]),
    (IndexError, "index -3 is out of bounds for dimension 0 with size 2", [I([-3])]),
    (IndexError, "index 9223372036854775807 is out of bounds", [I([2**63 - 1])]),
    (IndexError, "index -9223372036854775808 is out of bounds", [I([-(2**63)])]),
    (IndexError, "index 3 is out of bounds for dimension 1 with size 3", [None, I([3])]),
    (IndexError, r"cannot be broadcast together \(got \(2,\), \(3,\)\)", [I([0, 1]), I([0, 1, 2])]),
    (IndexError, r"mask 0 has the wrong shape \(got \(1,\), expected \(2,\)", [I([True])]),
    (IndexError, "too many indices", [I([0]), I([0]), I([0])]),
    (IndexError, "too many indices", [None, None, None, I([0])]),
    (IndexError, "too many indices", [I([0]), np.ones((3, 2), bool)]),
    (IndexError, r"indices must be integers \(got float64", [I([0.0])]),
    (IndexError, "uint8 indices could be meant as a mask", [I([0], "uint8")]),
]


@pytest.mark.parametrize(("error", "text", "entries"), INDEX_ERRORS)
def test_index_errors(error, text, entries):
    array = numbers((2, 3))
    with pytest.raises(error, match=text):
        call("index", array, entries)
    with pytest.raises(error):
        call("index_put", array, entries, 1.0, False)
    same(array, numbers((2, 3)))


def test_index_put_errors():
    array = numbers((2, 3))
    for error, text, arguments in [
        (RuntimeError, r"dtypes differ \(got values of float32, expected float64\)", (I([1], "float32"), False)),
        (RuntimeError, r"index_put: shape \(2,\) cannot be broadcast to \(1, 3\)", (I([1.0, 2.0]), False)),
        (RuntimeError, "complex", (1j, False)),
        (TypeError, "must be a number", (None, False)),
    ]:
        with pytest.raises(error, match=text):
            call("index_put", array, [I([0])], *arguments)
    with pytest.raises(RuntimeError, match="share a memory location"):
        call("index_put", np.lib.stride_tricks.as_strided(array, (2, 3), (0, 8)), [I([0])], 1.0, False)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        call("index_put", array, [I([0])], 1.0, False)
    with pytest.raises(RuntimeError, match="wrong shape"):
        call("index_backward", array, [4], [I([0])])
    with pytest.raises(IndexError, match="dimension 0 with size 0"):
        call("index", np.zeros((0, 3)), [I([0])])


# ---- gather and scatter

@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter(dtype, dim):
    generator = np.random.default_rng(2)
    for array in layouts((3, 4, 5), dtype):
        for shape in [(3, 4, 5), (2, 3, 4), (1, 1, 1), (2, 0, 3)]:
            larger = list(shape)
            larger[dim] += 3 if 0 not in shape else 0
            index = generator.integers(0, array.shape[dim], larger)
            part = tuple(slice(n) if d != dim % 3 else slice(None) for d, n in enumerate(larger))
            same(call("gather", array, dim, index), np.take_along_axis(array[part], index, dim))
            for one in (index, index[::-1, ::-1, ::-1], np.asfortranarray(index).astype("int32")):
                source = numbers([n + 1 for n in larger], dtype)
                for name in ("scatter", "scatter_add"):
                    expected = array.copy()
                    for place in np.ndindex(*larger):
                        target = list(place)
                        target[dim] = one[place]
                        target = tuple(target)
                        if name == "scatter":
                            expected[target] = source[place]
                        else:
                            np.add.at(expected, target, source[place])
                    same(call(name, array, dim, one, source), expected)
                    target = array.copy()
                    call(f"{name}_into", target, dim, one, source)
                    same(target, expected)


def test_scatter_numbers_and_zero_dim():
    array = numbers((2, 3))
    same(call("scatter", array, 1, I([[0], [2]]), 9), I([[9.0, 1, 2], [3, 4, 9]]))
    same(call("scatter_add", array, 0, I([[1, 1, 1], [1, 1, 0]]), 1.5), I([[0, 1, 3.5], [6, 7, 6.5]]))
    same(call("gather", I(3.0), 0, I(0)), I(3.0))
    same(call("gather", I(3.0), 0, I([0, 0])), I([3.0, 3.0]))
    same(call("gather", I([3.0, 4.0]), 0, I(1)), I(4.0))
    same(call("scatter", I(3.0), 0, I(0), I(5.0)), I(5.0))
    same(call("scatter", I([3.0, 4.0]), 0, I(1), I([5.0, 6.0])), I([3.0, 5.0]))
    same(call("gather", array, 0, np.zeros((0,), "int64")), np.zeros((0,)))
    call("scatter_into", array, 0, np.ones((1, 3), "int64"), array)
    same(array, I([[0.0, 1, 2], [0, 1, 2]]))
    index = I([1, 0])
    call("scatter_into", index, 0, index, I([7, 8]))
    same(index, I([8, 7]))


def test_take_along_dim():
    array = numbers((3, 4))
    wide = np.broadcast_to(I([[-1, 0]]), (3, 2))
    same(call("take_along_dim", array, wide[:1], 1), np.take_along_axis(array, wide, 1))
    same(call("take_along_dim", array[:1], np.zeros((5, 4), "int64"), 0), np.repeat(array[:1], 5, 0))
    same(call("take_along_dim", array[:, :1], I([[0, 1, 2, 0]]), 0), I([[0.0, 4, 8, 0]]))
    same(call("take_along_dim", array.T, I([[4, 5], [-1, 0]]), None), array.T.reshape(-1)[[4, 5, -1, 0]])


@pytest.mark.parametrize(("error", "text", "name", "arguments"), [
    (RuntimeError, "gather: index 5 is out of bounds for dimension 0 with size 2", "gather", (0, I([[5]]))),
    (RuntimeError, "gather: index -1 is out of bounds", "gather", (0, I([[-1]]))),
    (RuntimeError, "differ in their number of dimensions", "gather", (0, I([0]))),
    (RuntimeError, "index is larger than self in dimension 1", "gather", (0, I([[0, 0, 0, 0]]))),
    (RuntimeError, "indices must be integers", "gather", (0, I([[0.0]]))),
    (IndexError, "gather: dimension out of range", "gather", (2, I([[0]]))),
    (RuntimeError, "scatter: index 5 is out of bounds", "scatter", (0, I([[5]]), 1.0)),
    (RuntimeError, "scatter: index 5 is out of bounds", "scatter_into", (0, I([[0, 0, 5]]), 1.0)),
    (RuntimeError, "scatter_add: index -2 is out of bounds", "scatter_add_into", (0, I([[0, -2]]), np.ones((2, 3)))),
    (RuntimeError, "scatter: dtypes differ", "scatter", (0, I([[0]]), np.ones((2, 3), "float32"))),
    (RuntimeError, "larger than self in dimension 1", "scatter", (0, I([[0] * 4]), 1.0)),
    (RuntimeError, "larger than src in dimension 0", "scatter", (0, np.zeros((3, 2), "int64"), np.ones((2, 3)))),
    (RuntimeError, "complex", "scatter", (0, I([[0]]), 1j)),
    (TypeError, "must be a number", "scatter", (0, I([[0]]), None)),
    (TypeError, "'index' has the wrong type", "scatter", (0, 3, 1.0)),
    (RuntimeError, "take_along_dim: index 5 is out of bounds", "take_along_dim", (I([[5]]), 0)),
    (RuntimeError, "differ in their number of dimensions", "take_along_dim", (I([0]), 0)),
    (RuntimeError, "cannot broadcast the shapes except in dimension 0", "take_along_dim", (I([[0, 1]]), 0)),
])
def test_gather_errors(error, text, name, arguments):
    array = numbers((2, 3))
    with pytest.raises(error, match=text):
        call_kernel(name, array, *arguments)
    same(array, numbers((2, 3)))


# ---- rows

@pytest.mark.parametrize("dtype", DTYPES)
def test_index_select_and_add(dtype):
    for array in layouts((4, 3, 5), dtype):
        for dim, index in [(0, I([3, 0, 3])), (1, I([2])), (-1, I([4, 4, 0, 1])), (1, np.zeros(0, "int64")), (0, I(1))]:
            rows = np.atleast_1d(index)
            same(call("index_select", array, dim, index), np.take(array, rows, dim))
            source = numbers(np.take(array, rows, dim).shape, dtype)
            expected = array.copy()
            np.add.at(expected, (slice(None),) * (dim % 3) + (rows,), source)
            same(call("index_add", array, dim, index, np.asfortranarray(source), 1), expected)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 11])
def test_elements_of_several_rows(rows):
    for array in layouts((2, rows, 70)):
        for index in (I([69]), I([3, 0, 3, 69, 7])):
            same(call("index_select", array, 2, index), np.take(array, index, 2))
    array = numbers((500, 128))
    same(call("index_select", array, 1, np.arange(127, -1, -1)), array[:, ::-1])


def test_index_add_scaled():
    array, source = numbers((3, 2)), numbers((2, 2)) + 1
    expected = array.copy()
    np.add.at(expected, I([2, 2]), 2.5 * source)
    same(call("index_add", array, 0, I([2, 2]), source, 2.5), expected)
    same(call("index_add", array, 0, I([2, 2]), source, None), call("index_add", array, 0, I([2, 2]), source, 1.0))
    same(call("index_add", I([1, 2]), 0, I([1]), I([3]), -2), I([1, -4]))
    same(call("index_add", I(2.0), 0, I([0]), I(3.0), 2), I(8.0))
    same(call("index_select", I(2.0), 0, I([0])), I(2.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", INDEX_DTYPES)
def test_embedding(dtype, index_dtype):
    for weight in layouts((6, 3), dtype):
        for index in (I([[1, 5], [0, 1]]), I(2), np.zeros((2, 0)), I([3, 3, 3])):
            index = index.astype(index_dtype)
            same(call("embedding", weight, index, None), weight[index])
            grad = numbers((*index.shape, 3), dtype)
            for padding in (-1, 1):
                expected = np.zeros((6, 3), dtype)
                chosen = index != padding
                np.add.at(expected, index[chosen], grad[chosen])
                same(call("embedding_backward", grad, index, 6, padding), expected)


def test_one_hot():
    index = I([[0, 2], [1, 2]])
    same(call("one_hot", index, -1), np.eye(3, dtype="int64")[index])
    same(call("one_hot", index.T, 5), np.eye(5, dtype="int64")[index.T])
    same(call("one_hot", I(1), 2), I([0, 1]))
    same(call("one_hot", np.zeros((0, 2), "int64"), 3), np.zeros((0, 2, 3), "int64"))


@pytest.mark.parametrize(("error", "text", "name", "arguments"), [
    (IndexError, "index_select: index 5 is out of bounds for dimension 0 with size 2", "index_select", (0, I([5]))),
    (IndexError, "index_select: index -1 is out of bounds", "index_select", (0, I([-1]))),
    (IndexError, "index must be a vector", "index_select", (0, I([[0]]))),
    (RuntimeError, "indices must be integers", "index_select", (0, I([0.0]))),
    (RuntimeError, "index_add: index 5 is out of bounds", "index_add", (0, I([5]), np.ones((1, 3)), 1)),
    (RuntimeError, "'source' has the wrong shape", "index_add", (0, I([0]), np.ones((2, 3)), 1)),
    (RuntimeError, "index_add: dtypes differ", "index_add", (0, I([0]), np.ones((1, 3), "float32"), 1)),
    (RuntimeError, "complex", "index_add", (0, I([0]), np.ones((1, 3)), 1j)),
    (IndexError, "embedding: index 5 is out of bounds for dimension 0 with size 2", "embedding", (I([5]), -1)),
    (IndexError, "embedding: index -1 is out of bounds", "embedding", (I([-1]), -1)),
    (RuntimeError, "indices must be integers", "embedding", (I([True]), -1)),
    (RuntimeError, "'grad' has the wrong shape", "embedding_backward", (I([0]), 4, -1)),
    (RuntimeError, "classes must be int64", "one_hot", (-1,)),
])
def test_row_errors(error, text, name, arguments):
    with pytest.raises(error, match=text):
        call_kernel(name, numbers((2, 3)), *arguments)


def test_more_row_errors():
    with pytest.raises(RuntimeError, match="weight must be a matrix"):
        call("embedding", np.ones(3), I([0]), -1)
    with pytest.raises(IndexError, match="embedding_backward: index 4 is out of bounds"):
        call("embedding_backward", np.ones((1, 2)), I([4]), 4, -1)
    with pytest.raises(RuntimeError, match="class out of range"):
        call("one_hot", I([0, -2]), -1)
    with pytest.raises(RuntimeError, match="class out of range"):
        call("one_hot", I([0, 2]), 2)
    with pytest.raises(RuntimeError, match="cannot be told from an empty tensor"):
        call("one_hot", np.zeros(0, "int64"), -1)


# ---- masks

@pytest.mark.parametrize("dtype", DTYPES)
def test_masks(dtype):
    for array in layouts((2, 4, 3), dtype):
        for mask in (
            np.arange(24).reshape(2, 4, 3) % 3 == 1, I([True, False, True]), I(True),
            np.arange(8).reshape(2, 4, 1) > 2, (np.arange(24).reshape(3, 4, 2) % 5 > 2).T, np.zeros((1, 1, 3), bool),
        ):
            wide = np.broadcast_to(mask, array.shape)
            same(call("masked_select", array, mask), array[wide])
            for value in (1, I(1, dtype)):
                expected = np.where(wide, I(1, dtype), array)
                same(call("masked_fill", array, mask, value), expected)
                target = array.copy("K")
                call("masked_fill_into", target, mask, value)
                same(target, expected)
        same(call("nonzero", array), np.argwhere(array))


def test_mask_shapes():
    same(call("masked_fill", I(3.0), I([True, False]), 1), I([1.0, 3.0]))
    same(call("masked_select", I(3.0), I(True)), I([3.0]))
    same(call("masked_select", np.zeros((0, 3)), I([True, False, True])), np.zeros(0))
    same(call("nonzero", I(3.0)), np.zeros((1, 0), "int64"))
    same(call("nonzero", I(0.0)), np.zeros((0, 0), "int64"))
    same(call("nonzero", np.zeros((2, 0))), np.zeros((0, 2), "int64"))
    same(call("nonzero", I([0.0, -0.0, np.nan, 1e-300])), I([[2], [3]]))
    same(call("masked_fill", I([1, 2]), I([True, False]), 1.5), I([1, 2]))
    target = np.arange(6.0).reshape(2, 3)
    call("masked_fill_into", target.T[::-1], I([True, False]), -1)
    same(target, I([[-1.0, -1, -1], [3, 4, 5]]))


@pytest.mark.parametrize(("error", "text", "name", "arguments"), [
    (RuntimeError, "mask cannot be broadcast", "masked_fill", (I([True, False]), 1)),
    (RuntimeError, "the mask must be bool", "masked_fill", (I([1, 0, 1]), 1)),
    (RuntimeError, "complex", "masked_fill", (I(True), 1j)),
    (RuntimeError, "complex", "masked_fill", (I(True), I(1j))),
    (RuntimeError, "0-dim tensor", "masked_fill", (I(True), I([1.0]))),
    (TypeError, "must be a number", "masked_fill", (I(True), None)),
    (RuntimeError, "mask is larger", "masked_fill_into", (np.ones((4, 2, 3), bool), 1)),
    (RuntimeError, "the mask must be bool", "masked_select", (I([1, 0, 1]),)),
    (RuntimeError, "mask cannot be broadcast", "masked_select", (I([True, False]),)),
    (TypeError, "'mask' has the wrong type", "masked_select", (True,)),
])
def test_mask_errors(error, text, name, arguments):
    with pytest.raises(error, match=text):
        call_kernel(name, numbers((2, 3)), *arguments)


# ---- against PyTorch

@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_index_fuzzed(torch):
    generator = np.random.default_rng(3)
    integer = lambda low, high: int(generator.integers(low, high))  # noqa: E731
    for _ in range(1500):
        shape = tuple(integer(1, 5) for _ in range(integer(1, 5)))
        array = numbers(shape).transpose(generator.permutation(len(shape)))
        entries, common = [], [(), (3,), (2, 1), (0,), (2, 3)]
        for size in array.shape[: integer(1, len(shape) + 1)]:
            kind = integer(0, 5)
            if kind == 0:
                entries.append(None)
            elif kind == 1:
                entries.append(generator.random(size) > 0.5)
            else:
                low = -size - (kind == 4 and integer(0, 20) == 0)
                entries.append(generator.integers(low, size, common[integer(0, 5)]))
        if all(entry is None for entry in entries):
            continue
        reference = torch.from_numpy(np.ascontiguousarray(array))
        index = [None if entry is None else torch.as_tensor(entry) for entry in entries]
        try:
            expected = torch.ops.aten.index(reference, index)
        except IndexError:
            with pytest.raises(IndexError):
                call("index", array, entries)
            continue
        same(call("index", array, entries), expected.numpy())
        grad = generator.integers(0, 9, tuple(expected.shape)).astype("float64")
        total = torch.ops.aten.index_put(torch.zeros(array.shape, dtype=torch.float64), index, torch.from_numpy(grad),
                                         True)
        same(call("index_backward", grad, list(array.shape), entries), total.numpy())
