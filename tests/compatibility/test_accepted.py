"""
Intended differences of operators from PyTorch: additional inputs, and higher accuracy.

They are what a comparison with PyTorch's own database of samples reports and what is not to be mended.
"""

import numpy as np
import pytest

import cygrad
import cygrad.autograd.forward_ad as forward

torch = pytest.importorskip("torch")

ACCEPTED = {
    "logical_and": ("truth values of numbers are clear", lambda t: t.logical_and(t.ones(2), 2)),
    "logical_or": ("truth values of numbers are clear", lambda t: t.logical_or(0, t.ones(2))),
    "logical_xor": ("truth values of numbers are clear", lambda t: t.logical_xor(t.ones(2), 0)),
    "narrow": ("a mask of one element is an index as any bool of Python", lambda t: t.ones(3).narrow(
        0, t.tensor(True), 2)),
}


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.filterwarnings("ignore:(?s).*resized")
def test_only_accepted_here(name):
    _, call = ACCEPTED[name]
    call(cygrad)
    with pytest.raises((RuntimeError, TypeError)):
        call(torch)


def central(function, x, step):
    """The derivative of a function of ndarrays, by Richardson's extrapolation."""
    def slope(h):
        return (function(x + h) - function(x - h)) / (2 * h)
    return (4 * slope(step / 2) - slope(step)) / 3


EXACT = {
    "bessel_j0": (lambda t, x: t.special.bessel_j0(x), 9.0, -0.09033361118287613),
    "bessel_j1": (lambda t, x: t.special.bessel_j1(x), 9.0, 0.24531178657332528),
    "bessel_y0": (lambda t, x: t.special.bessel_y0(x), 9.0, 0.2499366982850247),
    "bessel_y1": (lambda t, x: t.special.bessel_y1(x), 9.0, 0.10431457519671589),
    "airy_ai": (lambda t, x: t.special.airy_ai(x), -2.125, 0.14692191656424264),
}


@pytest.mark.parametrize("name", EXACT)
def test_only_exact_here(name):
    """Values as mpmath computes them with 30 digits."""
    function, place, expected = EXACT[name]
    ours = function(cygrad, cygrad.tensor([place], dtype=cygrad.float64)).item()
    assert ours == pytest.approx(expected, rel=1e-14)
    assert abs(function(torch, torch.tensor([place], dtype=torch.float64)).item() - expected) > 1e-10


def test_trigamma():
    """The recurrence psi'(x) = psi'(x + 1) + 1/x**2."""
    for library, exact in ((cygrad, True), (torch, False)):
        x = library.linspace(1.0, 9.0, 40, dtype=library.float64)
        missed = library.polygamma(1, x) - library.polygamma(1, x + 1) - 1 / (x * x)
        assert (missed.abs().max().item() < 1e-15) == exact


def test_hardsigmoid():
    """The slope is a sixth, in double precision too."""
    for library, exact in ((cygrad, True), (torch, False)):
        x = library.zeros(1, dtype=library.float64, requires_grad=True)
        library.nn.functional.hardsigmoid(x).sum().backward()
        assert (x.grad.item() == 1 / 6) == exact


def test_as_strided_scatter():
    """What was overwritten has no gradient."""
    for library, expected in ((cygrad, [0, 1, 1]), (torch, [1, 0, 0])):
        x = library.zeros(3, requires_grad=True)
        library.as_strided_scatter(x, library.ones(1), (1,), (1,), 0).sum().backward()
        assert x.grad.tolist() == expected


def test_second_derivative_of_a_norm_at_zero():
    """That of the sub-gradient of least norm, which is 0 there."""
    for library, expected in ((cygrad, False), (torch, True)):
        x = library.zeros(2, dtype=library.float64, requires_grad=True)
        (first,) = library.autograd.grad(library.linalg.norm(x), x, create_graph=True)
        (second,) = library.autograd.grad(first.sum(), x)
        assert second.isnan().any().item() == expected


@pytest.mark.filterwarnings("ignore:.*jit.script.*is deprecated")
def test_forward_mode_of_logcumsumexp():
    """The means of the tangents so far, weighted by softmax, where elements differ by much."""
    x, t = np.array([0.0, 40.0, 5.0, 60.0, -20.0]), np.arange(5.0)
    expected = [np.average(t[:i], weights=np.exp(x[:i] - x[:i].max())) for i in range(1, 6)]
    for library, exact in ((cygrad, True), (torch, False)):
        mode = library.autograd.forward_ad
        with mode.dual_level():
            dual = mode.make_dual(library.from_numpy(x), library.from_numpy(t))
            found = mode.unpack_dual(library.logcumsumexp(dual, 0)).tangent
        assert (np.abs(found.numpy() - expected).max() < 1e-14) == exact


def test_forward_mode_of_cholesky_inverse():
    values = np.random.default_rng(0).standard_normal((4, 4))
    factor, direction = np.triu(values), np.triu(np.random.default_rng(1).standard_normal((4, 4)))

    def inverse(upper):
        return np.linalg.inv(upper.T @ upper)
    expected = central(lambda t: inverse(factor + t * direction), 0.0, 1e-5)
    with forward.dual_level():
        dual = forward.make_dual(cygrad.from_numpy(factor), cygrad.from_numpy(direction))
        found = forward.unpack_dual(cygrad.cholesky_inverse(dual, upper=True)).tangent
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
