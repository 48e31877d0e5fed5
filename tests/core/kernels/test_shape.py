"""Shape kernels: views, copies, concatenation, padding, and their gradients."""


import numpy as np
import pytest

from cygrad._core.testing.interop import call_kernel

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]


def call(name, *arguments):
    """The single result of a kernel."""
    return call_kernel(name, *arguments)[0]


def view(name, *arguments):
    """The single result of a kernel, in its own memory."""
    return call_kernel(name, *arguments, raw=True)[0]


def numbers(shape, dtype="float64", start=0):
    """Distinct small numbers (as far as the dtype has them)."""
    count = int(np.prod(shape))
    values = np.arange(start, start + count) % 100
    if dtype == "bool":
        values = values % 3 == 0
    if dtype.startswith("complex"):
        values = values + 1j * (values + 1)
    return np.asarray(values).astype(dtype).reshape(shape)


def layouts(shape, dtype="float64"):
    """The same numbers contiguous, transposed, reversed, with gaps and with overlaps."""
    array = numbers(shape, dtype)
    yield array
    yield np.asfortranarray(array)
    if array.ndim and array.size:
        reverse = (slice(None, None, -1),) * array.ndim
        yield np.ascontiguousarray(array[reverse])[reverse]
        gaps = np.zeros([2 * n for n in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
        gaps[...] = array
        yield gaps


def shares(result, array):
    return np.shares_memory(result, array)


def same(result, expected):
    expected = np.asarray(expected)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


# ---- views

VIEWS = [
    ("transpose", (0, 2), lambda a: a.swapaxes(0, 2)),
    ("transpose", (-1, 1), lambda a: a.swapaxes(-1, 1)),
    ("transpose_all", (), lambda a: a.T),
    ("matrix_transpose", (), lambda a: a.swapaxes(-1, -2)),
    ("permute", ((2, 0, 1),), lambda a: a.transpose(2, 0, 1)),
    ("permute", ((-1, 1, -3),), lambda a: a.transpose(2, 1, 0)),
    ("movedim", ((0,), (-1,)), lambda a: np.moveaxis(a, 0, -1)),
    ("movedim", ((0, 2), (1, 0)), lambda a: np.moveaxis(a, (0, 2), (1, 0))),
    ("unsqueeze", (0,), lambda a: a[None]),
    ("unsqueeze", (-1,), lambda a: a[..., None]),
    ("unsqueeze", (2,), lambda a: a[:, :, None]),
    ("unflatten", (1, (2, -1)), lambda a: a.reshape(2, 2, 2, 3)),
    ("unflatten", (2, (3, 1)), lambda a: a.reshape(2, 4, 3, 1)),
    ("expand", ((5, -1, 4, 3),), lambda a: np.broadcast_to(a, (5, 2, 4, 3))),
    ("narrow", (1, 1, 2), lambda a: a[:, 1:3]),
    ("narrow", (1, -2, 2), lambda a: a[:, 2:4]),
    ("narrow", (0, 2, 0), lambda a: a[2:2]),
    ("select", (1, 3), lambda a: a[:, 3]),
    ("select", (-1, -1), lambda a: a[..., -1]),
    ("slice", (1, None, None, 2), lambda a: a[:, ::2]),
    ("slice", (1, -3, 100, 1), lambda a: a[:, -3:100]),
    ("slice", (0, 1, 0, 1), lambda a: a[1:0]),
    ("slice", (1, 1, None, 2**62), lambda a: a[:, 1::2**62]),
    ("slice", (1, -(2**63), 2**63 - 1, 3), lambda a: a[:, ::3]),
    ("diagonal", (0, 0, 1), lambda a: a.diagonal(0, 0, 1)),
    ("diagonal", (1, 1, -1), lambda a: a.diagonal(1, 1, 2)),
    ("diagonal", (-2, 1, 2), lambda a: a.diagonal(-2, 1, 2)),
    ("diagonal", (2**62, 1, 2), lambda a: a.diagonal(100, 1, 2)),
    ("unfold", (1, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1)),
    ("unfold", (1, 3, 2), lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, 1)[:, ::2]),
    ("alias", (), lambda a: a),
    ("squeeze", (None,), lambda a: a),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), VIEWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_views_of_all_layouts(name, arguments, expected, dtype):
    for array in layouts((2, 4, 3), dtype):
        result = view(name, array, *arguments)
        same(result, expected(array))
        assert result.size == 0 or shares(result, array)


def test_squeeze_of_some_dimensions():
    array = numbers((1, 3, 1, 1))
    assert view("squeeze", array, None).shape == (3,)
    assert view("squeeze", array, [0, 1]).shape == (3, 1, 1)
    assert view("squeeze", array, -1).shape == (1, 3, 1)
    assert view("squeeze", array, []).shape == (1, 3, 1, 1)


@pytest.mark.parametrize(("old", "new", "expected"), [
    ((2, 3), (6,), (6,)), ((2, 3), (3, -1), (3, 2)), ((), (1, 1), (1, 1)), ((1,), (), ()),
    ((0, 3), (3, 0, 5), (3, 0, 5)), ((0, 3), (-1, 3), (0, 3)), ((2, 1, 3), (1, 2, 3, 1), (1, 2, 3, 1)),
])
def test_view_and_reshape(old, new, expected):
    array = numbers(old)
    for name in ("view", "reshape"):
        result = view(name, array, list(new))
        same(result, array.reshape(expected))
        assert array.size == 0 or shares(result, array)


def test_view_of_strided_memory():
    array = numbers((4, 6))
    same(view("view", array.T[::2], [3, 2, 2]), array.T[::2].reshape(3, 2, 2))
    same(view("view", array[:, ::-2], [2, 2, 3, 1]), array[:, ::-2].reshape(2, 2, 3, 1))
    wide = np.broadcast_to(numbers((3,)), (4, 3))
    same(view("view", wide, [2, 2, 3]), wide.reshape(2, 2, 3))
    with pytest.raises(RuntimeError, match=r"view: shape \(24,\) needs a copy .*Use reshape"):
        call("view", array.T, [24])
    result = view("reshape", array.T, [24])
    same(result, array.T.reshape(24))
    assert not shares(result, array)


def test_flatten():
    array = numbers((2, 3, 4))
    same(view("flatten", array, 0, -1), array.reshape(24))
    same(view("flatten", array, 1, 2), array.reshape(2, 12))
    same(view("flatten", array, 1, 1), array)
    same(view("flatten", array.transpose(2, 0, 1), 1, 2), array.transpose(2, 0, 1).reshape(4, 6))
    same(view("flatten", np.array(3.0), 0, -1), np.array([3.0]))
    same(view("flatten", numbers((2, 0, 3)), 0, 1), np.zeros((0, 3)))


def test_zero_dim_views():
    array = np.array(3.0)
    for name, arguments in [("transpose", (0, -1)), ("permute", ([],)), ("matrix_transpose", ()), ("squeeze", (0,))]:
        same(view(name, array, *arguments), array)
    same(view("unfold", array, 0, 1, 1), np.array([3.0]))
    same(view("expand", array, [2, 2]), np.full((2, 2), 3.0))


def test_split_unbind():
    array = numbers((2, 7))
    for result, expected in [
        (view("split", array, [3, 0, 4], 1), np.split(array, [3, 3], 1)),
        (view("split", array, [3, 3, 1], -1), np.split(array, [3, 6], 1)),
        (view("unbind", array, 1), list(array.T)),
        (view("split", numbers((0, 2)), [0, 0, 0], 0), [np.zeros((0, 2))] * 3),
        (view("unbind", numbers((0, 2)), 0), []),
    ]:
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            same(one, other)
            assert one.size == 0 or shares(one, array)


@pytest.mark.parametrize(("dtype", "real"), [("complex64", "float32"), ("complex128", "float64")])
def test_complex_views(dtype, real):
    for array in layouts((3, 2), dtype):
        same(view("real_view", array), array.real)
        same(view("imag_view", array), array.imag)
        pairs = view("view_as_real", array)
        same(pairs, np.stack([array.real, array.imag], -1))
        same(view("view_as_complex", pairs), array)
    same(view("view_as_complex", numbers((5, 4), real)[:, 2:]), numbers((5, 4), real)[:, 2] + 1j * numbers((5, 4),
                                                                                                           real)[:, 3])
    same(view("real_view", numbers((3,), real)), numbers((3,), real))
    same(view("view_as_complex", np.zeros((0, 2), real)), np.zeros((0,), dtype))


def test_as_strided():
    memory = numbers((10,))
    part = memory[2:8:2]
    same(view("as_strided", memory, [3, 2], [1, 2], 1), np.array([[1.0, 3], [2, 4], [3, 5]]))
    same(view("as_strided", memory, [2, 2], [0, 5], None), np.array([[0.0, 5], [0, 5]]))
    same(view("as_strided", memory, [3], [-2], 9), np.array([9.0, 7, 5]))
    same(view("as_strided", part, [2], [1], 1), np.array([3.0, 4]))
    same(view("as_strided", memory, [0, 3], [99, 99], 4), np.zeros((0, 3)))
    same(view("as_strided", memory, [], [], 4), np.array(4.0))


# ---- errors of views

VIEW_ERRORS = [
    (RuntimeError, "view: shape .4, -1. is invalid for 6", "view", ([4, -1],)),
    (RuntimeError, "only one size can be inferred", "view", ([-1, -1],)),
    (RuntimeError, "negative size", "view", ([-5, 2],)),
    (RuntimeError, "too many elements", "view", ([2**40, 2**40],)),
    (RuntimeError, "too many dimensions", "view", ([1] * 65,)),
    (RuntimeError, "start_dim comes after", "flatten", (1, 0)),
    (IndexError, r"flatten: dimension out of range \(got 2, expected a value in \[-2, 1\]\)", "flatten", (0, 2)),
    (RuntimeError, "do not multiply up", "unflatten", (1, [2, 2])),
    (RuntimeError, "sizes must not be empty", "unflatten", (1, [])),
    (IndexError, "squeeze: dimension out of range", "squeeze", (5,)),
    (RuntimeError, "dimension 1 is given twice", "squeeze", ([1, -1],)),
    (IndexError, r"expected a value in \[-3, 2\]", "unsqueeze", (3,)),
    (RuntimeError, "permute: dimension 0 is given twice", "permute", ([0, 0],)),
    (RuntimeError, "permute: wrong number of dimensions", "permute", ([0],)),
    (IndexError, "permute: dimension out of range", "permute", ([0, 2],)),
    (RuntimeError, "movedim: source and destination differ", "movedim", ([0, 1], [0])),
    (RuntimeError, "movedim: source: dimension 0 is given twice", "movedim", ([0, 0], [0, 1])),
    (IndexError, "transpose: dimension out of range", "transpose", (0, 2)),
    (RuntimeError, "expand: shape .3,. has fewer dimensions", "expand", ([3],)),
    (RuntimeError, "expand: negative size", "expand", ([-1, 2, 3],)),
    (RuntimeError, r"expand: shape \(2, 3\) cannot be broadcast to \(2, 4\)", "expand", ([2, 4],)),
    (IndexError, "narrow: start out of range", "narrow", (0, 3, 1)),
    (RuntimeError, "narrow: length out of range", "narrow", (0, 0, 5)),
    (RuntimeError, "narrow: length out of range", "narrow", (0, 0, -1)),
    (IndexError, "select: index 5 is out of bounds for dimension 0 with size 2", "select", (0, 5)),
    (RuntimeError, "slice: step must be positive", "slice", (0, None, None, 0)),
    (RuntimeError, "the two dimensions are the same", "diagonal", (0, 1, -1)),
    (RuntimeError, "unfold: size out of range", "unfold", (0, 3, 1)),
    (RuntimeError, "unfold: size out of range", "unfold", (0, -1, 1)),
    (RuntimeError, "unfold: step must be positive", "unfold", (0, 1, 0)),
    (RuntimeError, "as_strided: out of bounds", "as_strided", ([7], [1], None)),
    (RuntimeError, "as_strided: out of bounds", "as_strided", ([2], [-1], 0)),
    (RuntimeError, "as_strided: out of bounds", "as_strided", ([2], [1], -1)),
    (RuntimeError, "as_strided: out of bounds", "as_strided", ([], [], 6)),
    (RuntimeError, "as_strided: out of bounds", "as_strided", ([2], [2**63 - 1], 0)),
    (RuntimeError, "as_strided: size and stride differ", "as_strided", ([7], [1, 1], None)),
    (RuntimeError, "as_strided: negative size", "as_strided", ([-1], [1], None)),
    (RuntimeError, "split: sizes do not add up", "split", ([1, 2], 0)),
    (RuntimeError, "split: sizes do not add up", "split", ([2**63 - 1, 2**63 - 1, 4], 0)),
    (RuntimeError, "view_as_complex: the last dimension", "view_as_complex", ()),
    (RuntimeError, "view_as_real: only complex", "view_as_real", ()),
    (RuntimeError, "imag: only complex", "imag_view", ()),
    (TypeError, "'dim0' has the wrong type", "transpose", (None, 1)),
    (TypeError, "'shape' has the wrong type", "view", (1.5,)),
]


@pytest.mark.parametrize(("error", "text", "name", "arguments"), VIEW_ERRORS)
def test_view_errors(error, text, name, arguments):
    with pytest.raises(error, match=text):
        call_kernel(name, numbers((2, 3)), *arguments)


@pytest.mark.parametrize(("error", "name", "arguments"), [
    (RuntimeError, "narrow", (0, 0, 1)), (IndexError, "select", (0, 0)), (IndexError, "slice", (0, 0, 1, 1)),
    (RuntimeError, "split", ([1], 0)), (IndexError, "unbind", (0,)),
    (RuntimeError, "tril", (0,)), (IndexError, "roll", (1, 0)), (RuntimeError, "unfold", (0, 2, 1)),
    (IndexError, "diagonal", (0, 0, 1)),
])
def test_zero_dim_errors(error, name, arguments):
    with pytest.raises(error):
        call_kernel(name, np.array(3.0), *arguments)


def test_view_as_complex_needs_pairs_side_by_side():
    for array in (np.asfortranarray(numbers((3, 2))), numbers((3, 4))[:, ::2], numbers((3, 3))[:, :2]):
        with pytest.raises(RuntimeError, match="side by side"):
            call("view_as_complex", array)
    with pytest.raises(RuntimeError, match="real floating"):
        call("view_as_complex", numbers((3, 2), "int64"))


def test_not_an_array():
    for name in ("view", "flip", "tril", "narrow", "clone", "unbind", "pad"):
        with pytest.raises(TypeError, match="'self' has the wrong type"):
            call_kernel(name, 3, 0, 0)


# ---- copies

COPIES = [
    ("contiguous", (), lambda a: a),
    ("clone", (), lambda a: a),
    ("flip", ([0, -1],), lambda a: a[::-1, :, ::-1]),
    ("flip", ([],), lambda a: a),
    ("roll", (1, 1), lambda a: np.roll(a, 1, 1)),
    ("roll", ([-5, 7], [0, 2]), lambda a: np.roll(a, (-5, 7), (0, 2))),
    ("roll", ([1, 1], [1, 1]), lambda a: np.roll(a, (1, 1), (1, 1))),
    ("roll", (5, []), lambda a: np.roll(a, 5)),
    ("tril", (0,), np.tril), ("tril", (-1,), lambda a: np.tril(a, -1)), ("tril", (10**12,), lambda a: a),
    ("triu", (1,), lambda a: np.triu(a, 1)), ("triu", (-(2**63),), lambda a: a),
    ("triu", (2**63 - 1,), np.zeros_like),
    ("repeat", ([2, 1, 3],), lambda a: np.tile(a, (2, 1, 3))),
    ("repeat", ([2, 1, 1, 1],), lambda a: np.tile(a, (2, 1, 1, 1))),
    ("repeat", ([0, 1, 2],), lambda a: np.tile(a, (0, 1, 2))),
    ("pad", ([1, 2], "constant", None), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 2)))),
    ("pad", ([0, 0, 1, 0, -1, 2], "constant", 1), lambda a: np.pad(a, ((0, 2), (1, 0), (0, 0)), constant_values=1)[1:]),
    ("pad", ([2, 1, 1, 1], "reflect", None), lambda a: np.pad(a, ((0, 0), (1, 1), (2, 1)), "reflect")),
    ("pad", ([2, 5, 1, 1], "replicate", None), lambda a: np.pad(a, ((0, 0), (1, 1), (2, 5)), "edge")),
    ("pad", ([3, 1, 1, 1], "circular", None), lambda a: np.pad(a, ((0, 0), (1, 1), (3, 1)), "wrap")),
    ("pad", ([-1, 1], "reflect", None), lambda a: np.pad(a, ((0, 0), (0, 0), (0, 1)), "reflect")[..., 1:]),
    ("pad", ([1, 1], "constant", 1), lambda a: np.pad(a, ((0, 0), (0, 0), (1, 1)), constant_values=1)),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), COPIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_of_all_layouts(name, arguments, expected, dtype):
    for array in layouts((2, 4, 3), dtype):
        result = view(name, array, *arguments)
        same(result, expected(array))
        assert (name == "contiguous" and array.flags.c_contiguous) or not shares(result, array)


