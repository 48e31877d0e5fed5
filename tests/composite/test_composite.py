"""Composite functions compared with PyTorch: values, dtypes, gradients, errors."""

import itertools
import string
import warnings

import numpy as np
import pytest

import cygrad
from tests.reference import torch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]


def run(text, library, arrays):
    """An expression with `torch` standing for the library and the arrays as its tensors; or the exception."""
    names = {name: library.tensor(array) for name, array in arrays.items()}
    for tensor in names.values():
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(text, {"torch": library, "np": np, **names}), names
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
            return error, names


def flat(result, library):
    """The tensors of a result."""
    if isinstance(result, library.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part, library)]
    return []


def compare(text, arrays, rtol=1e-6):
    """Equal values and gradients, or errors of one class."""
    ours, our_names = run(text, cygrad, arrays)
    theirs, their_names = run(text, torch, arrays)
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), (text, ours, theirs)
        return
    if isinstance(ours, Exception):
        raise ours
    our_tensors, their_tensors = flat(ours, cygrad), flat(theirs, torch)
    if not their_tensors:
        expected = theirs
        if isinstance(theirs, torch.dtype):
            assert ours.name == str(theirs).removeprefix("torch.")
        elif isinstance(theirs, (tuple, torch.Size)):
            assert tuple(ours) == tuple(expected)
        else:
            assert ours == expected
        return
    assert len(our_tensors) == len(their_tensors)
    for a, b in zip(our_tensors, their_tensors, strict=False):
        assert tuple(a.shape) == tuple(b.shape), text
        assert a.dtype.name == str(b.dtype).removeprefix("torch."), text
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().resolve_conj().numpy(), rtol=rtol, atol=1e-6, err_msg=text
        )
        assert a.requires_grad == b.requires_grad, text
    for library, tensors in ((cygrad, our_tensors), (torch, their_tensors)):
        wanted = [t for t in tensors if t.requires_grad]
        if wanted:
            library.autograd.backward(
                wanted,
                [
                    library.tensor(
                        np.arange(1, t.numel() + 1)
                        .reshape(tuple(t.shape))
                        .astype(
                            t.detach().resolve_conj().numpy().dtype if library is torch else t.detach().numpy().dtype
                        )
                    )
                    for t in wanted
                ],
            )
    for name, tensor in their_names.items():
        grad = our_names[name].grad
        if tensor.grad is None:
            assert grad is None or not grad.numpy().any(), text
        else:
            np.testing.assert_allclose(
                grad.numpy(), tensor.grad.resolve_conj().numpy(), rtol=1e-5, atol=1e-6, err_msg=text
            )


X = {"x": np.array([[1.0, 4.0, 4.0], [-3.0, 2.5, -0.5]], dtype=np.float32)}
XY = {**X, "y": np.array([2.0, -4.0, 0.5], dtype=np.float32)}


