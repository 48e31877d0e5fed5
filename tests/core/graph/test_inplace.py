"""CopySlices and views of all layouts, native and recorded; version counters."""

import warnings

import numpy as np
import pytest

import cygrad
from cygrad.autograd import grad

FLOAT = cygrad.float64

SLICES = {
    "element": lambda t: t[1, 2], "row": lambda t: t[1], "column": lambda t: t[:, 1], "part": lambda t: t[1:, :2],
    "steps": lambda t: t[::2, ::2], "transposed": lambda t: t.t(), "part transposed": lambda t: t[1:].t()[1:],
    "flat": lambda t: t.reshape(12), "diagonal": lambda t: t.diagonal(), "nothing": lambda t: t[3:],
    "unsqueezed": lambda t: t.unsqueeze(1)[0], "view of view": lambda t: t[1:][1:][0][1:],
}
BASES = {
    "contiguous": lambda x: x * 1, "transposed": lambda x: cygrad.stack(list(x.t())).as_strided((3, 4), (1, 3)),
    "copied": lambda x: x.clone(),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("part", SLICES)
def test_gradients_through_changed_slices(base, part):
    def program(x, w):
        y = BASES[base](x)
        v = SLICES[part](y)
        v.mul_(w)
        v.sin_()
        return (y * y * y).sum() + (v * 2).sum()

    x = (cygrad.arange(12, dtype=FLOAT).reshape(3, 4) / 5 + 0.3).requires_grad_()
    w = cygrad.tensor(1.3, dtype=FLOAT, requires_grad=True)
    native = grad(program(x, w), [x, w])
    recorded = grad(program(x, w), [x, w], create_graph=True)
    step = 1e-6
    values = x.detach().numpy().copy()
    for i in range(3):
        for j in range(4):
            above, below = values.copy(), values.copy()
            above[i, j] += step
            below[i, j] -= step
            rise = program(cygrad.tensor(above), w.detach()) - program(cygrad.tensor(below), w.detach())
            slope = rise.item() / (2 * step)
            assert native[0][i, j].item() == pytest.approx(slope, abs=1e-6)
    for a, b in zip(native, recorded, strict=True):
        assert np.allclose(a.numpy(), b.detach().numpy(), rtol=1e-13, atol=1e-13)
    # Second order by differences of the first.
    total = (recorded[0] * recorded[0]).sum()
    second, = grad(total, x)
    above = cygrad.tensor(values + step * np.eye(3, 4), requires_grad=True)
    below = cygrad.tensor(values - step * np.eye(3, 4), requires_grad=True)
    slopes = [(grad(program(t, w.detach()), t)[0] ** 2).sum().item() for t in (above, below)]
    assert second.diagonal().sum().item() == pytest.approx((slopes[0] - slopes[1]) / (2 * step), rel=1e-5)


def test_copies_into_slices_of_other_dtypes():
    x = cygrad.ones(3, requires_grad=True)
    y = cygrad.zeros(2, 3, dtype=FLOAT)
    y[0] = x * 2
    y[1].copy_(x)
    (y * y).sum().backward()
    assert x.grad.dtype is cygrad.float32
    assert x.grad.tolist() == [10.0] * 3


def test_zero_size():
    x = cygrad.ones(0, 3, dtype=FLOAT, requires_grad=True)
    y = x * 1
    y[:, 1].mul_(2)
    y.sum().backward()
    assert x.grad.shape == (0, 3)


def test_read_only_memory():
    array = np.ones(3)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = cygrad.as_tensor(array)
    if t.data_ptr() == array.ctypes.data:
        with pytest.raises(RuntimeError, match="read-only"):
            t.add_(1)
    assert array.tolist() == [1.0] * 3


def test_freed_copy_slices():
    x = cygrad.ones(3, dtype=FLOAT, requires_grad=True)
    y = x * 1
    y[0].mul_(y[1].detach().clone())
    y[2].exp_()
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"freed.*retain_graph=True"):
        y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, pytest.approx(2.718281828459045)]


