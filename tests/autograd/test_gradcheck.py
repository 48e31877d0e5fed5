"""gradcheck and gradgradcheck: accepted arguments and detected mistakes."""

import numpy as np
import pytest

import cygrad
from cygrad.autograd import Function, gradcheck, gradgradcheck
from cygrad.autograd.gradcheck import GradcheckError

FAST = pytest.mark.parametrize("fast_mode", [False, True])


def real(*shape):
    """Random numbers that require grad."""
    return cygrad.from_numpy(np.random.default_rng(1).uniform(0.5, 2, shape)).requires_grad_()


def imaginary(*shape):
    """Random complex numbers that require grad."""
    rng = np.random.default_rng(2)
    return cygrad.from_numpy(rng.uniform(0.5, 2, shape) + 1j * rng.uniform(0.5, 2, shape)).requires_grad_()


def half_recorded(x):
    """x squared with half of its derivative."""
    return x * x.detach()


def scaled_gradient(change):
    """Return a function whose gradient is modified by `change`."""
    def function(x):
        y = x * 1
        y.register_hook(lambda grad: None if grad is None else change(grad))
        return y.sin()
    return function


@FAST
@pytest.mark.parametrize("make", [real, imaginary])
@pytest.mark.parametrize("function", [
    lambda x: x.sin(), lambda x: (x * x, x.exp().sum()), lambda x: x @ x.transpose(0, 1), lambda x: x[1:, ::2],
    lambda x: [x * 2],
], ids=["one", "two", "matrix", "view", "list"])
def test_right_gradients(function, make, fast_mode):
    assert gradcheck(function, make(2, 3), fast_mode=fast_mode, check_batched_grad=True)
    assert gradgradcheck(function, [make(2, 3)], fast_mode=fast_mode)


@FAST
def test_complex_to_real_and_back(fast_mode):
    z, x = imaginary(2), real(2)
    assert gradcheck(lambda z, x: (z.abs(), z.conj() * x, z.real, cygrad.complex(x, x * 2)), (z, x),
                     fast_mode=fast_mode)
    assert gradgradcheck(lambda z, x: (z.abs(), z.conj() * x), (z, x), fast_mode=fast_mode)


def test_other_arguments_and_outputs_are_passed_by():
    indices = cygrad.tensor([1, 0])
    assert gradcheck(lambda x, i, factor, constant: (x[i] * factor + constant, x.argmax(), "text"),
                     (real(2), indices, 2.0, cygrad.ones(2, dtype=cygrad.float64)))


@FAST
@pytest.mark.parametrize("layout", [
    lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: a[:0], lambda a: a[0, 0],
], ids=["transposed", "gaps", "backwards", "empty", "0-dim"])
def test_layouts(layout, fast_mode):
    x = cygrad.from_numpy(np.asarray(layout(np.random.default_rng(3).uniform(0.5, 2, (3, 4))))).requires_grad_()
    before = x.detach().clone()
    assert gradcheck(lambda x: x * x * x, x, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x * x, x, fast_mode=fast_mode, gen_non_contig_grad_outputs=True)
    np.testing.assert_array_equal(x.detach().numpy(), before.numpy())


def test_inputs_are_left_alone_if_the_function_fails():
    x, calls = real(2), []

    def function(x):
        calls.append(None)
        if len(calls) > 1:
            raise ArithmeticError("enough")
        return x * 2

    before = x.detach().clone()
    with pytest.raises(ArithmeticError):
        gradcheck(function, x)
    assert (x.detach() == before).all()
    assert x.grad is None


@FAST
@pytest.mark.parametrize("make", [real, imaginary])
def test_wrong_gradients_are_found(make, fast_mode):
    x = make(2, 2)
    with pytest.raises(GradcheckError, match="output 0 with respect to input 0") as info:
        gradcheck(half_recorded, x, fast_mode=fast_mode)
    assert "analytical" in str(info.value)
    assert "numerical" in str(info.value)
    assert str(_number(x)) in str(info.value)
    assert not gradcheck(half_recorded, x, fast_mode=fast_mode, raise_exception=False)


def _number(x):
    """The first two digits of the first element: a derivative that the message must show."""
    return f"{complex(x.detach().numpy().reshape(-1)[0]).real:.2f}"[:3]


@FAST
def test_the_message_names_input_and_output(fast_mode):
    def function(x, y):
        return x + y, y * y.detach()
    with pytest.raises(GradcheckError, match="output 1 with respect to input 1"):
        gradcheck(function, (real(2), real(2)), fast_mode=fast_mode)