@pytest.mark.parametrize(("name", "arguments"), [
    ("clone", ()), ("flip", ([0],)), ("roll", (1, 0)), ("roll", (1, [])), ("tril", (0,)), ("triu", (0,)),
    ("repeat", ([2, 2],)), ("contiguous", ()),
])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_zero_size_copies(name, arguments, shape):
    array = np.zeros(shape)
    expected = (shape[0] * 2, shape[1] * 2) if name == "repeat" else shape
    same(view(name, array, *arguments), np.zeros(expected))


def test_clone_keeps_a_dense_layout():
    array = numbers((2, 3, 4)).transpose(1, 2, 0)
    result = view("clone", array)
    same(result, array)
    assert result.strides == array.strides
    assert view("clone", numbers((4, 1)).T[:, ::-1]).strides[1] == 8
    assert view("clone", np.broadcast_to(numbers((3,)), (2, 3))).strides == (24, 8)


def test_cast():
    import cygrad._core.arrays.dtype as dtypes
    array = numbers((2, 3))
    code = next(d for d in vars(dtypes).values() if getattr(d, "name", None) == "float32")
    same(call("cast", array.T, code), array.T.astype("float32"))
    with pytest.raises(TypeError, match="dtype"):
        call("cast", array, 3)


@pytest.mark.parametrize(("error", "text", "name", "arguments"), [
    (RuntimeError, "flip: dimension 0 is given twice", "flip", ([0, -2],)),
    (RuntimeError, "must go in pairs", "roll", ([1, 2], 0)),
    (RuntimeError, "must go in pairs", "roll", ([1, 2], [])),
    (IndexError, "roll: dimension out of range", "roll", (1, 5)),
    (RuntimeError, "repeat: fewer repeats", "repeat", (2,)),
    (RuntimeError, "repeat: negative size", "repeat", ([-1, 2],)),
    (RuntimeError, "too many elements", "repeat", ([2**40, 2**20],)),
    (RuntimeError, "pad must hold a pair", "pad", ([1], "constant", 0)),
    (RuntimeError, "pad must hold a pair", "pad", ([1] * 6, "constant", 0)),
    (RuntimeError, "padding out of range", "pad", ([-2, -2], "constant", 0)),
    (RuntimeError, "padding out of range", "pad", ([3, 0], "reflect", 0)),
    (RuntimeError, "padding out of range", "pad", ([4, 0], "circular", 0)),
    (NotImplementedError, "unknown mode", "pad", ([1, 0], "mirror", 0)),
    (RuntimeError, "complex", "pad", ([1, 0], "constant", 1j)),
])
def test_copy_errors(error, text, name, arguments):
    with pytest.raises(error, match=text):
        call_kernel(name, numbers((2, 3)), *arguments)


