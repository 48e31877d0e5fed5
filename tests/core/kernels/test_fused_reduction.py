"""Fused reductions of gradients are bit-identical to separate steps."""

import contextlib
import warnings

import numpy as np
import pytest

import cygrad
from cygrad._core.engine.node_fusion import count_fusions, set_fuse_from
from cygrad._core.kernels.reduction.reductions import count_summed, set_summed_from

NEVER = 1 << 62
TYPES = ("float32", "float64", "complex64", "complex128")
# Shapes of the gradient and of the operand: one reduced element or many, rows, columns, both, narrow and wide.
SHAPES = [((5, 7), (7,)), ((5, 7), ()), ((300, 1024), (1024,)), ((1000, 17), (17,)), ((1000, 17), (1000, 1)),
          ((1001, 3), (3,)), ((7, 2100), (1,)), ((70, 30, 5), (30, 1)), ((70, 30, 5), (70, 1, 5)), ((90001,), ()),
          ((20, 33, 9, 7), (33, 1, 1)), ((3, 5000), (3, 1)), ((40, 3000), (3000,)), ((200, 1, 90), (1, 50, 1)),
          ((4, 1, 1), (1, 1)), ((2, 0, 3), (3,)), ((0, 3), (1, 3)), ((3, 0), (3, 1))]
FORMULAS = {
    "mul": (lambda x, w: x * w, lambda g, x, w: g * x.conj()),
    "div": (lambda x, w: x / w, lambda g, x, w: -g / w.conj() * (x / w).conj()),
    "sub": (lambda x, w: x - w, lambda g, x, w: -g),
}


@contextlib.contextmanager
def summed_from(elements, fused=NEVER):
    """Set the minimum numbers of elements of fused reductions and of node fusions."""
    former, former_fusion = set_summed_from(elements), set_fuse_from(fused)
    try:
        yield
    finally:
        set_summed_from(former)
        set_fuse_from(former_fusion)