@pytest.mark.parametrize(
    "text",
    [
        "torch.max(x)",
        "torch.max(x, 1)",
        "torch.max(x, dim=0, keepdim=True)",
        "torch.max(x, y)",
        "torch.max(x, other=y)",
        "x.max()",
        "x.min(1).indices",
        "torch.min(x)",
        "torch.min(x, -1)",
        "torch.min(x, y)",
        "torch.max(x, 2.)",
        "torch.max(x, (0, 1))",
        "torch.max(x[:0])",
        "torch.max(x[:0], 1)",
        "torch.max(x[:0], 0)",
        "torch.max(torch.tensor(1j))",
        "torch.max(torch.tensor([True, False]))",
        "torch.max(torch.tensor([2, 7, 7]), 0)",
        "torch.aminmax(x)",
        "torch.aminmax(x, dim=1)",
        "torch.std(x)",
        "torch.std(x, False)",
        "torch.std(x, unbiased=False)",
        "torch.std(x, 1)",
        "torch.std(x, 1, False)",
        "torch.std(x, 1, unbiased=True, keepdim=True)",
        "torch.std(x, (0, 1), False, True)",
        "torch.std(x, dim=1, correction=0)",
        "torch.var(x, 1, correction=2)",
        "torch.var(x, dim=None, correction=None)",
        "torch.var(x, True)",
        "x.var(0)",
        "x.std(unbiased=False)",
        "torch.std_mean(x)",
        "torch.var_mean(x, 1, False, True)",
        "torch.var_mean(x, dim=1, correction=0, keepdim=True)",
    ],
)
def test_reductions(text):
    compare(text, XY if "y" in text else X, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "torch.div(x, y)",
        "torch.div(x, y, rounding_mode='floor')",
        "torch.div(x, y, rounding_mode='trunc')",
        "torch.div(x, 2)",
        "torch.div(torch.tensor([5, -5]), 2, rounding_mode='floor')",
        "torch.div(5, torch.tensor(2))",
        "torch.div(torch.tensor([5, -5]), 2, rounding_mode='trunc')",
        "torch.div(torch.tensor([5, -5]), 2)",
        "torch.div(x, y, rounding_mode='bad')",
        "torch.true_divide(x, y)",
        "x.divide(y)",
        "(x * 1).div_(y)",
        "(x * 1).div_(2, rounding_mode='floor')",
        "torch.add(x, y)",
        "torch.add(x, y, alpha=2)",
        "x.add(1)",
        "(x * 1).add_(y, alpha=3)",
        "torch.sub(x, y, alpha=0.5)",
        "(x * 1).sub_(y)",
        "torch.subtract(x, 1)",
        "torch.pow(x, 2)",
        "torch.pow(x + 4, y)",
        "torch.pow(2, x)",
        "torch.pow(2., torch.tensor([1, 2]))",
        "x.pow(3)",
        "(x * 1).pow_(2)",
        "torch.clamp(x, 1)",
        "torch.clamp(x, max=y)",
        "torch.clamp(x)",
        "torch.clamp(x, -1, 2)",
        "torch.clamp(x, y - 1, y)",
        "torch.clamp(torch.tensor([1, 2, 3]), 1.5)",
        "torch.clip(x, 1, 2)",
        "(x * 1).clamp_(0, 1)",
        "torch.clamp_min(x, 2)",
        "torch.clamp_max(x, y)",
        "(x * 1).clip_(0)",
        "torch.clamp(x, 3, 1)",
        "torch.nn.functional.gelu(x)",
        "torch.nn.functional.gelu(x, approximate='tanh')",
    ],
)
def test_arithmetic(text):
    if "gelu" in text and not hasattr(cygrad.nn, "functional"):
        text = text.replace("torch.nn.functional.", "")
        pytest.skip("nn.functional is not there")
    compare(text, XY if "y" in text else X, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "torch.allclose(x, x + 1e-7)",
        "torch.allclose(x, x.double())",
        "torch.allclose(x, x[:, :2])",
        "torch.allclose(x, 1.)",
        "torch.allclose(torch.tensor([float('nan')]), torch.tensor([float('nan')]))",
        "torch.allclose(torch.tensor([float('nan')]), torch.tensor([float('nan')]), equal_nan=True)",
        "torch.allclose(torch.tensor([float('inf')]), torch.tensor([float('inf')]))",
        "torch.allclose(torch.tensor([1, 2]), torch.tensor([1, 2]))",
        "torch.allclose(x, x * 1.1)",
        "torch.isclose(torch.tensor([1., float('inf'), 1., float('nan')]), torch.tensor([1.1, float('inf'), 1., 0.]))",
        "torch.isclose(torch.tensor([True]), torch.tensor([True]))",
        "torch.isclose(torch.tensor([1, 2]), torch.tensor([1, 3]))",
        "torch.isclose(x, x, rtol=-1)",
        "torch.equal(x, x)",
        "torch.equal(x, x[:, :2])",
        "torch.equal(x, x.double())",
        "torch.equal(torch.tensor([float('nan')]), torch.tensor([float('nan')]))",
        "torch.equal(x, 1)",
        "torch.equal(torch.zeros(0), torch.zeros(0))",
        "torch.equal(x, x + 1)",
        "torch.equal(x > 0, (x > 0).long())",
        "torch.equal(torch.tensor([-0.]), torch.tensor([0.]))",
        "torch.equal(torch.ones(1), torch.ones(2))",
        "torch.equal(x.t(), x.t().contiguous())",
        "torch.equal(torch.tensor(1), torch.tensor(1. + 0j))",
    ],
)
def test_comparisons(text):
    compare(text, X)