def test_matrices_only():
    for name in ("tril", "triu"):
        with pytest.raises(RuntimeError, match="only matrices"):
            call(name, numbers((3,)), 0)


# ---- joining

@pytest.mark.parametrize("dtype", DTYPES)
def test_cat_and_stack(dtype):
    for one in layouts((2, 3), dtype):
        other = numbers((4, 3), dtype, 7)[::-1]
        same(call("cat", [one, other], 0), np.concatenate([one, other]))
        same(call("cat", [one, one[:, :1], one], -1), np.concatenate([one, one[:, :1], one], 1))
        for dim in (0, 1, 2, -1, -3):
            same(call("stack", [one, one[::-1]], dim), np.stack([one, one[::-1]], dim))


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(300, 5, 7), (3, 2000, 5), (2, 1, 40000)])
def test_rows_of_contiguous_arrays_are_joined_in_order(shape, dtype):
    """Rows shorter and longer than a tile; one of the arrays is empty."""
    one, other = numbers(shape, dtype), numbers(shape, dtype, 50)
    for dim in (1, 2):
        empty = one[tuple(slice(0, None if d != dim else 0) for d in range(3))]
        same(call("cat", [one, empty, other[:, :, ::-1].copy(), one], dim),
             np.concatenate([one, empty, other[:, :, ::-1], one], dim))
    for dim in (1, 2, 3):
        same(call("stack", [one, other, one], dim), np.stack([one, other, one], dim))


