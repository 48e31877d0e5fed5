"""Complex numbers: the conjugate Wirtinger derivative, functions between real and complex, checks."""

import cmath
import itertools

import numpy as np
import pytest

import cygrad
from cygrad.autograd import Function, grad, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError


def leaf(value, dtype=cygrad.complex128):
    return cygrad.tensor(value, dtype=dtype, requires_grad=True)


@pytest.mark.guarantee("C1")
@pytest.mark.parametrize(("name", "loss", "gradient"), [
    # grad = dL/da + i dL/db for z = a + ib, which is 2 dL/dz*
    ("abs squared", lambda z: (z * z.conj()).real, lambda z: 2 * z),
    ("real", lambda z: z.real, lambda z: 1),
    ("imag", lambda z: z.imag, lambda z: 1j),
    ("real of square", lambda z: (z * z).real, lambda z: 2 * z.conjugate()),
    ("imag of square", lambda z: (z * z).imag, lambda z: 2j * z.conjugate()),
    ("abs", lambda z: z.abs(), lambda z: z / abs(z)),
    ("angle", lambda z: z.angle(), lambda z: 1j * z / abs(z) ** 2),
    ("real of exp", lambda z: z.exp().real, lambda z: cmath.exp(z).conjugate()),
    ("holomorphic then abs", lambda z: (z * z * (2 + 1j)).abs(),
     lambda z: (2 * z * (2 + 1j)).conjugate() * (z * z * (2 + 1j)) / abs(z * z * (2 + 1j))),
])
def test_conjugate_wirtinger(name, loss, gradient):
    value = 0.6 - 1.3j
    z = leaf(value)
    (found,) = grad(loss(z), z)
    assert found.dtype is cygrad.complex128
    assert found.item() == pytest.approx(gradient(value), rel=1e-12)


@pytest.mark.guarantee("C1")
def test_follows_the_differences():
    def loss(z):
        return ((z * z + 1j * z.conj()).sin() * z.conj()).abs().sum()

    values = [0.3 + 0.4j, -1.1 + 0.2j]
    z = leaf(values)
    (found,) = grad(loss(z), z)
    step = 1e-6
    for i in range(2):
        for direction in (1, 1j):
            above, below = list(values), list(values)
            above[i] += step * direction
            below[i] -= step * direction
            slope = (loss(leaf(above)).item() - loss(leaf(below)).item()) / (2 * step)
            along = (found[i].item() * complex(direction).conjugate()).real
            assert slope == pytest.approx(along, rel=1e-6)


@pytest.mark.guarantee("C1")
@pytest.mark.parametrize("dtype", [cygrad.complex64, cygrad.complex128])
def test_gradient_descent_descends(dtype):
    target = cygrad.tensor([1 + 2j, -3 + 0.5j], dtype=dtype)
    z = leaf([0j, 0j], dtype=dtype)
    losses = []
    for _ in range(60):
        loss = (z - target).abs().pow(2).sum()
        loss.backward()
        losses.append(loss.item())
        with cygrad.no_grad():
            z -= 0.1 * z.grad
        z.grad = None
    assert all(later < earlier for earlier, later in itertools.pairwise(losses) if earlier > 1e-6)
    assert losses[-1] < 1e-6 * losses[0]


