"""Custom functions: Function, its context, its errors; anomaly mode."""

import copy
import gc
import pickle
import traceback
import warnings
import weakref

import pytest

import cygrad
from cygrad.autograd import Function, grad, gradcheck, gradgradcheck
from cygrad.autograd.function import once_differentiable
from tests.tools import FLOAT, leaf


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x ** 2 * g


class Product(Function):
    """Two tensors and a number, in the form with setup_context."""

    @staticmethod
    def forward(x, y, factor=2):
        return x * y * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.factor = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y * ctx.factor if ctx.needs_input_grad[0] else None,
                g * x * ctx.factor if ctx.needs_input_grad[1] else None, None)


def make(forward, backward, name="Made"):
    return type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


Alias = make(lambda ctx, x: x, lambda ctx, g: g * 5, "Alias")


# ------------------------------------------------------------------------------------------------------- the two forms

@pytest.mark.guarantee("F1")
def test_apply_and_backward():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    assert y.tolist() == [1, 8] and y.requires_grad and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [3, 12]


@pytest.mark.guarantee("F1")
def test_the_node():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    node = y.grad_fn
    assert type(node).__name__ == node.name() == "CubeBackward" and isinstance(node, cygrad.autograd.graph.Node)
    assert node is y.grad_fn and "CubeBackward object at" in repr(node)
    assert node.next_functions[0][0].variable is x
    later = x * 2
    assert later.grad_fn._sequence_nr() > node._sequence_nr()
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert node.saved_tensors[0] is x and node.needs_input_grad == (True,)
    with pytest.raises(AttributeError):
        _ = node.nothing


@pytest.mark.guarantee("F1")
def test_setup_context_and_names():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    assert grad(Product.apply(x, y).sum(), (x, y))[0].tolist() == [6, 8]
    out = Product.apply(x, y=y, factor=10)
    assert out.grad_fn.factor == 10 and grad(out.sum(), x)[0].tolist() == [30, 40]
    assert grad(Cube.apply(x=x).sum(), x)[0].tolist() == [3, 12]
    with pytest.raises(TypeError, match="nothing"):
        Cube.apply(x, nothing=3)


@pytest.mark.guarantee("F1")
def test_needs_input_grad():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0).detach()
    node = Product.apply(x, y, 3).grad_fn
    assert node.needs_input_grad == (True, False, False)
    assert node.next_functions[1] == (None, 0) and len(node.next_functions) == 2


@pytest.mark.guarantee("F1")
def test_not_recorded():
    x = leaf(1.0, 2.0)
    seen = []

    def forward(ctx, t):
        seen.append((cygrad.is_grad_enabled(), ctx.needs_input_grad))
        ctx.save_for_backward(t)
        return t * 2
    double = make(forward, lambda ctx, g: g * 2)
    with cygrad.no_grad():
        assert not double.apply(x).requires_grad
    assert not double.apply(x.detach()).requires_grad
    assert double.apply(x).requires_grad
    assert seen == [(False, (True,)), (False, (False,)), (False, (True,))]
    assert cygrad.is_grad_enabled()


@pytest.mark.guarantee("F1")
def test_attributes_and_other_arguments():
    def forward(ctx, x, text, numbers):
        ctx.text, ctx.numbers = text, numbers
        return x * numbers[0], text.upper()

    def backward(ctx, g, nothing):
        assert nothing is None
        return g * ctx.numbers[0], None, None
    x = leaf(1.0, 2.0)
    y, text = make(forward, backward).apply(x, "abc", [4, 5])
    assert text == "ABC" and y.grad_fn.text == "abc"
    assert grad(y.sum(), x)[0].tolist() == [4, 4]


@pytest.mark.guarantee("F1")
def test_gradients_of_any_order():
    x = leaf(0.5, 2.0)
    assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))
    first, = grad(Cube.apply(x).sum(), x, create_graph=True)
    second, = grad(first.sum(), x, create_graph=True)
    third, = grad(second.sum(), x)
    assert third.tolist() == [6, 6]
    z = cygrad.tensor([1 + 2j, 0.5j], dtype=cygrad.complex128, requires_grad=True)
    square = make(lambda ctx, t: (ctx.save_for_backward(t), t * t)[1],
                  lambda ctx, g: g * (2 * ctx.saved_tensors[0]).conj())
    assert gradcheck(square.apply, (z,)) and gradgradcheck(square.apply, (z,))


