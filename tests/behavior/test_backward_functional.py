"""Vector-Jacobian products of several results, Jacobians and Hessians; more in tests/autograd."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import Function, forward_ad, functional, grad
from tests.tools import leaf

pytestmark = pytest.mark.guarantee("B8")


def test_vector_times_jacobian():
    """As in the tutorial: a vector for a result of several elements, and the identity matrix for all rows."""
    x = leaf([1.0, 2.0, 3.0])
    vector = cygrad.tensor([0.1, 1.0, 10.0], dtype=cygrad.float64)
    y = x * x.sum()
    expected = np.diag([6.0] * 3) + np.array([1.0, 2.0, 3.0])[:, None]
    (row,) = grad(y, x, vector, retain_graph=True)
    np.testing.assert_allclose(row.numpy(), vector.numpy() @ expected)
    (rows,) = grad(y, x, cygrad.eye(3, dtype=cygrad.float64), is_grads_batched=True)
    np.testing.assert_allclose(rows.numpy(), expected)
    np.testing.assert_allclose(functional.jacobian(lambda x: x * x.sum(), x).numpy(), expected)


def test_several_outputs_add_up():
    x, y = leaf([1.0, 2.0]), leaf(3.0)
    (found_x, found_y) = grad([x * y, x.sum()], [x, y], [cygrad.tensor([1.0, 10.0], dtype=cygrad.float64), None])
    assert found_x.tolist() == [4.0, 31.0]
    assert found_y.item() == 21.0


def rosenbrock(x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize("vectorize", [False, True])
def test_hessian_and_its_products(vectorize):
    a, b = -0.5, 0.7
    expected = np.array([[2 - 400 * (b - 3 * a * a), -400 * a], [-400 * a, 200]])
    x, v = leaf([a, b]), cygrad.tensor([2.0, -1.0], dtype=cygrad.float64)
    np.testing.assert_allclose(functional.hessian(rosenbrock, x, vectorize=vectorize).numpy(), expected)
    for product in (functional.vhp, functional.hvp):
        value, found = product(rosenbrock, x, v)
        assert value.item() == pytest.approx(rosenbrock(x).item())
        np.testing.assert_allclose(found.numpy(), expected @ v.numpy())


def test_newton_finds_the_minimum():
    x = cygrad.tensor([-0.5, 0.7], dtype=cygrad.float64)
    for _ in range(20):
        gradient = functional.jacobian(rosenbrock, x)
        step = np.linalg.solve(functional.hessian(rosenbrock, x).numpy(), gradient.numpy())
        x = x - cygrad.from_numpy(step)
    np.testing.assert_allclose(x.numpy(), [1, 1], rtol=1e-9)


def test_strict_tells_independence():
    x = leaf([1.0, 2.0])
    assert functional.hessian(lambda x: x.sum(), x).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match=r"hessian: the jacobian of the .* with respect to input 0 is independent"):
        functional.hessian(lambda x: x.sum(), x, strict=True)


# ------------------------------------------------------------------------------------------------ forward mode

def test_dual_tensors():
    primal, tangent = leaf([1.0, 2.0]), cygrad.tensor([1.0, 10.0], dtype=cygrad.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        assert forward_ad.unpack_dual(dual).tangent is tangent
        result = forward_ad.unpack_dual((dual ** 2).sum())
        assert (result.primal.item(), result.tangent.item()) == (5.0, 42.0)
    assert forward_ad.unpack_dual(dual).tangent is None


def test_forward_over_reverse():
    """The Hessian of Rosenbrock's function times a vector, by pushing a tangent through its gradient."""
    x, v = leaf([-0.5, 0.7, 1.2]), cygrad.tensor([1.0, -2.0, 0.5], dtype=cygrad.float64)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, v)
        (gradient,) = grad(rosenbrock(dual), dual)
        found = forward_ad.unpack_dual(gradient).tangent
    expected = functional.hvp(rosenbrock, x.detach(), v)[1]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("strategy", ["forward-mode", "reverse-mode"])
def test_strategies(strategy):
    x = leaf([-0.5, 0.7, 1.2])
    function = lambda x: x.sin() * x.sum()  # noqa: E731
    expected = np.diag(np.cos(x.detach().numpy()) * x.sum().item()) + np.sin(x.detach().numpy())[:, None]
    found = functional.jacobian(function, x, strategy=strategy, vectorize=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    matrix = functional.hessian(rosenbrock, x, outer_jacobian_strategy=strategy, vectorize=True)
    np.testing.assert_allclose((matrix @ x).detach().numpy(), functional.hvp(rosenbrock, x, x)[1].numpy(), rtol=1e-12)


def test_jvp_of_a_custom_function():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x ** 3

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x ** 2 * tangent
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(cygrad.tensor([2.0]), cygrad.tensor([10.0]))
        assert forward_ad.unpack_dual(Cube.apply(dual)).tangent.tolist() == [120.0]