def test_cat_promotes_and_skips_legacy_empties():
    array = numbers((2, 3), "float32")
    same(call("cat", [array, numbers((1, 3), "int64")], 0), np.concatenate([array, numbers((1, 3), "float32")]))
    same(call("cat", [np.zeros(0), array], 0), array.astype("float64"))
    same(call("cat", [np.zeros(0), np.zeros(0)], 1), np.zeros(0))
    same(call("cat", [array[:0], array], 0), array)
    assert call("stack", [array, numbers((2, 3), "complex64")], 0).dtype == np.complex64
    same(call("stack", [np.array(1.0), np.array(2.0)], 0), np.array([1.0, 2.0]))


def test_join_errors():
    array = numbers((2, 3))
    with pytest.raises(ValueError, match="cat: the list of tensors is empty"):
        call("cat", [], 0)
    with pytest.raises(RuntimeError, match="cat: a 0-dim tensor cannot be concatenated"):
        call("cat", [np.array(1.0)], 0)
    with pytest.raises(RuntimeError, match=r"cat: shapes differ .*\(1, 2\) at entry 1, expected one like \(2, 3\)"):
        call("cat", [array, numbers((1, 2))], 0)
    with pytest.raises(RuntimeError, match="cat: shapes differ"):
        call("cat", [array, numbers((2,))], 0)
    with pytest.raises(IndexError, match="cat: dimension out of range"):
        call("cat", [array], 2)
    with pytest.raises(RuntimeError, match=r"stack: shapes differ .*\(2,\) at entry 1, expected \(2, 3\)"):
        call("stack", [array, numbers((2,))], 0)
    with pytest.raises(IndexError, match="stack: dimension out of range"):
        call("stack", [array], 3)
    with pytest.raises(TypeError, match="entry 1 of the list is not a tensor"):
        call("cat", [array, None], 0)


