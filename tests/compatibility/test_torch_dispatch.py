"""Tensor classes with ``__torch_dispatch__``: the calls that they get, and recording."""

import copy
from typing import ClassVar

import pytest

import cygrad
from cygrad import Tensor, nn
from cygrad.utils.operator_modes import OperatorMode, ops
from cygrad.utils.pytree import tree_map


class Wrapped(Tensor):
    """Keeps its elements in another tensor."""

    seen: ClassVar = []

    @staticmethod
    def __new__(cls, inner):
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func)
        args, kwargs = tree_map(lambda value: value.inner if isinstance(value, cls) else value, (args, kwargs or {}))
        return tree_map(lambda value: cls(value) if isinstance(value, Tensor) else value, func(*args, **kwargs))


class Counted(Tensor):
    """Has elements, and counts what computes with them."""

    seen: ClassVar = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs or {})


@pytest.mark.parametrize("function", [
    lambda x: x * 2 + 1, lambda x: x @ x, lambda x: cygrad.cat([x, x]), lambda x: nn.functional.softplus(x),
    lambda x: x[0], lambda x: x.t(), lambda x: x.max(0)[0], lambda x: x.chunk(2)[1], lambda x: x.detach(),
    lambda x: x.add_(1), lambda x: x.to(cygrad.float64), copy.deepcopy, lambda x: nn.functional.linear(x[None], x)])
def test_results_wrap_what_the_inner_tensors_give(function):
    inner = cygrad.tensor([[1.0, -2.0], [3.0, 0.5]])
    expected = function(inner.clone())
    found = function(Wrapped(inner))
    assert type(found) is Wrapped
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.inner.tolist() == expected.tolist()


def test_operators_can_be_compared_by_identity():
    Wrapped.seen.clear()
    x = Wrapped(cygrad.ones(2, 2))
    x @ x + x
    x.detach()
    mm, add, detach = Wrapped.seen
    assert mm is ops.aten.mm.default
    assert add is ops.aten.add.Tensor
    assert detach is ops.aten.detach.default
    assert str(add) == "aten.add.Tensor"


def test_gradients_reach_the_tensors_that_are_wrapped_and_others():
    inner, x = cygrad.ones(2, requires_grad=True), cygrad.tensor([3.0, 4.0], requires_grad=True)
    (Wrapped(inner) * x).sum().inner.backward()
    assert (inner.grad.tolist(), x.grad.tolist()) == ([3.0, 4.0], [1.0, 1.0])


def test_gradients_of_the_wrapper_itself_are_refused():
    x = Wrapped(cygrad.ones(2)).requires_grad_()
    with pytest.raises(NotImplementedError, match=r"mul: Wrapped computes it in __torch_dispatch__ and requires grad"):
        x * 2
    with cygrad.no_grad():
        assert (x * 2).inner.tolist() == [2.0, 2.0]


def test_a_class_with_elements_is_recorded():
    Counted.seen.clear()
    x = cygrad.tensor([1.0, 2.0]).as_subclass(Counted).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    assert Counted.seen == ["aten.mul.Tensor"]


def test_a_mode_is_called_with_the_wrapper_before_its_class():
    class Names(OperatorMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func.name(), types))
            return func(*args, **(kwargs or {}))

    seen = []
    with Names():
        Wrapped(cygrad.ones(2)) + 1
    assert ("aten::add.Tensor", (Wrapped,)) in seen


def test_torch_function_comes_first():
    class Both(Counted):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Counted.seen.append("function")
            return super().__torch_function__(func, types, args, kwargs or {})

    x = cygrad.ones(2).as_subclass(Both)
    Counted.seen.clear()
    x + 1
    assert Counted.seen == ["function", "aten.add.Tensor"]