@FAST
def test_a_hook_that_changes_the_gradient_is_found(fast_mode):
    assert gradcheck(scaled_gradient(lambda grad: None), real(2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(scaled_gradient(lambda grad: grad * 1.01), real(2), fast_mode=fast_mode)


@FAST
def test_wrong_second_derivatives_are_found(fast_mode):
    def second_order_lost(x):
        y = x * 1
        y.register_hook(lambda grad: None if grad is None else grad.detach())
        return y ** 3

    assert gradcheck(second_order_lost, real(2), fast_mode=fast_mode)
    with pytest.raises(GradcheckError):
        gradgradcheck(second_order_lost, real(2), fast_mode=fast_mode)
    assert not gradgradcheck(second_order_lost, real(2), fast_mode=fast_mode, raise_exception=False)


@FAST
def test_given_gradients_of_outputs(fast_mode):
    x, v = real(3), real(3)
    assert gradgradcheck(lambda x: x.exp(), x, v, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: (x.exp(), x * 2), (x,), (v, v.detach().clone()), fast_mode=fast_mode)


@FAST
def test_an_output_cut_off_from_the_graph_is_found(fast_mode):
    with pytest.raises(GradcheckError, match="does not require grad"):
        gradcheck(lambda x: x.detach() * 2, real(2), fast_mode=fast_mode)
    assert gradcheck(lambda x: cygrad.ones(2), real(2), fast_mode=fast_mode)


@FAST
def test_nondeterministic_backward_is_found(fast_mode):
    rng = np.random.default_rng(4)
    function = scaled_gradient(lambda grad: grad * (1 + 1e-7 * rng.uniform()))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(function, real(2), fast_mode=fast_mode)
    assert gradcheck(function, real(2), fast_mode=fast_mode, nondet_tol=1e-6)


@FAST
def test_gradients_that_ignore_their_argument_are_found(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(scaled_gradient(lambda grad: grad * 0 + 1), real(2), fast_mode=fast_mode)


def test_missing_gradients_count_as_zeros():
    x = real(3, 2)
    assert gradcheck(lambda x: x.unbind(1), x)
    assert gradcheck(lambda x: x.sort(0).values.split([1, 2]), x)
    assert gradcheck(lambda x: x.unbind(1), x, check_undefined_grad=False)


def three_parts(missing):
    """x thrice; `missing` says what backward makes of one missing gradient among three."""
    class Parts(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 1, x * 1

        @staticmethod
        def backward(ctx, *gradients):
            defined = [gradient for gradient in gradients if gradient is not None]
            if not defined:
                return None
            return sum(defined) if len(defined) != 2 else missing(*gradients)

    return Parts.apply


def test_a_backward_that_mistakes_missing_gradients_is_found():
    def right(*gradients):
        return sum(gradient for gradient in gradients if gradient is not None)

    def wrong(*gradients):
        return right(*gradients) * 2

    assert gradcheck(three_parts(right), real(2))
    assert gradcheck(three_parts(wrong), real(2), check_undefined_grad=False)
    advice = "undefined gradients are checked, too.*check_undefined_grad=False"
    with pytest.raises(GradcheckError, match=r"is wrong if only the outputs \[1, 2\] have a gradient"), \
            pytest.warns(UserWarning, match=advice):
        gradcheck(three_parts(wrong), real(2))
    with pytest.raises(GradcheckError, match=r"handle undefined output grads .* only the outputs"), \
            pytest.warns(UserWarning, match=advice):
        gradcheck(three_parts(lambda first, second, third: first + second + third), real(2))


def test_a_gradient_that_needs_all_outputs_is_found():
    def function(x):
        y = x * 1
        calls = []

        def hook(grad):
            calls.append(grad)
            return grad if grad is None or grad.abs().sum() == 0 or (grad != 0).all() else grad * 2

        y.register_hook(hook)
        return y[0], y[1]

    assert gradcheck(lambda x: (x[0], x[1]), real(2))
    with pytest.raises(GradcheckError):
        gradcheck(function, real(2))


def test_dtypes():
    x = real(2).detach().to(cygrad.float32).requires_grad_()
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-3)
    assert gradcheck(lambda x: x.to(cygrad.complex128) * 1j, real(2), check_grad_dtypes=True)


def test_wrong_shapes_and_dtypes_of_gradients_are_found(monkeypatch):
    # The engine itself brings gradients to shape and dtype, so it has to be replaced.
    module = __import__("sys").modules["cygrad.autograd.gradcheck"]
    right = module.grad

    def replaced(change):
        monkeypatch.setattr(module, "grad", lambda *args, **kwargs: tuple(map(change, right(*args, **kwargs))))

    replaced(lambda gradient: gradient if gradient is None else gradient.to(cygrad.float32))
    with pytest.raises(GradcheckError, match=r"wrong dtype \(got .*float32, expected .*float64"):
        gradcheck(lambda x: x * 2, real(2), check_grad_dtypes=True)
    assert gradcheck(lambda x: x * 2, real(2))
    replaced(lambda gradient: gradient.to(cygrad.complex128))
    with pytest.raises(GradcheckError, match="wrong dtype"):
        gradcheck(lambda x: x * 2, real(2))
    replaced(lambda gradient: gradient[:1])
    with pytest.raises(GradcheckError, match=r"wrong shape \(got \(1,\), expected \(2,\)\)"):
        gradcheck(lambda x: x * 2, real(2))


def test_a_backward_that_fails_for_batches_is_found():
    class Listed(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return cygrad.tensor((2 * g).tolist(), dtype=g.dtype)
    assert gradcheck(Listed.apply, real(2))
    with pytest.raises(GradcheckError, match="failed while testing batched gradient"):
        gradcheck(Listed.apply, real(2), check_batched_grad=True)
    assert not gradcheck(Listed.apply, real(2), check_batched_grad=True, raise_exception=False)


def test_wrong_batched_gradients_are_found(monkeypatch):
    module = __import__("sys").modules["cygrad.autograd.gradcheck"]
    right = module.grad

    def grad(*args, is_grads_batched=False, **kwargs):
        found = right(*args, is_grads_batched=is_grads_batched, **kwargs)
        return tuple(gradient * 2 for gradient in found) if is_grads_batched else found

    monkeypatch.setattr(module, "grad", grad)
    assert gradcheck(lambda x: x * 2, real(2))
    with pytest.raises(GradcheckError, match="batched"):
        gradcheck(lambda x: x * 2, real(2), check_batched_grad=True)


def jvp_of(rule):
    """A custom square whose jvp is `rule(x, tangent)`."""
    class Square(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0].conj()

        @staticmethod
        def jvp(ctx, tangent):
            return rule(ctx.saved_tensors[0], tangent)
    return Square.apply


@FAST
@pytest.mark.parametrize("make", [real, imaginary])
def test_forward_mode(make, fast_mode):
    def function(x, y):
        return x.sin() * y, (x @ y.t()).abs(), y.sum()
    inputs = (make(2, 3), make(2, 3).t().detach().clone().t().requires_grad_())
    assert gradcheck(function, inputs, check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, fast_mode=fast_mode)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, check_rev_over_rev=False, fast_mode=fast_mode)
    assert gradcheck(jvp_of(lambda x, tangent: 2 * x * tangent), make(3), check_forward_ad=True, fast_mode=fast_mode)


@FAST
@pytest.mark.parametrize("make", [real, imaginary])
def test_wrong_tangents_are_found(make, fast_mode):
    for wrong in (lambda x, tangent: x * tangent, lambda x, tangent: 2 * x * tangent.flip(0),
                  lambda x, tangent: (2 * x * tangent).detach() + 0.1):
        assert gradcheck(jvp_of(wrong), make(3), fast_mode=fast_mode)
        with pytest.raises(GradcheckError, match=r"(?s)analytical.*numerical.*Correct the jvp rule"):
            gradcheck(jvp_of(wrong), make(3), check_forward_ad=True, fast_mode=fast_mode)
        assert not gradcheck(jvp_of(wrong), make(3), check_forward_ad=True, fast_mode=fast_mode, raise_exception=False)


def test_refusals():
    x = real(2)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, x.detach())
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, real(1).detach().expand(3).requires_grad_())
    with pytest.raises(AssertionError, match="check_batched_forward_grad"):
        gradcheck(lambda x: x, x, check_batched_forward_grad=True)
    sparse = cygrad.eye(2, dtype=cygrad.float64).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match="masked=True"):
        gradcheck(lambda x: x.to_dense(), sparse)
    with pytest.raises(ValueError, match="to_dense"):
        gradcheck(lambda x: x * 2, sparse, masked=True)
    with pytest.raises(AssertionError, match="check_backward_ad"):
        gradcheck(lambda x: x, x, check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_rev_over_rev"):
        gradgradcheck(lambda x: x, x, check_rev_over_rev=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_sparse_inputs_with_all_elements_need_no_mask(fast_mode):
    full = real(2, 2).detach().to_sparse().requires_grad_()
    assert gradcheck(lambda x: x.to_dense() ** 2, full, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_values_of_sparse_inputs(fast_mode):
    class WrongSum(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return 2 * g.expand(3)

    sparse = cygrad.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, -1.0]], dtype=cygrad.float64).to_sparse().requires_grad_()
    options = {"masked": True, "fast_mode": fast_mode}
    assert gradcheck(lambda x, y: cygrad.sparse.mm(x, y), (sparse, real(3, 2)), **options)
    assert gradcheck(lambda x: x.to_dense() ** 2, sparse, check_forward_ad=True, **options)
    assert gradgradcheck(lambda x: x.to_dense() ** 3, sparse, **options)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(lambda x: WrongSum.apply(x.coalesce().values()), sparse, check_undefined_grad=False, **options)


def test_a_tangent_that_does_not_vanish_with_that_of_the_only_input_is_found():
    class Shifted(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def jvp(ctx, t):
            return t if t.any() else t + 1

    options = {"check_forward_ad": True, "check_backward_ad": False}
    assert gradcheck(Shifted.apply, real(2), check_undefined_grad=False, **options)
    with pytest.raises(GradcheckError, match="not linear in that of input 0"):
        gradcheck(Shifted.apply, real(2), **options)


@pytest.mark.parametrize("function", [
    lambda x, y: x * y.exp(), lambda x, y: (x @ y.t(), x.sum()), lambda x, y: (x[0], y.softmax(1))])
def test_batches_of_tangents_and_gradients(function):
    assert gradcheck(function, (real(2, 3), real(2, 3)), check_forward_ad=True, check_batched_forward_grad=True,
                     check_batched_grad=True)


class Scaled(Function):
    """The argument; tangents under vmap are scaled."""

    factor = 2

    @staticmethod
    def forward(ctx, x, y):
        return x.clone(), y.clone()

    @staticmethod
    def jvp(ctx, x, y):
        Scaled.calls += 1
        assert ctx.needs_input_grad == (False, False)
        return x * Scaled.factor if type(x) is not cygrad.Tensor else x, y


@pytest.mark.parametrize("factor", [1, 2])
def test_only_tangents_are_batched_and_no_input_requires_grad(monkeypatch, factor):
    monkeypatch.setattr(Scaled, "factor", factor)
    monkeypatch.setattr(Scaled, "calls", 0, raising=False)
    inputs = real(2), real(1)
    options = {"check_forward_ad": True, "check_batched_forward_grad": True, "check_backward_ad": False}
    if factor == 1:
        assert gradcheck(Scaled.apply, inputs, **options)
        assert Scaled.calls == 3 + 2 * 3 + 4         # columns, a batch and single tangents, missing tangents
    else:
        with pytest.raises(GradcheckError, match="the batched tangent of output 0 along input 0 is wrong"):
            gradcheck(Scaled.apply, inputs, **options)


def test_the_error_is_a_runtime_error():
    assert issubclass(GradcheckError, RuntimeError)
    assert cygrad.autograd.gradcheck is gradcheck


@pytest.mark.parametrize(("what", "change"), [("shape", lambda x: x[:1 + int(x[0] > 0.5)] * 1),
                                              ("dtype", lambda x: x.to(x.dtype if x[0] > 0.5 else cygrad.float32))])
def test_outputs_that_depend_on_values(what, change):
    x = cygrad.tensor([0.5, 0.7], dtype=cygrad.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are perturbed"):
        gradcheck(change, x)


class NeedsBoth(Function):
    """Its rule of forward mode takes a missing tangent for another one."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(x, y)
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return (None, None) if grad is None else (grad * y, grad * x)

    @staticmethod
    def jvp(ctx, x_tangent, y_tangent):
        x, y = ctx.saved_tensors
        return (cygrad.ones_like(x) if x_tangent is None else x_tangent * y) + (
            0 if y_tangent is None else y_tangent * x)


def test_missing_tangents_count_as_zeros():
    x, y = real(2), real(2)
    with pytest.raises(GradcheckError, match=r"only the inputs \[1\] have one"):
        gradcheck(NeedsBoth.apply, (x, y), check_forward_ad=True)
    assert gradcheck(NeedsBoth.apply, (x, y), check_forward_ad=True, check_undefined_grad=False)
    assert gradcheck(lambda x, y: x * y.sin(), (x, y), check_forward_ad=True)


def test_errors_of_backward_come_before_those_of_forward_mode():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("backward")

        @staticmethod
        def jvp(ctx, tangent):
            raise ValueError("jvp")

    x = cygrad.ones(2, dtype=cygrad.float64, requires_grad=True)
    for order in ({"check_backward_ad": False}, {}):
        with pytest.raises(ValueError, match="backward" if not order else "jvp"):
            gradcheck(Wrong.apply, x, check_forward_ad=True, **order)


@FAST
def test_small_offsets_of_the_gradient_are_found(fast_mode):
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(scaled_gradient(lambda grad: grad + 1e-2), real(2), atol=1e-1, fast_mode=fast_mode)