def test_cat_backward():
    grad = numbers((2, 6))
    parts = view("cat_backward", grad, [1, -1, 0, 5], 1)
    assert parts[1].shape == (0,)
    same(parts[0], grad[:, :1])
    same(parts[2], grad[:, 1:1])
    same(parts[3], grad[:, 1:])
    assert shares(parts[3], grad)
    with pytest.raises(RuntimeError, match="do not add up"):
        call("cat_backward", grad, [1, 2], 1)


# ---- gradients of views: the transpose of a linear map, checked against the map itself

def transposed(name, arguments, shape, grad):
    """sum of grad * f(x) differentiated by x, from f of positions."""
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    seen = call(name, positions, *arguments)
    expected = np.zeros(int(np.prod(shape)), grad.dtype)
    np.add.at(expected, seen.reshape(-1), grad.reshape(-1))
    return expected.reshape(shape)


BACKWARD = [
    ("slice", (1, 1, None, 2)), ("slice", (0, 1, 1, 1)), ("slice", (1, -2, 9, 1)), ("select", (1, -1)), ("select", (0,
                                                                                                                    1)),
    ("diagonal", (1, 1, 2)), ("diagonal", (0, 0, -1)), ("diagonal", (9, 0, 1)), ("unfold", (1, 2, 1)),
    ("unfold", (1, 3, 1)),
    ("unfold", (2, 2, 1)), ("unfold", (0, 1, 1)), ("unfold", (1, 2, 3)), ("unfold", (1, 4, 1)), ("unfold", (1, 0, 1)),
    ("unfold", (0, 2, 1)),
]


