"""cygrad.utils.checkpoint."""

import contextlib
import gc
import weakref

import pytest

import cygrad
from cygrad.autograd import grad
from cygrad.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

pytestmark = pytest.mark.guarantee("F3")

FLOAT = cygrad.float64
FORMS = pytest.mark.parametrize("use_reentrant", [False, True])


def leaf(*values):
    return cygrad.tensor(values, dtype=FLOAT, requires_grad=True)


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


@FORMS
def test_same_gradients(use_reentrant):
    x, w = leaf(0.5, 1.0), leaf(2.0, 3.0)
    function = Counted(lambda t, k: ((t * w).exp().sin() * k, t * 2))
    expected = grad(sum(function.function(x * 1, 3)).sum(), (x, w))
    function.calls = 0
    out, other = checkpoint(function, x * 1, 3, use_reentrant=use_reentrant)
    (out + other).sum().backward(retain_graph=True)
    assert function.calls == 2
    assert cygrad.allclose(x.grad, expected[0]) and cygrad.allclose(w.grad, expected[1])
    (out + other).sum().backward()
    assert function.calls == 3 and cygrad.allclose(x.grad, 2 * expected[0])
    with pytest.raises(RuntimeError, match="already been freed"):
        (out + other).sum().backward()


@FORMS
def test_random_numbers_are_the_same(use_reentrant):
    x = leaf(*[1.0] * 50)

    def function(t):
        return t * cygrad.rand(50, dtype=FLOAT) * t
    cygrad.manual_seed(5)
    expected = grad(function(x).sum(), x)[0]
    after = cygrad.rand(3)
    cygrad.manual_seed(5)
    out = checkpoint(function, x, use_reentrant=use_reentrant)
    state = cygrad.get_rng_state()
    out.sum().backward()
    assert x.grad.equal(expected)
    assert cygrad.get_rng_state().equal(state) and cygrad.rand(3).equal(after)


def test_nothing_is_kept():
    x = leaf(1.0, 2.0)
    alive = []

    def function(t):
        y = t.exp()
        alive.append(weakref.ref(y))
        return y.sin().cos()
    out = checkpoint(function, x)
    gc.collect()
    assert alive[0]() is None
    frame = out.grad_fn.next_functions[0][0]
    assert frame.name() == "SinBackward0" and cygrad.allclose(frame._saved_self, x.exp())
    out.sum().backward()
    assert all(reference() is None for reference in alive)


def test_double_backward_and_grad():
    x = leaf(0.5, 1.0)
    for function in (lambda t: t.exp().sin(), lambda t: checkpoint(lambda u: u.sin() * u, t * t).exp()):
        first, = grad(checkpoint(function, x).sum(), x, create_graph=True)
        wanted, = grad(function(x).sum(), x, create_graph=True)
        assert cygrad.allclose(first, wanted)
        assert cygrad.allclose(grad(first.sum(), x)[0], grad(wanted.sum(), x)[0])


def test_nested_gives_up_inner_inputs():
    x = leaf(1.0, 2.0)
    alive = []

    def outer(t):
        y = t.exp()
        alive.append(weakref.ref(y))
        return checkpoint(lambda u: u.sin().exp(), y) * 2
    out = checkpoint(outer, x)
    gc.collect()
    assert alive[0]() is None
    out.sum().backward()
    assert cygrad.allclose(x.grad, grad((x.exp().sin().exp() * 2).sum(), x)[0])


def test_keyword_arguments_and_contexts():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *exception):
            pass
    out = checkpoint(lambda a, *, b, power: a * b.pow(power), x, b=y, power=2,
                     context_fn=lambda: (Context("first"), Context("second")))
    out.sum().backward()
    assert x.grad.tolist() == [9, 16] and y.grad.tolist() == [6, 16] and entered == ["first", "second"]


def test_modes():
    x = leaf(1.0, 2.0)
    function = Counted(lambda t: t.exp())
    with cygrad.no_grad():
        assert not checkpoint(function, x).requires_grad
    assert not checkpoint(function, x.detach()).requires_grad and function.calls == 2


def test_errors():
    x = leaf(1.0, 2.0)
    times = []

    def less_and_less(t):
        times.append(1)
        return t.sin().exp() * t if len(times) == 1 else t * 2
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        checkpoint(less_and_less, x).sum().backward()
    with pytest.raises(TypeError, match="expected a function"):
        checkpoint(3, x)
    with pytest.raises(ValueError, match="keyword arguments"):
        checkpoint(lambda t: t, x, use_reentrant=True, k=3)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda t: t, x, determinism_check="other")

    def failing(t):
        if times.append(1) or len(times) > 3:
            raise KeyError("mine")
        return t.sin()
    times[:] = [1, 1]
    out = checkpoint(failing, x)
    with pytest.raises(KeyError, match="mine"):
        out.sum().backward()
    del times[:]
    out.sum().backward()
    assert cygrad.allclose(x.grad, x.cos().detach())