@pytest.mark.guarantee("C1")
def test_optimizers_take_complex_parameters():
    target = cygrad.tensor([1 + 2j, -3 + 0.5j], dtype=cygrad.complex128)
    optim = cygrad.optim
    for make in (lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
                 lambda p: optim.Adam(p, lr=0.1), lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.0)):
        z = leaf([0j, 0j])
        optimizer = make([z])

        def closure(z=z, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (z - target).abs().pow(2).sum()
            loss.backward()
            return loss

        first = closure().item()
        for _ in range(150):
            optimizer.step(closure)
        assert closure().item() < 0.01 * first, type(optimizer).__name__


@pytest.mark.guarantee("C1")
def test_real_inputs_get_real_gradients():
    x = cygrad.tensor([1.0, 2.0], dtype=cygrad.float64, requires_grad=True)
    z = leaf([1 + 1j, 2 - 1j])
    y = (x * z).real.sum()
    y.backward()
    assert x.grad.dtype is cygrad.float64
    assert x.grad.tolist() == [1.0, 2.0]
    assert z.grad.tolist() == [1 + 0j, 2 + 0j]


# ----------------------------------------------------------------------------- functions between real and complex

Z, W = [0.4 - 0.3j, -0.8 + 1.1j, 0.2 + 0.9j], [0.7 + 0.2j, 0.3 - 0.6j, -0.5 - 0.4j]
X, Y = [0.4, -0.8, 1.3], [0.9, 0.6, 0.2]

# Complex to complex, and holomorphic: the gradient is grad * conj(derivative). (function, its derivative)
HOLOMORPHIC = {
    "exp": (lambda m, z: z.exp(), cmath.exp),
    "log": (lambda m, z: z.log(), lambda z: 1 / z),
    "sqrt": (lambda m, z: z.sqrt(), lambda z: 0.5 / cmath.sqrt(z)),
    "sin": (lambda m, z: z.sin(), cmath.cos),
    "cos": (lambda m, z: z.cos(), lambda z: -cmath.sin(z)),
    "tanh": (lambda m, z: z.tanh(), lambda z: 1 - cmath.tanh(z) ** 2),
    "reciprocal": (lambda m, z: z.reciprocal(), lambda z: -1 / z ** 2),
    "cube": (lambda m, z: z ** 3, lambda z: 3 * z ** 2),
    "power": (lambda m, z: z ** (1 + 2j), lambda z: (1 + 2j) * z ** 2j),
    "rational": (lambda m, z: (z * z + 1j) / (z - 3), lambda z: 2 * z / (z - 3) - (z * z + 1j) / (z - 3) ** 2),
}
# Everything else: (function, inputs), written for either library, which is what `m` is.
BETWEEN = {
    "conj": (lambda m, z: z.conj(), [Z]),
    "abs": (lambda m, z: z.abs(), [Z]),
    "angle": (lambda m, z: z.angle(), [Z]),
    "real": (lambda m, z: z.real, [Z]),
    "imag": (lambda m, z: z.imag, [Z]),
    "sgn": (lambda m, z: m.sgn(z), [Z]),
    "view_as_real": (lambda m, z: m.view_as_real(z), [Z]),
    "view_as_complex": (lambda m, x: m.view_as_complex(x), [[[0.4, -0.8], [1.3, 0.2]]]),
    "polar": (lambda m, r, a: m.polar(r, a), [Y, X]),
    "complex": (lambda m, x, y: m.complex(x, y), [X, Y]),
    "product with its conjugate": (lambda m, z: z * z.conj(), [Z]),
    "matmul of real and complex": (lambda m, x, z: m.outer(x, x).to(m.complex128) @ z, [X, Z]),
    "real times complex": (lambda m, x, z: x * z, [X, Z]),
    "complex divided by real": (lambda m, z, x: z / x, [Z, X]),
    "real divided by complex": (lambda m, x, z: x / z, [X, Z]),
    "real plus complex, broadcast": (lambda m, x, z: x.reshape(3, 1) + z, [X, Z]),
    "real to a complex power": (lambda m, x, z: x ** z, [Y, Z]),
    "complex to a real power": (lambda m, z, x: z ** x, [Z, Y]),
    "complex to a complex power": (lambda m, z, w: z ** w, [Z, W]),
    "real, by a complex number": (lambda m, x: (x * (1 + 2j)).exp(), [X]),
    "norm": (lambda m, z: z.norm(), [Z]),
    "std": (lambda m, z: z.std(), [Z]),
    "prod": (lambda m, z: z.prod(), [Z]),
    "where": (lambda m, x, z: m.where(x > 0, x.to(m.complex128), z), [X, Z]),
    "stack": (lambda m, x, z: m.stack([x.to(m.complex128), z]), [X, Z]),
    "in place": (lambda m, x, z: (z * 1).mul_(x).real, [X, Z]),
}
BY_NAME = pytest.mark.parametrize("name", BETWEEN)


def leaves(values, library=cygrad):
    return [library.tensor(value, requires_grad=True,
                           dtype=library.complex128 if np.iscomplexobj(value) else library.float64) for value in values]


def pulled(library, function, values, differentiate):
    """Gradients for a vector that is different in each element of the result."""
    places = leaves(values, library)
    result = function(library, *places)
    vector = np.linspace(0.5, 1.5, result.numel()).reshape(tuple(result.shape))
    vector = library.from_numpy(np.asarray(vector * (1 - 0.5j) if result.dtype == library.complex128 else vector))
    return places, [gradient.resolve_conj() if hasattr(gradient, "resolve_conj") else gradient
                    for gradient in differentiate(result, places, vector)]


@pytest.mark.guarantee("C2")
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic(name):
    function, derivative = HOLOMORPHIC[name]
    z = leaf(Z)
    vector = [1 + 2j, 0.5 - 1j, -1j]
    (found,) = grad(function(cygrad, z), z, cygrad.tensor(vector, dtype=cygrad.complex128))
    expected = [v * complex(derivative(value)).conjugate() for v, value in zip(vector, Z, strict=True)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert gradcheck(lambda z: function(cygrad, z), z)


@pytest.mark.guarantee("C2")
@BY_NAME
def test_between_real_and_complex(name):
    function, values = BETWEEN[name]
    places, found = pulled(cygrad, function, values, grad)
    for place, gradient in zip(places, found, strict=True):
        assert gradient.dtype is place.dtype        # a real input gets a real gradient
    assert gradcheck(lambda *places: function(cygrad, *places), places, check_grad_dtypes=True)


@pytest.mark.guarantee("C2")
@BY_NAME
def test_as_the_peer(name):
    torch = pytest.importorskip("torch")
    function, values = BETWEEN[name]
    _, found = pulled(cygrad, function, values, grad)
    _, expected = pulled(torch, function, values, torch.autograd.grad)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.guarantee("C2")
def test_gradient_of_a_real_input_is_the_real_part():
    x = cygrad.tensor(2.0, dtype=cygrad.float64, requires_grad=True)
    (found,) = grad(x * (3 + 4j), x, cygrad.tensor(1 + 1j, dtype=cygrad.complex128))
    assert found.item() == ((1 + 1j) * (3 - 4j)).real


@pytest.mark.guarantee("C2")
def test_views_of_the_parts_write_into_the_number():
    z = leaf(Z)
    w = z * 1
    w.real.mul_(2)
    cygrad.view_as_real(w)[..., 1].mul_(3)
    w.abs().pow(2).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [8 * value.real + 18j * value.imag for value in Z], rtol=1e-12)


# --------------------------------------------------------------------------------------------------- checks

@pytest.mark.guarantee("C3")
@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", ["abs", "sgn", "polar", "complex divided by real", "product with its conjugate"])
def test_checks_take_complex_inputs_and_results(name, fast_mode):
    function, values = BETWEEN[name]

    def checked(*places):
        return function(cygrad, *places)

    assert gradcheck(checked, leaves(values), fast_mode=fast_mode)
    assert gradgradcheck(checked, leaves(values), fast_mode=fast_mode)


class WithoutConjugate(Function):
    """The square of a complex number, with a mistake that only complex numbers show."""

    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2 * ctx.saved_tensors[0]


@pytest.mark.guarantee("C3")
@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_missing_conjugate_is_found(fast_mode):
    assert gradcheck(WithoutConjugate.apply, leaves([X]), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(WithoutConjugate.apply, leaves([Z]), fast_mode=fast_mode)


@pytest.mark.guarantee("C3")
def test_backward_from_a_complex_scalar_needs_a_gradient():
    z = leaf(0.6 - 1.3j)
    for start in (lambda result: result.backward(), lambda result: grad(result, z),
                  lambda result: cygrad.autograd.backward([result], [None])):
        with pytest.raises(RuntimeError, match="complex"):
            start(z * z)
    assert z.grad is None
    (z * z).backward(cygrad.tensor(1 + 0j, dtype=cygrad.complex128))
    assert z.grad.item() == pytest.approx(2 * (0.6 + 1.3j))


@pytest.mark.guarantee("C3")
def test_gradients_must_be_of_the_kind_of_the_result():
    z = leaf(0.6 - 1.3j)
    with pytest.raises(RuntimeError, match=r"complex128|float64"):
        z.abs().backward(cygrad.tensor(1j, dtype=cygrad.complex128))