@pytest.mark.parametrize(("name", "arguments"), BACKWARD)
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_of_views(name, arguments, dtype):
    shape = (2, 4, 3)
    for grad in layouts(call(name, numbers(shape), *arguments).shape, dtype):
        same(call(f"{name}_backward", grad, list(shape), *arguments), transposed(name, arguments, shape, grad))


def test_backward_of_lists():
    import cygrad._core.arrays.dtype as dtypes
    float64 = next(d for d in vars(dtypes).values() if getattr(d, "name", None) == "float64")
    grad = numbers((2, 6))
    result = call("split_backward", [grad[:, :2], None, grad[:, 3:]], [2, 6], [2, 1, 3], 1, float64)
    expected = grad.copy()
    expected[:, 2] = 0
    same(result, expected)
    same(call("unbind_backward", [grad[0], None], [2, 6], 0, float64), grad * [[1], [0]])
    with pytest.raises(RuntimeError, match="wrong number of gradients"):
        call("unbind_backward", [grad[0]], [2, 6], 0, float64)
    with pytest.raises(RuntimeError, match="do not match"):
        call("split_backward", [grad], [2, 6], [2, 4], 1, float64)
    with pytest.raises(RuntimeError, match="wrong shape"):
        call("split_backward", [grad, None], [2, 6], [2, 4], 1, float64)