@FORMS
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(use_reentrant, segments):
    layers = [cygrad.nn.Linear(4, 4, dtype=FLOAT) for _ in range(5)]
    model = cygrad.nn.Sequential(*layers)
    x = cygrad.randn(3, 4, dtype=FLOAT, requires_grad=True)
    expected = grad(model(x).sum(), (x, layers[0].weight))
    for chain in (model, layers):
        out = checkpoint_sequential(chain, segments, x, use_reentrant=use_reentrant)
        assert out.equal(model(x))
        x.grad = layers[0].weight.grad = None
        out.sum().backward()
        assert cygrad.allclose(x.grad, expected[0]) and cygrad.allclose(layers[0].weight.grad, expected[1])
    with pytest.raises(ValueError, match="segments must be between"):
        checkpoint_sequential(model, 6, x)


def test_stops_early_unless_told():
    steps = []

    def function(t):
        y = t.sin().exp()
        steps.append("after what is saved")
        return y
    for enable, count in ((True, 1), (False, 2)):
        steps.clear()
        with set_checkpoint_early_stop(enable):
            out = checkpoint(function, leaf(1.0), early_stop=not enable)
        out.sum().backward()
        assert len(steps) == count


def differing():
    """A function that saves tensors of another shape the second time."""
    times = []

    def function(t):
        times.append(1)
        return t.sin() * 2 if len(times) == 1 else t[:1].sin() * 2
    return function


def test_errors_list_what_was_saved():
    with pytest.raises(CheckpointError, match=r"different metadata(.|\n)*position 0:\n    saved: \(2,\) .*float64"
                                              r"(.|\n)*recomputed: \(1,\)(.|\n)*debug=True"):
        checkpoint(differing(), leaf(1.0, 2.0)).sum().backward()
    here = __file__.replace(".", r"\.")
    for debug, block in ((True, None), (False, True)):
        with set_checkpoint_debug_enabled(block):
            out = checkpoint(differing(), leaf(1.0, 2.0), debug=debug)
        with pytest.raises(CheckpointError, match=rf"saved by {here}:\d+: return t\.sin"):
            out.sum().backward()


def test_other_dtypes_are_converted_where_nothing_is_compared():
    """As many digits as the second computation has."""
    times = []

    def wider(t):
        times.append(1)
        return t.exp() if len(times) == 1 else t.to(FLOAT).exp().to(t.dtype)
    x = cygrad.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(wider, x).sum().backward()
    del times[:]
    checkpoint(wider, x, determinism_check="none").sum().backward()
    assert cygrad.allclose(x.grad, x.exp().detach())

    def fewer(t):
        times.append(1)
        return t[:2 if len(times) == 1 else 1].exp().sum()
    del times[:]
    with pytest.raises(RuntimeError, match="shape"):
        checkpoint(fewer, x, determinism_check="none").backward()


def test_reentrant_has_no_gradients_of_some_only():
    for run in (lambda out, x: grad(out, x), lambda out, x: out.backward(inputs=[x])):
        x = leaf(1.0)
        with pytest.raises(RuntimeError, match="use_reentrant=True"):
            run(checkpoint(cygrad.sin, x, use_reentrant=True).sum(), x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(cygrad.sin, cygrad.ones(2), use_reentrant=True)


def test_names_of_other_programs():
    assert all(isinstance(context, contextlib.nullcontext) for context in noop_context_fn())
    x, y = detach_variable((leaf(1.0) * 2, 3))
    assert x.is_leaf and x.requires_grad and y == 3
    with pytest.raises(RuntimeError, match="only a tuple"):
        detach_variable([1])


def test_saved_tensors_are_to_be_asked_for_once():
    class Asking(cygrad.autograd.Function):
        times = 2

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            for _ in range(Asking.times):
                (x,) = ctx.saved_tensors
            return grad * 2 * x / x

    x = leaf(1.0, 2.0)
    with pytest.raises(CheckpointError, match="already unpacked once in this backward"):
        checkpoint(lambda x: Asking.apply(x * 1), x, use_reentrant=False).sum().backward()
    Asking.times = 1
    y = checkpoint(lambda x: Asking.apply(x * 1), x, use_reentrant=False).sum()
    x.grad = None
    y.backward(retain_graph=True)
    y.backward()                             # another backward may ask again
    assert x.grad.tolist() == [4, 4]


@pytest.mark.parametrize("early_stop", [False, True])
def test_backward_inside_of_nested_checkpoints(early_stop):
    def derivative(function):
        return lambda x: grad(function(x), x, create_graph=True)[0]

    def checkpointed(function):
        return lambda x: checkpoint(function, x, use_reentrant=False)

    def function(x):
        return x.sin().exp().sin()

    x = leaf(0.3)
    second = derivative(derivative(function))(x)
    with set_checkpoint_early_stop(early_stop):
        for form in (derivative(checkpointed(derivative(function))),
                     checkpointed(derivative(derivative(checkpointed(function)))),
                     derivative(checkpointed(derivative(checkpointed(function))))):
            assert cygrad.allclose(form(x), second, rtol=1e-12)
            assert cygrad.allclose(derivative(form)(x), derivative(derivative(derivative(function)))(x), rtol=1e-12)
