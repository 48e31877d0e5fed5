"""Transforms of functions of NumPy arrays and numbers, and SciPy's solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import curve_fit, least_squares, minimize, root

import cygrad
from cygrad.func import (
    elementwise_grad,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([0.5, -1.0, 2.0])


def valley(x):
    return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def slope(x):
    found = np.zeros_like(x)
    found[:-1] += -40 * (x[1:] - x[:-1] ** 2) * x[:-1] - 2 * (1 - x[:-1])
    found[1:] += 20 * (x[1:] - x[:-1] ** 2)
    return found


def test_the_gradient_of_an_array_is_an_array_in_its_dtype():
    for dtype in (np.float64, np.float32):
        found = grad(valley)(X.astype(dtype))
        assert type(found) is np.ndarray and found.dtype == dtype
        np.testing.assert_allclose(found, slope(X), rtol=1e-6 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_the_derivative_of_a_number_is_such_a_number(kind):
    given = kind(3.0)
    cube = lambda v: v ** 3  # noqa: E731
    for transform, expected in {grad: 27.0, jacrev: 27.0, jacfwd: 27.0, hessian: 18.0, elementwise_grad: 27.0}.items():
        found = transform(cube)(given)
        assert type(found) is kind and found == expected
    assert grad(grad(grad(cube)))(given) == 6.0
    assert value_and_grad(cube)(given) == (27.0, 27.0)


def test_the_gradient_of_a_complex_number_is_that_of_a_complex_tensor():
    found = grad(lambda z: (z * z.conj()).real)(1.0 + 2.0j)
    assert type(found) is complex and found == 2 + 4j


def test_containers_come_back_with_each_leaf_of_its_kind():
    parameters = {"w": np.ones(2), "b": [2.0, cygrad.tensor([3.0])]}
    found = grad(lambda p: (p["w"] * p["b"][0]).sum() * p["b"][1].sum())(parameters)
    assert found["w"].tolist() == [6.0, 6.0] and type(found["w"]) is np.ndarray
    assert found["b"][0] == 6.0 and type(found["b"][0]) is float
    assert type(found["b"][1]) is cygrad.Tensor and found["b"][1].tolist() == [4.0]


def test_values_are_arrays_only_if_no_input_is_a_tensor():
    assert type(grad_and_value(valley)(X)[1]) is float
    gradients, value = grad_and_value(lambda a, b: (a * b).sum(), argnums=(0, 1))(X, cygrad.ones(3))
    assert type(value) is cygrad.Tensor and [type(part) for part in gradients] == [np.ndarray, cygrad.Tensor]
    (value, extra), gradient = value_and_grad(lambda x: (valley(x), {"last": x[-1]}), has_aux=True)(X)
    assert (value, extra["last"]) == (valley(X), 2.0) and type(extra["last"]) is float
    np.testing.assert_allclose(gradient, slope(X))


def test_matrices_of_arrays_are_arrays():
    expected = np.array([grad(lambda x, i=i: (x ** 2 * x.sum())[i])(X) for i in range(3)])
    for transform in (jacrev, jacfwd):
        found = transform(lambda x: x ** 2 * x.sum())(X)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, expected)
    step = 1e-6 * np.eye(3)
    second = np.array([(slope(X + e) - slope(X - e)) / 2e-6 for e in step])
    np.testing.assert_allclose(hessian(valley)(X), second, rtol=1e-6)


def test_products_with_vectors_take_and_give_arrays():
    value, pull = vjp(np.sin, X)
    np.testing.assert_array_equal(value, np.sin(X))
    np.testing.assert_allclose(pull(np.ones(3))[0], np.cos(X))
    value, pushed = jvp(np.sin, (X,), (np.ones(3),))
    np.testing.assert_allclose(pushed, np.cos(X))
    value, push = linearize(np.sin, 0.5)
    assert (value, push(2.0)) == (np.sin(0.5), 2 * np.cos(0.5))
    batch = np.stack([X, 2 * X])
    found = vmap(grad(valley))(batch)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, [slope(row) for row in batch])


def test_history_that_leads_elsewhere_is_kept():
    weight = cygrad.tensor(2.0, requires_grad=True)
    found = grad(lambda x: weight * x ** 2)(3.0)
    found.backward()
    assert found == 12.0 and weight.grad == 6.0
    assert grad(lambda a: grad(lambda x: a * x ** 2)(3.0))(2.0) == 6.0
    assert jvp(lambda a: grad(lambda x: a * x ** 2)(3.0), (2.0,), (1.0,)) == (12.0, 6.0)


@pytest.mark.parametrize("value", [3, "three", np.arange(3), None])
def test_what_has_no_derivative_is_refused(value):
    with pytest.raises(RuntimeError, match=r"^grad: inputs must be floating point or complex Tensors, arrays"):
        grad(lambda x: x)(value)


def test_the_given_array_stays_as_it_is():
    given = X.copy()

    def changing(x):
        x = x * 1
        x[0] = 0
        return (x ** 2).sum()

    np.testing.assert_array_equal(grad(changing)(given), [0, -2, 4])
    np.testing.assert_array_equal(given, X)


def test_minimizers_take_gradients_and_hessians():
    for options in ({"jac": grad(valley), "method": "BFGS"}, {"jac": grad(valley), "hess": hessian(valley),
                                                                "method": "trust-exact"}):
        np.testing.assert_allclose(minimize(valley, np.zeros(3), **options).x, 1, atol=1e-4)
    np.testing.assert_allclose(minimize(value_and_grad(valley), np.zeros(3), jac=True).x, 1, atol=1e-4)


def test_solvers_of_equations_take_jacobians():
    def residuals(x):
        return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    np.testing.assert_allclose(least_squares(residuals, np.array([-1.0, 2.0]), jac=jacrev(residuals)).x, 1)
    np.testing.assert_allclose(root(residuals, np.array([-1.0, 2.0]), jac=jacfwd(residuals)).x, 1)


def test_stiff_equations_are_integrated_with_the_exact_jacobian():
    def oscillator(time, state):
        return np.stack([state[1], 10 * (1 - state[0] ** 2) * state[1] - state[0]])

    options = {"method": "Radau", "rtol": 1e-8, "atol": 1e-10}
    found = solve_ivp(oscillator, (0, 3), np.array([2.0, 0.0]), jac=jacrev(oscillator, argnums=1), **options)
    np.testing.assert_allclose(found.y[:, -1], solve_ivp(oscillator, (0, 3), np.array([2.0, 0.0]), **options).y[:, -1],
                               rtol=1e-6)


def test_curves_are_fitted_with_the_exact_jacobian():
    def decay(x, a, b):
        return a * np.exp(-b * x)

    def jacobian(x, *parameters):
        return jacrev(lambda p: decay(x, *p))(np.array(parameters))

    x = np.linspace(0, 4, 30)
    np.testing.assert_allclose(curve_fit(decay, x, decay(x, 2.5, 1.3), p0=[1.0, 1.0], jac=jacobian)[0], [2.5, 1.3])


WEIGHTS = np.array([0.5, 1.5, 2.5])


def filled(x):
    result = np.zeros_like(x)
    result[1:] = WEIGHTS[1:]
    result[0] = x[0]
    return result


@pytest.mark.parametrize("function", [
    lambda x: x * WEIGHTS, lambda x: WEIGHTS ** x, lambda x: np.where(x > WEIGHTS, x, WEIGHTS),
    lambda x: x[0] - WEIGHTS, lambda x: np.outer(WEIGHTS, x), lambda x: WEIGHTS @ x,
    lambda x: x[2] * WEIGHTS.astype(np.float32), lambda x: np.full_like(x, 3.0) * x, filled],
    ids=["mul", "pow", "where", "sub", "outer", "matmul", "float32", "full_like", "zeros_like"])
def test_arrays_are_operands_below_vmap(function):
    rows = np.array([[0.25, 1.75, 2.0], [1.5, 0.5, 3.0]])
    one_by_one = [function(cygrad.tensor(row)) for row in rows]
    together = vmap(function)(cygrad.tensor(rows))
    assert together.dtype == one_by_one[0].dtype
    np.testing.assert_allclose(together, np.stack(one_by_one))
    np.testing.assert_allclose(jacfwd(function)(rows[0]), jacrev(function)(rows[0]))