def values(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * rng.standard_normal(shape)
    return np.asarray(numbers).astype(dtype)


def tensor(array):
    return cygrad.from_numpy(array)


def gradient(function, x, w, g, needed=(1,)):
    """Gradients of x and w, as bytes, with the type."""
    leaves = [tensor(x).requires_grad_(0 in needed), tensor(w).requires_grad_(1 in needed)]
    found = cygrad.autograd.grad(function(*leaves), [leaves[number] for number in needed], tensor(g))
    return [(part.numpy().tobytes(), part.dtype, tuple(part.shape)) for part in found]


def unfused(formula, x, w, g):
    """The product, made and then summed by the public functions."""
    full, w = formula(tensor(g), tensor(x), tensor(w)), tensor(w)
    lead = full.ndim - w.ndim
    dims = [d for d in range(full.ndim) if d < lead or w.shape[d - lead] == 1 != full.shape[d]]
    total = (full.sum(dims) if dims else full).reshape(w.shape)
    return total.numpy().tobytes(), total.dtype, tuple(total.shape)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(("shape", "other"), SHAPES)
def test_bits_of_product_and_sum(shape, other, name, dtype, threads):
    function, formula = FORMULAS[name]
    x, w, g = values(shape, dtype, 1), values(other, dtype, 2), values(np.broadcast_shapes(shape, other), dtype, 3)
    before = count_summed()
    with summed_from(1):
        found = gradient(function, x, w, g)
    assert (count_summed() > before) == (g.size > 0)
    assert found == [unfused(formula, x, w, g)]
    with summed_from(NEVER):
        assert gradient(function, x, w, g) == found


@pytest.mark.parametrize("arrange", [lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: np.ascontiguousarray(a.T).T,
                                     lambda a: np.repeat(a, 2, 1)[:, ::2],
                                     lambda a: np.lib.stride_tricks.as_strided(a, a.shape, (0, a.strides[1]))])
@pytest.mark.parametrize("shape", [(257, 40), (40, 1030)])
def test_layouts(arrange, shape, threads):
    x, w, g = (arrange(values(shape, "float32", seed)) for seed in (1, 2, 3))
    for row in (w[:1], w[:, :1], w[0], w[0, :1].reshape(())):
        for function, formula in FORMULAS.values():
            with summed_from(1):
                found = gradient(function, x, row, g, (0, 1))
            assert found[1] == unfused(formula, x, row, g)
            with summed_from(NEVER):
                assert gradient(function, x, row, g, (0, 1)) == found


@pytest.mark.parametrize("dtype", TYPES)
def test_nan_and_infinity(dtype):
    x, w, g = values((500, 33), dtype, 1), values((33,), dtype, 2), values((500, 33), dtype, 3)
    x[7, 3], g[100, 3], g[499, 32], x[3, 0], w[5] = np.nan, np.inf, -np.inf, np.inf, 0
    for name, (function, formula) in FORMULAS.items():
        with np.errstate(all="ignore"), summed_from(1):
            found = gradient(function, x, w, g)
        assert found == [unfused(formula, x, w, g)]
        assert np.isnan(np.frombuffer(found[0][0], dtype)).any() == (name != "sub")


def test_other_types():
    """Summed in the type of the product, then cast; of complex sums real operands get the real part."""
    g = values((600, 20), "float64", 3)
    for x, w in ((values((600, 20), "float64", 1), values((20,), "float32", 2)),
                 (values((600, 20), "complex128", 1), values((20,), "float64", 2))):
        grad = (g + 1j * g[::-1]).astype(x.dtype) if x.dtype.kind == "c" else g
        with summed_from(1):
            found = gradient(lambda x, w: x * w, x, w, grad)
        with summed_from(NEVER):
            assert gradient(lambda x, w: x * w, x, w, grad) == found
        theirs = (grad * x.conj()).sum(0).real
        np.testing.assert_allclose(np.frombuffer(found[0][0], w.dtype), theirs, rtol=1e-4 if w.itemsize == 4 else 1e-11)


def chain(x, w):
    return ((x * w + w).tanh() / w - w).exp()


@pytest.mark.parametrize("needed", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("fused", [1, NEVER])
def test_among_others(fused, needed, threads):
    """In fusions, in teams, and for some of the leaves: the bits are those of the plain run."""
    x, w, g = values((129, 700), "float32", 1), values((700,), "float32", 2), values((129, 700), "float32", 3)
    w = np.abs(w) + np.float32(1)
    with summed_from(NEVER):
        plain = gradient(chain, x, w, g, needed)
    with summed_from(1, fused):
        assert gradient(chain, x, w, g, needed) == plain


def test_a_fusion_of_two_does_not_write_what_is_summed_alone():
    x, w = (tensor(values(shape, "float32", 1)).requires_grad_() for shape in ((129, 70), (70,)))
    with summed_from(1, 1):
        summed, fused = count_summed(), count_fusions()
        (x * w + w).sum().backward()
        assert (count_summed() - summed, count_fusions() - fused) == (1, 0)
        # Fusing the node before it is worth more.
        (x * w).tanh().exp().sum().backward()
        assert (count_summed() - summed, count_fusions() - fused) == (1, 1)


def test_recorded():
    """Second derivatives of what was summed."""
    x, w = (values(shape, "float64", seed) for shape, seed in (((30, 8), 1), ((8,), 2)))
    with summed_from(1):
        assert cygrad.autograd.gradgradcheck(lambda x, w: chain(x, w.abs() + 1),
                                             [tensor(x).requires_grad_(), tensor(w).requires_grad_()])


def test_a_nan_is_found_where_it_arises():
    x, w = tensor(np.zeros((100, 50))).requires_grad_(), tensor(np.zeros(50)).requires_grad_()
    with summed_from(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cygrad.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
            (x / w).backward(tensor(np.ones((100, 50))))


def test_errors_are_those_of_the_two_steps():
    """A gradient of another shape than the result's is refused in the same words."""
    class Wrong(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad.reshape(-1)

    x, w = tensor(np.ones((40, 5))).requires_grad_(), tensor(np.ones(5)).requires_grad_()
    texts = []
    for elements in (1, NEVER):
        with summed_from(elements), pytest.raises(RuntimeError) as info:
            Wrong.apply(x * w).backward(tensor(np.ones((40, 5))))
        texts.append(str(info.value))
    assert texts[0] == texts[1]