@pytest.mark.parametrize(("pad", "mode"), [
    ([1, 2, 0, 1], "constant"), ([-1, 2, 3, -1], "constant"), ([2, 1, 3, 2], "reflect"), ([-1, 2], "reflect"),
    ([4, 1, 0, 2], "replicate"), ([3, 3, 4, 1], "circular"), ([-1, 2], "circular"), ([0, 0], "circular"),
])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pad_backward(pad, mode, dtype):
    shape = (2, 4, 3)
    for grad in layouts(call("pad", numbers(shape), pad, mode, None).shape, dtype):
        # Number elements from 1, because 0 is the constant.
        seen = call("pad", np.arange(1, 25).reshape(shape), pad, mode, 0).reshape(-1)
        expected = np.zeros(25, grad.dtype)
        np.add.at(expected, seen, grad.reshape(-1))
        same(call("pad_backward", grad, list(shape), pad, mode), expected[1:].reshape(shape))


def test_backward_errors():
    with pytest.raises(RuntimeError, match=r"slice_backward: 'grad' has the wrong shape .*3,.*expected .*2,"):
        call("slice_backward", numbers((3,)), [4], 0, 0, 2, 1)
    with pytest.raises(RuntimeError, match="unfold_backward: 'grad' has the wrong shape"):
        call("unfold_backward", numbers((3,)), [4], 0, 2, 1)
    with pytest.raises(RuntimeError, match="pad_backward: 'grad' has the wrong shape"):
        call("pad_backward", numbers((3,)), [4], [1, 1], "constant")
    with pytest.raises(RuntimeError, match="negative size"):
        call("slice_backward", numbers((3,)), [-4], 0, 0, 2, 1)