def test_retained_gradients_of_changed_bases():
    x = cygrad.ones(3, dtype=FLOAT, requires_grad=True)
    y = x * 2
    v = y[1:]
    y.retain_grad()
    v.retain_grad()
    v.mul_(3)
    assert y.retains_grad
    assert v.retains_grad
    (y * 5 + 0).sum().backward()
    assert y.grad.tolist() == [5.0] * 3


def test_detach_in_place_of_views_and_bases():
    x = cygrad.ones(3, dtype=FLOAT, requires_grad=True)
    y = x * 2
    v = y[1:]
    for view in (v, cygrad.ones(3)[1:], y.view(3)):
        with pytest.raises(RuntimeError, match="cannot detach a view in place"):
            view.detach_()
    y.detach_()
    assert v.requires_grad
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"detach_\(\) has detached its base from the graph"):
        v.mul_(2)
    assert y.tolist() == [4.0, 4.0, 4.0]


def parts(z):
    w = z * 1
    whole, imag = w.real, w.t().imag[0]
    imag.mul_(z.real[:, 0])
    cygrad.view_as_real(w)[1:, ..., 0].mul_(3)
    w.mul_(1 + 2j)
    return cygrad.view_as_real(w).sum(-1) * whole, imag


def pairs(x):
    y = x * 1
    z = cygrad.view_as_complex(y.view(2, 2, 2))
    last = z.t()[1].imag
    z[1:].mul_(1 + 2j)
    y[:, 1:3].mul_(2.0)
    last.mul_(5)
    return y, z * z, last


@pytest.mark.parametrize(("change", "values"), [
    (parts, [[0.3 + 1j, 2 - 0.5j], [-1j, 1 + 1j]]), (pairs, [[0.3, 1.0, 2.0, -0.5], [0.7, -1.0, 1.0, 1.5]]),
])
def test_views_between_real_and_complex(change, values):
    """Strides are in real elements in one and in complex ones in the other, natively and recorded."""
    leaf = cygrad.tensor(values, requires_grad=True,
                         dtype=cygrad.complex128 if change is parts else cygrad.float64)
    assert cygrad.autograd.gradcheck(change, leaf)
    assert cygrad.autograd.gradgradcheck(change, leaf)


SAVING_RESULTS = ["sigmoid", "tanh", "exp", "exp2", "sqrt", "rsqrt", "reciprocal", "tan"]


class Squared(cygrad.autograd.Function):
    """The square in place, with a derivative by its result."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x.square_())
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0].sqrt()


def in_place(name, part):
    return Squared.apply(part) if name == "Squared" else getattr(part, name + "_")()


def apart(name, part):
    return part.square() if name == "Squared" else getattr(part, name)()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [*SAVING_RESULTS, "Squared"])
def test_three_derivatives_through_results_saved_by_in_place_operations_on_views(name, packed):
    def orders(value, x):
        for _ in range(3):
            gradient = grad(value, x, create_graph=True)[0]
            for _ in range(2):
                assert grad(value, x, retain_graph=True)[0].tolist() == pytest.approx(gradient.tolist())
            yield gradient.tolist()
            last, value = value, (gradient * gradient).sum()
        assert grad(last, x)[0].tolist() == pytest.approx(gradient.tolist())

    x = cygrad.tensor([0.3, 0.5, 0.7, 0.9], dtype=FLOAT, requires_grad=True)
    y = x * 1
    with cygrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), cygrad.from_numpy) if packed else (
            cygrad.enable_grad()):
        in_place(name, y[::2])
    parts = x.reshape(2, 2)
    wanted = cygrad.stack([apart(name, parts[:, 0]), parts[:, 1]], 1)
    for found, right in zip(orders((y * y).sum(), x), orders((wanted * wanted).sum(), x), strict=True):
        assert found == pytest.approx(right)


def test_gradients_by_a_view_reach_the_result_that_it_saved():
    x = cygrad.tensor([0.3, 0.5, 0.7], dtype=FLOAT, requires_grad=True)
    y = x * 1
    v = y[:2]
    v.exp_()
    first = grad(y.sum(), x, create_graph=True)[0]      # exp(x) for the first two, as their result was saved
    assert grad(first.sum(), v)[0].tolist() == [1.0, 1.0]