@pytest.mark.guarantee("F1")
def test_nested_apply():
    def forward(ctx, x):
        with cygrad.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = Cube.apply(ctx.x)
        return ctx.y.detach()
    nested = make(forward, lambda ctx, g: grad(ctx.y, ctx.x, g)[0])
    x = leaf(1.0, 2.0)
    nested.apply(Cube.apply(x)).sum().backward()
    assert x.grad.tolist() == [9, 9 * 2 ** 8]


@pytest.mark.guarantee("F1")
def test_vjp_is_backward():
    doubled = type("Doubled", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2),
                                            "vjp": staticmethod(lambda ctx, g: g * 2)})
    x = leaf(1.0)
    assert grad(doubled.apply(x), x)[0].item() == 2
    both = type("Both", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2),
                                      "backward": staticmethod(lambda ctx, g: g),
                                      "vjp": staticmethod(lambda ctx, g: g)})
    with pytest.raises(RuntimeError, match="Implementing both"):
        both.apply(x).backward()


# ----------------------------------------------------------------------------------------------------- several outputs

def two(materialize=None):
    seen = []

    def forward(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    def backward(ctx, a, b):
        seen.append((a, b))
        return 2 * (0 if a is None else a) + 3 * (0 if b is None else b)
    return make(forward, backward, "Two"), seen


@pytest.mark.guarantee("F1")
def test_several_outputs_share_one_node():
    x = leaf(1.0, 2.0)
    function, seen = two()
    a, b = function.apply(x)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)
    (a.sum() + 10 * b.sum()).backward()
    assert x.grad.tolist() == [32, 32] and len(seen) == 1


@pytest.mark.guarantee("F1")
def test_undefined_gradients():
    x = leaf(1.0, 2.0)
    function, seen = two()
    assert grad(function.apply(x)[1].sum(), x)[0].tolist() == [3, 3]
    assert seen[0][0].tolist() == [0, 0] and seen[0][0].dtype is FLOAT
    function, seen = two(materialize=False)
    assert grad(function.apply(x)[1].sum(), x)[0].tolist() == [3, 3]
    assert seen[0][0] is None


@pytest.mark.guarantee("F1")
def test_non_differentiable():
    def forward(ctx, x):
        index, rounded = x.argmax(), x * 2
        ctx.mark_non_differentiable(rounded)
        return index, rounded, x * 3
    function = make(forward, lambda ctx, i, r, g: g * 3)
    x = leaf(1.0, 2.0)
    index, rounded, y = function.apply(x)
    assert [t.requires_grad for t in (index, rounded, y)] == [False, False, True]
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.guarantee("F1")
def test_same_output_twice():
    def forward(ctx, x):
        y = x * 2
        return y, y
    a, b = make(forward, lambda ctx, a, b: 2 * a + 20 * b).apply(x := leaf(1.0, 2.0))
    assert a is b
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [60, 60]            # all that arrives is at the last place


@pytest.mark.guarantee("F1")
def test_same_changed_input_twice():
    def forward(ctx, x):
        ctx.mark_dirty(x.mul_(2))
        return x, x
    x = leaf(1.0, 2.0)
    a, b = make(forward, lambda ctx, a, b: 2 * a + 20 * b).apply(changed := x.clone())
    assert a is b is changed
    (a + 2 * b).sum().backward()
    assert x.grad.tolist() == [60, 60]


@pytest.mark.guarantee("F1")
@pytest.mark.parametrize("value", [3, None, "text", (), [1]])
def test_outputs_that_are_no_tensors(value):
    assert make(lambda ctx, x: value, lambda ctx, g: g).apply(leaf(1.0)) == value


# ---------------------------------------------------------------------------------------------- views and in-place

