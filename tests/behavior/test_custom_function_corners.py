"""Corner cases of custom Functions: instances, constant gradients, packed constants."""

import gc
import weakref

import pytest

import cygrad
from cygrad.autograd import Function
from cygrad.autograd.graph import saved_tensors_hooks
from cygrad.utils.checkpoint import checkpoint
from tests.tools import leaf

pytestmark = pytest.mark.guarantee("F1")


class Cube(Function):
    """x to the third power."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2


class Same(Function):
    """The argument."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Wrapped(cygrad.Tensor):
    """A subclass that wraps what functions return in a new object with a mark."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls):
            result.mark = func.__name__
        return result


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_argument_that_forward_returns_keeps_its_class(requires_grad):
    x = cygrad.ones(2).as_subclass(Wrapped).requires_grad_(requires_grad)
    y = Same.apply(x)
    assert type(y) is Wrapped and y is not x and y.mark == "view_as" and y.data_ptr() == x.data_ptr()
    assert y.requires_grad is requires_grad
    if requires_grad:
        y.sum().backward()
        assert x.grad.tolist() == [3, 3] and y.grad_fn.name() == "SameBackward"
        with pytest.raises(RuntimeError, match="view was created inside a custom Function"):
            y.add_(1)


def test_instances_are_of_no_use():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        cube = Cube()
    assert isinstance(cube, Cube)
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
        cube(leaf(1.0))
    for name in ("next_functions", "saved_tensors", "register_hook", "metadata"):
        with pytest.raises(RuntimeError, match=f"Attribute '{name}' is invalid"):
            getattr(cube, name)
    assert not hasattr(cube, "anything_else")


@pytest.mark.parametrize("materialized", [True, False])
def test_gradients_of_constant_outputs_are_zeros_or_none(materialized):
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            first, second = x.clone(), x.clone()
            ctx.mark_non_differentiable(second)
            ctx._materialize_non_diff_grads = materialized
            return first, second

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first

    seen = []
    Twice.apply(leaf(2.0))[0].backward()
    assert (seen[0] is not None) == materialized


def test_a_constant_that_hooks_pack_is_itself_in_backward():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x, factor)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            return g, None

    x, factor, seen = leaf(2.0), cygrad.tensor(3.0), []
    for call in (Scale.apply, lambda *args: checkpoint(Scale.apply, *args, use_reentrant=False)):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = call(x, factor)
        y.backward()
    assert [tensor is factor for tensor in seen] == [False, True] * 2
    assert [tensor.requires_grad for tensor in seen] == [True, False] * 2


def test_saved_tensors_are_freed_at_their_first_access_if_asked():
    class Square(Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            alive = weakref.ref(x)
            result = 2 * x * g
            del x
            seen.append(alive())
            if again:
                seen.append(ctx.saved_tensors)
            return result

    seen, again, x = [], False, leaf(3.0)
    Square.apply(x.clone()).backward()
    assert seen == [None] and x.grad == 6.0
    again = True
    with pytest.raises(RuntimeError, match="SquareBackward: saved_tensors can only be accessed once"):
        Square.apply(x.clone()).backward()
    y = Square.apply(x)
    y.backward(retain_graph=True)            # keeps them
    again = False
    y.backward()


def test_a_failing_pack_hook_leaves_no_cycle():
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            ctx.save_for_backward(y)
            outputs.append(weakref.ref(y))
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    def fail(tensor):
        raise ValueError("full")

    outputs = []
    gc.disable()
    try:
        with saved_tensors_hooks(fail, lambda t: t), pytest.raises(ValueError, match="full"):
            Save.apply(leaf(2.0))
        assert outputs[0]() is None
    finally:
        gc.enable()