@pytest.mark.parametrize(
    "text",
    [
        "x.tile(2)",
        "x.tile((2, 1, 1))",
        "torch.tile(x, (2,))",
        "x.split(2, 1)",
        "x.split([1, 2], 1)",
        "x.split([1, 1], 1)",
        "x.split(0, 1)",
        "x.split(-1, 1)",
        "x.split(2.)",
        "torch.split(x, [3, 0], 1)",
        "torch.split(x, 1, dim=5)",
        "torch.split(x, 5)",
        "torch.split(x[:0], 2)",
        "torch.split(x[:0], 0)",
        "x.chunk(2, 1)",
        "x.chunk(5, 1)",
        "x.chunk(0)",
        "torch.chunk(x[:0], 3)",
        "torch.split(torch.tensor(1.), 1)",
        "torch.broadcast_tensors(x, y)",
        "torch.broadcast_tensors(x, torch.ones(4))",
        "torch.broadcast_shapes((2, 1), (3,))",
        "torch.broadcast_shapes((2, 1), (3, 3))",
        "torch.broadcast_shapes(2, (3, 1))",
        "x.t()",
        "torch.t(y)",
        "torch.ones(2, 2, 2).t()",
        "x.T",
        "y.T",
        "torch.ones(2, 3, 4).T",
        "y.mT",
        "torch.ones(2, 2, 3).mT",
        "x.mH",
        "y.H",
        "torch.ones(2, 2, 2).H",
        "torch.tensor([[1j, 2.]]).mH",
        "torch.tensor([[1j, 2.]]).H",
        "y.expand_as(x)",
        "x.view_as(torch.ones(3, 2))",
        "x.reshape_as(torch.ones(6))",
        "torch.unique(torch.tensor([3, 1, 3, 2]))",
        "torch.unique(torch.tensor([3, 1, 3, 2]), return_inverse=True)",
        "torch.unique(torch.tensor([3, 1, 3, 2]), return_counts=True)",
        "torch.unique(torch.tensor([[3, 1], [3, 1], [2, 2]]), dim=0, return_inverse=True, return_counts=True)",
        "torch.real(x)",
        "torch.imag(x)",
        "torch.tensor([1 + 2j]).imag",
        "torch.real(torch.tensor([1 + 2j]))",
    ],
)
def test_shapes(text):
    compare(text, XY if "y" in text.replace("type", "") else X)


def test_parts_of_a_split_are_views_that_may_not_be_changed():
    x = cygrad.ones(4, requires_grad=True) * 1
    a, _ = x.split(2)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        a.mul_(2)


def test_setting_parts_of_complex_numbers():
    z = cygrad.tensor([1 + 2j, 3j])
    z.real = cygrad.tensor([5.0, 6.0])
    z.imag = 0.0
    assert z.tolist() == [5, 6]


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions(dtype):
    d, t = getattr(cygrad, dtype), getattr(torch, dtype)
    values = np.array([[0, 1], [1, 0]])
    x, y = cygrad.tensor(values, dtype=d), torch.tensor(values, dtype=t)
    for name in ("bool", "byte", "char", "short", "int", "long", "float", "double", "cfloat", "cdouble"):
        ours, theirs = getattr(x, name)(), getattr(y, name)()
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        assert (ours is x) == (theirs is y)
    assert x.to(d) is x and x.to(d, copy=True) is not x and x.to("cpu") is x and x.cpu() is x
    assert x.to("cpu", cygrad.float64).dtype is cygrad.float64
    assert x.to(cygrad.tensor(1j)).dtype is cygrad.complex64
    assert x.to(device="cpu", dtype=cygrad.int8, non_blocking=True).dtype is cygrad.int8
    assert x.type(cygrad.int16).dtype is cygrad.int16 and x.type_as(cygrad.tensor(True)).dtype is cygrad.bool
    assert x.type() == y.type().replace("torch", "cygrad")
    assert x.type("cygrad.DoubleTensor").dtype is cygrad.float64