def test_parameters_keep_the_class_of_their_data():
    class Unit(Tensor):
        pass

    for data, kind in ((cygrad.ones(2).as_subclass(Unit), Unit), (Wrapped(cygrad.ones(2)), Wrapped)):
        module = nn.Module()
        module.p = nn.Parameter(data, requires_grad=kind is Unit)
        assert isinstance(module.p, kind)
        assert isinstance(copy.deepcopy(module).p, kind)
        assert list(dict(module.named_parameters())) == ["p"]
        assert type(module.p * 2) is kind
    assert nn.Parameter(Wrapped(cygrad.ones(2)), requires_grad=False).inner.tolist() == [1.0, 1.0]


def test_a_class_may_compute_with_tensors_that_it_makes():
    class Halved(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func is ops.aten.detach.default:
                return cls(args[0].inner)
            return func(*[2 * value.inner if isinstance(value, cls) else value for value in args], **(kwargs or {}))

    layer, x = nn.Linear(2, 3), cygrad.randn(4, 2, requires_grad=True)
    expected = layer(x)
    gradient, = cygrad.autograd.grad(expected.sum(), x)
    layer.weight = nn.Parameter(Halved(layer.weight.detach() / 2), requires_grad=False)
    found = layer(x)
    assert cygrad.allclose(found, expected)
    assert cygrad.allclose(cygrad.autograd.grad(found.sum(), x)[0], gradient)


class Copying(OperatorMode):
    """Calls operators with copies of their arguments."""

    def __init__(self):
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func), *[list(value.shape) if isinstance(value, Tensor) else value for value in args]))
        return func(*[value.clone() if isinstance(value, Tensor) else value for value in args], **(kwargs or {}))


@pytest.mark.parametrize(("reduced", "shape"), [
    (lambda x: x.sum(), []), (lambda x: x.sum(0), [1, 3]), (lambda x: x.sum(1, keepdim=True), [2, 1]),
    (lambda x: x.sum((0, -1)), [1, 1]), (lambda x: x.mean(-1), [2, 1])])
def test_the_gradient_of_a_reduction_is_expanded(reduced, shape):
    x = cygrad.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    y = reduced(x).square().sum()
    expected, = cygrad.autograd.grad(y, x, retain_graph=True)
    with Copying() as mode:
        found, = cygrad.autograd.grad(y, x)
    assert cygrad.equal(found, expected)
    assert mode.calls[-1] == ("aten.expand.default", shape, [2, 3])


def test_modes_see_custom_operators_and_selective_checkpoints_save_their_results():
    from functools import partial

    from cygrad.compatibility import library
    from cygrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    from cygrad.utils.operator_modes import OperatorMode
    computed, seen = [], []

    class Seen(OperatorMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    @library.custom_op("test_modes::pair", mutates_args=())
    def pair(x, factor):
        computed.append(1)
        return (x * factor).sin(), 2

    x = cygrad.tensor([0.5, 1.0], requires_grad=True)
    policy = partial(create_selective_checkpoint_contexts, [library.ops.test_modes.pair.default])

    def function(x):
        return (library.ops.test_modes.pair(x, 3.0)[0] * x.exp()).sin()
    with Seen():
        expected = cygrad.autograd.grad(function(x).sum(), x)[0]        # its kernel is recorded
    assert seen[0] == "test_modes.pair.default" and "aten.mul.Tensor" not in seen[:2]
    found = cygrad.autograd.grad(checkpoint(function, x, context_fn=policy).sum(), x)[0]
    assert found.tolist() == expected.tolist()
    pair.register_autograd(lambda ctx, gradient, nothing: (gradient * 3 * (ctx.saved_tensors[0] * 3).cos(), None),
                           setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))
    computed.clear()
    found = cygrad.autograd.grad(checkpoint(function, x, context_fn=policy).sum(), x)[0]
    assert cygrad.allclose(found, expected) and computed == [1]
    found = cygrad.autograd.grad(checkpoint(function, x).sum(), x)[0]
    assert cygrad.allclose(found, expected) and computed == [1] * 3