# ---- against PyTorch

@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def torch_of(torch, array):
    return torch.from_numpy(np.array(array, order="C"))


@pytest.mark.parametrize("geometry", [
    ((3, 4), (4, 1), 0, (2, 3), (4, 1), 0), ((3, 4), (4, 1), 0, (3, 3), (1, 1), 2), ((3, 4), (1, 3), 2, (5,), (2,), 1),
    ((3, 4), (0, 1), 0, (2, 2), (1, 2), 0), ((3, 4), (0, 1), 1, (4, 2), (0, 1), 1), ((2, 2), (2, 1), 0, (2,), (1,), 6),
    ((3,), (1,), 0, (0, 3), (1, 1), 0),
])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_as_strided_backward(torch, geometry, dtype):
    shape, strides, offset, size, stride, storage_offset = geometry
    memory = torch.zeros(20, dtype=getattr(torch, dtype))
    self = memory.as_strided(shape, strides, offset).detach().requires_grad_()
    result = self.as_strided(size, stride, storage_offset)
    grad = numbers(size, dtype)
    result.backward(torch_of(torch, grad))
    result = call("as_strided_backward", grad, shape, strides, offset, size, stride, storage_offset)
    assert result.dtype == grad.dtype
    np.testing.assert_allclose(result, self.grad.numpy(), rtol=1e-6)


def test_views_fuzzed(torch):
    generator = np.random.default_rng(0)
    integer = lambda low, high: int(generator.integers(low, high))  # noqa: E731
    for _ in range(1500):
        ndim = integer(0, 5)
        array = numbers(tuple(integer(0, 5) for _ in range(ndim)))
        order = generator.permutation(ndim)
        array = array.transpose(order)
        reference = torch_of(torch, array)
        name, arguments = [
            ("narrow", (integer(-5, 5), integer(-5, 5), integer(-1, 5))),
            ("select", (integer(-5, 5), integer(-6, 6))),
            ("diagonal", (integer(-6, 6), integer(-5, 5), integer(-5, 5))),
            ("unfold", (integer(-5, 5), integer(-1, 6), integer(0, 4))),
            ("transpose", (integer(-5, 5), integer(-5, 5))),
            ("unsqueeze", (integer(-6, 6),)),
            ("flatten", (integer(-5, 5), integer(-5, 5))),
            ("reshape", ([integer(-1, 5) for _ in range(integer(0, 4))],)),
            ("roll", (integer(-9, 9), integer(-5, 5))),
            ("flip", ([integer(-5, 5) for _ in range(integer(0, 3))],)),
            ("expand", ([integer(-1, 5) for _ in range(integer(0, 6))],)),
            ("tril", (integer(-6, 6),)),
            ("movedim", ([integer(-4, 4), integer(-4, 4)], [integer(-4, 4), integer(-4, 4)])),
            ("unbind", (integer(-5, 5),)),
            ("split", ([integer(0, 4) for _ in range(integer(0, 3))], integer(-5, 5))),
            ("repeat", ([integer(0, 4) for _ in range(integer(0, 6))],)),
        ][integer(0, 16)]
        if name == "roll" and array.size == 0:      # PyTorch looks at no dimension then, not even a wrong one
            continue
        if name == "expand" and array.ndim == 0 and -1 in arguments[0]:      # PyTorch may give a negative size
            continue
        try:
            expected = getattr(reference, name)(*arguments)
        except (RuntimeError, IndexError):
            # The order of several errors is unspecified.
            with pytest.raises((RuntimeError, IndexError)):
                call(name, array, *arguments)
        else:
            result = call(name, array, *arguments)
            if isinstance(result, list):
                assert len(result) == len(expected)
                for one, other in zip(result, expected, strict=True):
                    same(one, other.numpy())
            else:
                same(result, expected.numpy())