def test_conversion_errors_and_history():
    x = cygrad.tensor([1.5], requires_grad=True)
    x.double().sum().backward()
    assert x.grad.tolist() == [1] and x.grad.dtype is cygrad.float32
    with pytest.raises(RuntimeError, match="to: no such device"):
        x.to("cuda")
    assert x.half().dtype is cygrad.float16 and x.type("torch.HalfTensor").type() == "cygrad.HalfTensor"
    with pytest.raises(ValueError, match="type: no such tensor type"):
        x.type("torch.QuarterTensor")
    with pytest.raises(TypeError, match="to: expected a dtype"):
        x.to(3)


def test_result_type():
    values = [1, 1.5, 1j, True]
    for name in DTYPES:
        for shape in ((), (2,)):
            values.append((name, shape))
    for a, b in itertools.product(values, repeat=2):
        ours, theirs = (
            library.result_type(
                *[library.ones(v[1], dtype=getattr(library, v[0])) if isinstance(v, tuple) else v for v in (a, b)]
            )
            for library in (cygrad, torch)
        )
        assert ours.name == str(theirs).removeprefix("torch."), (a, b)
    for a, b in itertools.product(DTYPES, repeat=2):
        assert cygrad.can_cast(getattr(cygrad, a), getattr(cygrad, b)) == torch.can_cast(
            getattr(torch, a), getattr(torch, b)
        )


