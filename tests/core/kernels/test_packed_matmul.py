"""Products with packed matrices: values, derivatives, threads, errors."""

import numpy as np
import pytest

import cygrad
from cygrad._core.table.operator import operators
from cygrad.autograd import gradcheck, gradgradcheck
from cygrad.nn.functional.recurrent import _in_panels

linear_in_panels = operators.linear_in_panels


def operands(rows, outputs, inputs, dtype=np.float64):
    random = np.random.default_rng(outputs + inputs)
    return (cygrad.tensor(random.standard_normal(shape).astype(dtype))
            for shape in ((*rows, inputs), (outputs, inputs), (*rows, outputs)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "outputs", "inputs"), [
    ((16,), 128, 64), ((3,), 5, 7), ((1,), 33, 1), ((2, 3), 100, 40), ((), 40, 3), ((0,), 8, 4), ((17,), 31, 130)])
def test_definition(rows, outputs, inputs, dtype):
    """Whole panels and one that ends early, few rows and many; a bias for all rows, for each, and none."""
    x, weight, bias = operands(rows, outputs, inputs, dtype)
    expected = x.numpy().astype(float) @ weight.numpy().astype(float).T
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    one = bias.reshape(-1, outputs).sum(0)
    for addend in (None, bias, one):
        found = linear_in_panels(x, *_in_panels(weight), addend)
        more = 0 if addend is None else addend.numpy()
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found.numpy(), expected + more, tolerance, tolerance)


def test_layouts():
    """A strided input and a strided bias."""
    x, weight, bias = operands((6,), 20, 9)
    turned, backwards = x.t().contiguous().t(), bias.flip(0).contiguous().flip(0)
    found = linear_in_panels(turned, *_in_panels(weight), backwards)
    assert found.equal(linear_in_panels(x, *_in_panels(weight), bias))


@pytest.mark.parametrize("back", [True, False])
def test_derivatives(back):
    """Of first and second order, with panels for the gradient of the input and without."""
    x, weight, bias = (part.requires_grad_() for part in operands((4,), 7, 5))

    def function(x, weight, bias):
        _, panels, of_columns = _in_panels(weight)
        return linear_in_panels(x, weight, panels, of_columns if back else None, bias)
    assert gradcheck(function, (x, weight, bias))
    assert gradgradcheck(function, (x, weight, bias))


def test_threads():
    """Not a bit depends on their number."""
    x, weight, bias = operands((16,), 1000, 300, np.float32)
    panels = _in_panels(weight)
    with cygrad.threads(1):
        alone = linear_in_panels(x, *panels, bias)
    with cygrad.threads(3):
        assert linear_in_panels(x, *panels, bias).equal(alone)


def test_infinities():
    """What fills up the last panel meets nothing."""
    x = cygrad.tensor([[float("inf"), 1.0]])
    found = linear_in_panels(x, *_in_panels(cygrad.ones(3, 2)), None)
    assert found.tolist() == [[float("inf")] * 3]


def test_refusals():
    x, weight, bias = operands((4,), 40, 5)
    _, panels, back = _in_panels(weight)
    with pytest.raises(RuntimeError, match="do not match"):
        linear_in_panels(x[:, :4], weight, panels, back, None)
    with pytest.raises(RuntimeError, match="do not match"):
        linear_in_panels(x, weight, panels[:1], back, None)
    with pytest.raises(RuntimeError, match="do not match"):
        linear_in_panels(x, weight, panels.float(), back, None)
    with pytest.raises(RuntimeError, match="expected a bias of 40"):
        linear_in_panels(x, weight, panels, back, bias[:, :39])
    with pytest.raises(NotImplementedError, match="float32 or float64"):
        linear_in_panels(x.to(cygrad.int64), weight, panels, back, None)
