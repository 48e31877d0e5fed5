"""Complex numbers: the gradient is the conjugate Wirtinger derivative (row C1)."""

import cmath
import itertools

import pytest

import cygrad
from cygrad.autograd import grad


def leaf(value, dtype=cygrad.complex128):
    return cygrad.tensor(value, dtype=dtype, requires_grad=True)


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
def test_C1_conjugate_wirtinger(name, loss, gradient):
    value = 0.6 - 1.3j
    z = leaf(value)
    (found,) = grad(loss(z), z)
    assert found.dtype is cygrad.complex128
    assert found.item() == pytest.approx(gradient(value), rel=1e-12)


def test_C1_follows_the_differences():
    def loss(z):
        return ((z * z + 1j * z.conj()).sin() * z.conj()).abs().sum()

    values = [0.3 + 0.4j, -1.1 + 0.2j]
    z = leaf(values)
    (found,) = grad(loss(z), z)
    step = 1e-6
    for i in range(2):
        for direction in (1, 1j):
            ahead, behind = list(values), list(values)
            ahead[i] += step * direction
            behind[i] -= step * direction
            slope = (loss(leaf(ahead)).item() - loss(leaf(behind)).item()) / (2 * step)
            along = (found[i].item() * complex(direction).conjugate()).real
            assert slope == pytest.approx(along, rel=1e-6)


@pytest.mark.parametrize("dtype", [cygrad.complex64, cygrad.complex128])
def test_C1_gradient_descent_descends(dtype):
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


def test_C1_optimizers_take_complex_parameters():
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


def test_C1_real_inputs_get_real_gradients():
    x = cygrad.tensor([1.0, 2.0], dtype=cygrad.float64, requires_grad=True)
    z = leaf([1 + 1j, 2 - 1j])
    y = (x * z).real.sum()
    y.backward()
    assert x.grad.dtype is cygrad.float64
    assert x.grad.tolist() == [1.0, 2.0]
    assert z.grad.tolist() == [1 + 0j, 2 + 0j]