@pytest.mark.guarantee("F1")
def test_returned_input_is_a_view():
    x = leaf(1.0, 2.0)
    y = Alias.apply(x)
    assert y is not x and y._is_view() and y._base is x and y.data_ptr() == x.data_ptr()
    assert grad(y.sum(), x)[0].tolist() == [5, 5]
    plain = x.detach()
    assert Alias.apply(plain) is not plain and not Alias.apply(plain).requires_grad


@pytest.mark.guarantee("F1")
def test_views_cannot_be_changed_in_place():
    x = leaf(1.0, 2.0) * 1
    for function in (Alias, make(lambda ctx, t: t.view(2, 1), lambda ctx, g: g.view(2))):
        y = function.apply(x)
        assert y._is_view()
        with pytest.raises(RuntimeError, match="created inside a custom Function"):
            y.add_(1)
    parts = make(lambda ctx, t: (t[:1], t[1:]), lambda ctx, a, b: cygrad.cat([a, b]))
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        parts.apply(x)[0].add_(1)


def dirty(forward=None):
    def change(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x
    return make(forward or change, lambda ctx, g: g * 3, "Dirty")


@pytest.mark.guarantee("F1")
def test_mark_dirty():
    x = leaf(1.0, 2.0)
    y = x * 1
    version = y._version
    z = dirty().apply(y)
    assert z is y and y.grad_fn.name() == "DirtyBackward" and y._version > version and y.tolist() == [3, 6]
    assert grad(y.sum(), x)[0].tolist() == [3, 3]


@pytest.mark.guarantee("F1")
def test_mark_dirty_of_a_view():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    assert dirty().apply(view) is view
    assert base.grad_fn.name() == "CopySlices" and view.grad_fn.name() == "AsStridedBackward0"
    assert base.tolist() == [1, 6, 9]
    assert grad(base.sum(), x, create_graph=True)[0].tolist() == [1, 3, 3]
    assert grad(base.sum(), x)[0].tolist() == [1, 3, 3]


@pytest.mark.guarantee("F1")
def test_mark_dirty_errors():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        dirty().apply(x)
    with pytest.raises(RuntimeError, match="not returned as output"):
        dirty(lambda ctx, t: (ctx.mark_dirty(t), t * 2)[1]).apply(x * 1)
    with pytest.raises(RuntimeError, match="must return only that Tensor"):
        dirty(lambda ctx, t: (ctx.mark_dirty(t), (t, t * 2))[1]).apply((x * 1)[1:])
    with pytest.raises(TypeError, match="mark_dirty: expected Tensors"):
        dirty(lambda ctx, t: (ctx.mark_dirty(3), t)[1]).apply(x * 1)


@pytest.mark.guarantee("F1")
def test_mark_dirty_second_of_several():
    def forward(ctx, a, b):
        b.mul_(2)
        ctx.mark_dirty(b)
        return a * 3, b
    x, y = leaf(1.0), leaf(5.0)
    b = y * 1
    out, changed = make(forward, lambda ctx, g, h: (g * 3, h * 2)).apply(x, b)
    assert changed is b and b.output_nr == 1
    assert [g.item() for g in grad(out + b * 10, (x, y))] == [3, 20]


# ---------------------------------------------------------------------------------------------------------- saving

@pytest.mark.guarantee("F1")
def test_saved_tensors():
    def forward(ctx, x, w):
        y, between = x * w, w + 1
        ctx.save_for_backward(x, y, between, None)
        assert ctx.saved_tensors == ()
        return y

    def backward(ctx, g):
        x, y, between, nothing = ctx.saved_tensors
        assert nothing is None and not between.requires_grad
        return g * y / x, g * x
    function = make(forward, backward)
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = function.apply(x, w)
    saved = y.grad_fn.saved_tensors
    assert saved[0] is x and saved[1] is not y and saved[1].grad_fn is y.grad_fn
    assert saved[1].data_ptr() == y.data_ptr() and saved[2].tolist() == [4, 5]
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad.tolist() == [6, 8]
    with pytest.raises(RuntimeError, match=r"already been freed.*retain_graph=True"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = y.grad_fn.saved_tensors


@pytest.mark.guarantee("F1")
def test_saved_input_that_died_keeps_its_place():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x * 2)
    saved, = y.grad_fn.saved_tensors
    assert saved.grad_fn.name() == "MulBackward0"
    first, = grad(y.sum(), x, create_graph=True)
    assert grad(first.sum(), x)[0].tolist() == [48, 96]


@pytest.mark.guarantee("F1")
def test_saved_outsider_keeps_its_graph():
    w = leaf(2.0)
    inner = w * 3

    def forward(ctx, x):
        ctx.save_for_backward(inner, w)
        return x * inner
    x = leaf(1.0)
    y = make(forward, lambda ctx, g: g * ctx.saved_tensors[0] * ctx.saved_tensors[1]).apply(x)
    assert y.grad_fn.saved_tensors[0] is inner and y.grad_fn.saved_tensors[1] is w
    first, = grad(y, x, create_graph=True)
    assert grad(first, w)[0].item() == 12


@pytest.mark.guarantee("F1")
def test_save_errors():
    x = leaf(1.0)
    with pytest.raises(TypeError, match=r"save_for_backward: can only save Tensors and None .got int at position 1"):
        make(lambda ctx, t: (ctx.save_for_backward(t, 3), t * 1)[1], None).apply(x)
    with cygrad.inference_mode():
        inferred = cygrad.ones(1)
    with pytest.raises(RuntimeError, match="Inference tensor"):
        make(lambda ctx, t: (ctx.save_for_backward(inferred), t * 1)[1], None).apply(x)


@pytest.mark.guarantee("F1")
def test_no_cycle_and_no_leak():
    for attribute in (False, True):
        def forward(ctx, x, attribute=attribute):
            y = x * 2
            ctx.save_for_backward(x, y)
            if attribute:
                ctx.y = y                    # a cycle: the collector has to find it
            return y
        y = make(forward, lambda ctx, g: g * 2).apply(leaf(1.0))
        dead = weakref.ref(y.grad_fn)
        gc.collect()
        gc.disable()
        try:
            del y
            assert (dead() is None) is not attribute
        finally:
            gc.enable()
        gc.collect()
        assert dead() is None


@pytest.mark.guarantee("F1")
def test_long_chain():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = Cube.apply(y)
    z = y
    y.backward()
    assert x.grad.item() == float("inf") or x.grad.item() > 1e300
    del y, z
    kept = make(lambda ctx, t: (setattr(ctx, "t", t), t * 1)[1], lambda ctx, g: g)
    y = x
    for _ in range(100_000):
        y = kept.apply(y)
    del y
    gc.collect()


# --------------------------------------------------------------------------------------------------------- errors

def returning(value):
    return make(lambda ctx, x, y, k: x * y, lambda ctx, g: value, "Bad")


@pytest.mark.guarantee("F1")
@pytest.mark.parametrize(("value", "message"), [
    ((None,), "incorrect number of gradients .expected 3, got 1"),
    (cygrad.ones(3), "incorrect number of gradients"),
    ((cygrad.ones(2), None, None), r"invalid gradient .got shape \(2,\) at position 0, .*compatible with \(3,\)"),
    ((cygrad.ones(1), None, None), "invalid gradient"),
    ((None, None, cygrad.ones(3)), "different from None for an argument that is not a Tensor"),
    ((3.0, None, None), "expected Variable or None .got float"),
    ((cygrad.ones(3, dtype=cygrad.complex64), None, None), "wrong dtype .got complex64"),
])
def test_wrong_gradients(value, message):
    x, y = leaf(1.0, 2.0, 3.0), leaf(1.0, 2.0, 3.0)
    with pytest.raises(RuntimeError, match="BadBackward: backward .*" + message):
        returning(value).apply(x, y, 1).sum().backward()


@pytest.mark.guarantee("F1")
def test_gradients_are_fitted():
    x, y = leaf(1.0, 2.0, 3.0), leaf(1.0, 2.0, 3.0)
    value = cygrad.ones(3, dtype=cygrad.float32), cygrad.ones(2, 3, dtype=FLOAT), None, None
    returning(value).apply(x, y, 1).sum().backward()
    assert x.grad.dtype is FLOAT and x.grad.tolist() == [1, 1, 1] and y.grad.tolist() == [2, 2, 2]
    returning((None, None, None)).apply(z := leaf(1.0), y, 1).sum().backward()
    assert z.grad is None


@pytest.mark.guarantee("F1")
def test_missing_methods():
    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Function.apply(x)
    only_forward = type("OnlyForward", (Function,), {"forward": staticmethod(lambda ctx, t: t * 1)})
    with pytest.raises(NotImplementedError, match="You must implement either the backward"):
        only_forward.apply(x).backward()
    with pytest.raises(TypeError, match="positional argument"):
        Cube.apply(x, x)


@pytest.mark.guarantee("F1")
def test_exceptions_reach_the_caller():
    class Mine(Exception):
        pass

    def failing_line():
        raise Mine("inside")
    fails = [True]
    x = leaf(1.0)
    y = make(lambda ctx, t: (ctx.save_for_backward(t), t * 2)[1],
             lambda ctx, g: failing_line() if fails[0] else g * 2).apply(x)
    with pytest.raises(Mine, match="inside") as caught:
        y.backward()
    assert "failing_line" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    fails[0] = False
    y.backward()
    assert x.grad.item() == 2
    with pytest.raises(Mine):
        make(lambda ctx, t: failing_line(), None).apply(x)
    assert cygrad.is_grad_enabled()


@pytest.mark.guarantee("F1")
def test_no_pickling_no_copying():
    node = Cube.apply(leaf(1.0)).grad_fn
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(node)


@pytest.mark.guarantee("F1")
def test_hooks():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    order = []
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: order.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append("after"))
    y.sum().backward()
    assert order == ["tensor", "before", "after"]