def test_questions():
    x = cygrad.ones(2, 3)
    assert cygrad.is_tensor(x) and not cygrad.is_tensor(3)
    assert cygrad.is_floating_point(x) and not cygrad.is_complex(x) and cygrad.numel(x) == 6
    with pytest.raises(TypeError, match="is_floating_point: argument 'input' must be a Tensor"):
        cygrad.is_floating_point(3)


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,i->i", [(3,), (3,)]),
    ("ij,ij->", [(2, 3), (2, 3)]),
    ("...ij,...jk->...ik", [(2, 2, 3), (3, 4)]),
    ("...ij->...ji", [(2, 3, 4)]),
    ("b...i,...ij->b...j", [(2, 4, 3), (4, 3, 5)]),
    ("...", [(2, 3)]),
    ("...->", [(2, 3)]),
    ("...i->i", [(2, 3)]),
    ("ijk,jil->kl", [(2, 3, 4), (3, 2, 5)]),
    ("ik,kl,lm->im", [(2, 3), (3, 4), (4, 5)]),
    ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
    ("ij,ij,ij->ij", [(2, 3)] * 3),
    ("iij,jk->ik", [(2, 2, 3), (3, 4)]),
    ("ij,jk", [(1, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]),
    ("ij,ij->ij", [(2, 1), (1, 3)]),
    ("Aa,aB->AB", [(2, 3), (3, 4)]),
    ("zA,Ab", [(2, 3), (3, 4)]),
    (" i j , j k -> i k ", [(2, 3), (3, 4)]),
    ("i,j,k->ijk", [(2,), (3,), (4,)]),
    ("ij,k->", [(2, 3), (4,)]),
    ("i...,i...->...", [(3, 2), (3, 2)]),
    ("ij,jk->ik", [(0, 3), (3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("iijj->ij", [(2, 2, 3, 3)]),
    (",->", [(), ()]),
    (",i->i", [(), (3,)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ij,jk->ik", [(2, 3), (4, 4)]),
    ("ij,jk->iz", [(2, 3), (3, 4)]),
    ("ij,jk->ii", [(2, 3), (3, 4)]),
    ("ijk", [(2, 3)]),
    ("ij,jk", [(2, 3)]),
    ("i1->i", [(2, 3)]),
    ("ii", [(2, 3)]),
    ("i....", [(2, 3)]),
    ("ij", [(2, 3), (3, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_einsum(equation, shapes, dtype):
    rng = np.random.default_rng(0)
    arrays = {}
    for name, shape in zip(string.ascii_lowercase, shapes, strict=False):
        values = rng.integers(-5, 5, shape).astype(dtype)
        arrays[name] = values + 1j * rng.integers(-5, 5, shape) if dtype == "complex128" else values
    compare(f"torch.einsum({equation!r}, {', '.join(arrays)})", {n: np.asarray(a) for n, a in arrays.items()})


def test_einsum_with_lists_of_integers():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.arange(12.0).reshape(3, 4)}
    for text in (
        "a, [0, 1], b, [1, 2]",
        "a, [0, 1], b, [1, 2], [2, 0]",
        "a, [..., 1], b, [1, ...], [...]",
        "'ij,jk', [a, b]",
        "a, [0, 60]",
        "'ij'",
        "a, [30, 2], [2, 30]",
    ):
        compare(f"torch.einsum({text})", arrays)


@pytest.mark.parametrize(("equation", "shapes"), [
    ("ij,kj->ki", [(40, 3), (5, 3)]),
    ("ijk,mik->mij", [(2, 32, 7), (9, 2, 7)]),
    ("bij,bkj->bki", [(2, 32, 3), (2, 5, 3)]),
])
def test_columns_of_the_first_operand_of_einsum_are_adjacent_in_memory(equation, shapes):
    arrays = [np.random.default_rng(3).standard_normal(shape) for shape in shapes]
    result = cygrad.einsum(equation, *map(cygrad.tensor, arrays))
    assert result.stride()[-1] == 1
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *arrays), rtol=1e-12)


def test_random_einsum():
    rng = np.random.default_rng(1)
    for _ in range(150):
        letters = rng.choice(list("abcdeXY"), size=rng.integers(1, 6), replace=False)
        sizes = {letter: int(rng.integers(1, 4)) for letter in letters}
        operands = ["".join(rng.choice(letters, size=rng.integers(0, 4))) for _ in range(rng.integers(1, 5))]
        used = sorted(set("".join(operands)))
        equation = ",".join(operands)
        if rng.random() < 0.7:
            equation += "->" + "".join(rng.permutation(used)[: rng.integers(0, len(used) + 1)])
        arrays = {
            f"x{i}": rng.standard_normal([sizes[letter] for letter in operand])
            for i, operand in enumerate(operands)
        }
        compare(
            f"torch.einsum({equation!r}, {', '.join(arrays)})", {n: np.asarray(a) for n, a in arrays.items()}, rtol=1e-9
        )


@pytest.mark.parametrize(("dtype", "number"), [("uint8", 300), ("uint8", -256), ("int8", 128), ("int8", -129),
                                               ("int16", 1 << 15), ("int32", 1 << 31), ("uint16", 1 << 16)])
def test_numbers_out_of_the_range_of_an_integer_dtype_are_refused_as_bounds_and_choices(dtype, number):
    x = cygrad.tensor([5, 10], dtype=getattr(cygrad, dtype))
    mask = cygrad.tensor([True, False])
    for call in (lambda: x.clamp(min=number), lambda: x.clamp(max=number), lambda: cygrad.clip(x, 0, number),
                 lambda: x.clone().clamp_(max=number), lambda: cygrad.clamp_max(x, number),
                 lambda: x.clamp_min(number), lambda: cygrad.where(mask, x, number),
                 lambda: cygrad.where(mask, number, x), lambda: x.where(mask, number)):
        with pytest.raises(RuntimeError, match="without overflow"):
            call()


def test_numbers_at_the_ends_of_the_range_of_an_integer_dtype_are_accepted():
    mask = cygrad.tensor([True, False])
    for dtype, numbers in (("uint8", (255,)), ("int8", (127, -128)), ("int16", (32767, -32768))):
        x = cygrad.tensor([5, 10], dtype=getattr(cygrad, dtype))
        for number in numbers:
            assert cygrad.where(mask, x, number).tolist() == [5, number]
            assert x.clamp(min(number, 5), max(number, 10)).tolist() == [5, 10]
    assert cygrad.tensor([5], dtype=cygrad.uint8).clamp(1.5, 300).tolist() == [5.0]
    assert cygrad.where(mask, mask, 300).tolist() == [1, 300]
    assert cygrad.tensor([5.0]).clamp(-300, 300).tolist() == [5]
