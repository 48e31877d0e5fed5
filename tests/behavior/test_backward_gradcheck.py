"""gradcheck and gradgradcheck: accepted functions, detected mistakes, messages."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import Function, gradcheck, gradgradcheck

pytestmark = pytest.mark.guarantee("B5")

FAST = pytest.mark.parametrize("fast_mode", [False, True])


def draw(*shape, dtype=cygrad.float64):
    values = np.random.default_rng(7).uniform(0.5, 1.5, (2, *shape))
    values = values[0] + 1j * values[1] if dtype.is_complex else values[0]
    return cygrad.from_numpy(np.asarray(values)).to(dtype).requires_grad_()


def with_backward(backward):
    """x**2 with a backward of one's own."""
    class Made(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

    Made.backward = staticmethod(backward)
    return Made.apply


@FAST
@pytest.mark.parametrize("dtype", [cygrad.float64, cygrad.complex128])
def test_gradcheck_dtypes_and_layouts(dtype, fast_mode):
    x = draw(3, 4, dtype=dtype)
    for function in (lambda x: x.t().sin() * x.t(), lambda x: x[::2, 1:].flip(0) ** 2, lambda x: (x * x.conj()).real,
                     lambda x: x.unsqueeze(0).expand(2, 3, 4) * 2, lambda x: cygrad.stack([x, x * x]).sum(0)):
        assert gradcheck(function, x, fast_mode=fast_mode)
        assert gradgradcheck(function, x, fast_mode=fast_mode)
    strided = draw(4, 6, dtype=dtype).detach()[::2, ::3].requires_grad_()
    assert gradcheck(lambda x: x.exp(), strided, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x.exp(), strided, fast_mode=fast_mode, gen_non_contig_grad_outputs=True)


@FAST
def test_gradcheck_shows_numerical_against_analytical(fast_mode):
    wrong = with_backward(lambda ctx, g: g * ctx.saved_tensors[0])
    with pytest.raises(RuntimeError, match=r"Jacobian mismatch for output 0 with respect to input "
                                           r"0.*analytical:\n(.*\n)*expected numerical:\n"):
        gradcheck(wrong, draw(2), fast_mode=fast_mode)
    assert gradcheck(wrong, draw(2), fast_mode=fast_mode, raise_exception=False) is False


@FAST
def test_gradcheck_finds_gradients_that_change_between_runs(fast_mode):
    rng = np.random.default_rng(3)
    random = with_backward(lambda ctx, g: 2 * g * ctx.saved_tensors[0] * (1 + 1e-9 * rng.uniform()))
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        gradcheck(random, draw(2), fast_mode=fast_mode)
    assert gradcheck(random, draw(2), fast_mode=fast_mode, nondet_tol=1e-6)


def test_gradcheck_of_undefined_gradients():
    class Sum(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            parts = [factor * g for factor, g in ((2, a), (3, b)) if g is not None]
            return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"), \
            pytest.warns(UserWarning, match="check_undefined_grad=False"):
        gradcheck(Sum.apply, draw(2))
    assert gradcheck(Sum.apply, draw(2), check_undefined_grad=False)


@FAST
def test_gradcheck_of_batched_gradients(fast_mode):
    x, y = draw(3), draw(2, 3)
    assert gradcheck(lambda x, y: x * y.exp(), (x, y), check_batched_grad=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: x * y.exp(), (x, y), check_batched_grad=True, fast_mode=fast_mode)


def test_gradgradcheck_finds_a_backward_that_cannot_be_differentiated():
    lost = with_backward(lambda ctx, g: 2 * g * ctx.saved_tensors[0].detach())
    assert gradcheck(lost, draw(2))
    with pytest.raises(RuntimeError, match="gradcheck: "):
        gradgradcheck(lost, draw(2))


def test_gradcheck_refuses_what_it_cannot_check():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(cygrad.sin, cygrad.ones(2, dtype=cygrad.float64))
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(cygrad.sin, cygrad.ones(1, dtype=cygrad.float64).expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(cygrad.sin, draw(2, dtype=cygrad.float32), eps=1e-2, atol=1e-2, rtol=1e-2)