@pytest.mark.guarantee("F1")
def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not cygrad.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * g
    x = leaf(1.0, 2.0)
    assert grad(Once.apply(x).sum(), x)[0].tolist() == [2, 4]
    first, = grad(Once.apply(x).sum(), x, create_graph=True)
    assert first.requires_grad and first.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match=r"differentiate twice.*once_differentiable"):
        first.sum().backward()


# --------------------------------------------------------------------------------------------------- anomaly mode

@pytest.mark.guarantee("F2")
def test_shows_the_forward_call():
    fails = make(lambda ctx, t: t * 1, lambda ctx, g: 1 / 0, "Fails")
    x = leaf(1.0)
    with pytest.warns(UserWarning, match="enabled"), cygrad.autograd.detect_anomaly():
        y = fails.apply(x) * 2         # the line to be shown
    with cygrad.autograd.set_detect_anomaly(True):
        with pytest.warns(UserWarning, match=r"(?s)in FailsBackward.*the line to be shown"), \
                pytest.raises(ZeroDivisionError):
            y.backward()
        with cygrad.autograd.set_detect_anomaly(False):
            y = fails.apply(x)
        with pytest.warns(UserWarning, match="No forward pass information"), pytest.raises(ZeroDivisionError):
            y.backward()


@pytest.mark.guarantee("F2")
@pytest.mark.parametrize("create_graph", [False, True])
def test_finds_nan(create_graph):
    x = leaf(0.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with cygrad.autograd.set_detect_anomaly(True):
            y = (x.sqrt() * 0).sum()
            with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th output"):
                y.backward(create_graph=create_graph)
        with cygrad.autograd.set_detect_anomaly(True, check_nan=False):
            (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().tolist() == [True, False]


@pytest.mark.guarantee("F2")
def test_state():
    from cygrad.autograd import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
    assert not is_anomaly_enabled()
    with set_detect_anomaly(True, check_nan=False):
        assert is_anomaly_enabled() and not is_anomaly_check_nan_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()
    set_detect_anomaly(True)
    assert is_anomaly_enabled() and is_anomaly_check_nan_enabled()
    set_detect_anomaly(False)

    @set_detect_anomaly(True)
    def inside():
        return is_anomaly_enabled()
    assert not is_anomaly_enabled() and inside() and not is_anomaly_enabled()
