"""Subclasses of Tensor and Parameter: constructors, mixins, results, history and ``__torch_function__``."""

import copy
import pickle

import pytest

import cygrad
from cygrad import Tensor, nn


class Plain(Tensor):
    pass


class Made(Tensor):
    def __new__(cls, data, unit=None, **further):
        made = Tensor._make_subclass(cls, data)
        made.unit = unit
        return made


class Filled(Tensor):
    def __new__(cls, data, unit=None):
        return super().__new__(cls, data)

    def __init__(self, data, unit=None):
        self.unit = unit


class Named(nn.Parameter):
    def __new__(cls, data, name, *, trainable=True):
        made = super().__new__(cls, data, trainable)
        made.label = name
        return made


class Both(Plain, nn.Parameter):
    def __new__(cls, data):
        return Tensor._make_subclass(cls, data, True)


class BothTurned(nn.Parameter, Plain):
    pass


class Mixin:
    pass


class MixedFirst(Mixin, Tensor):
    pass


class MixedLast(Tensor, Mixin):
    pass


def test_constructors_with_further_arguments_need_no_init():
    x = cygrad.tensor([1.0, 2.0])
    assert Made(x, unit="m", other=1).unit == "m" and Made(x, "s").tolist() == [1.0, 2.0]
    assert Filled([1.0, 2.0], unit="m").tolist() == [1.0, 2.0]
    named = Named(x, "weight", trainable=False)
    assert named.label == "weight" and not named.requires_grad and named.tolist() == [1.0, 2.0]
    assert nn.Parameter().shape == (0,) and not nn.Parameter(requires_grad=False).requires_grad
    assert Plain(2, 3).shape == (2, 3) and Plain([3.0]).tolist() == [3.0]


@pytest.mark.parametrize("cls", [Made, MixedFirst, MixedLast, Both, BothTurned, Plain])
def test_what_takes_no_part_in_the_graph_has_the_class_of_results(cls):
    x = cls(cygrad.tensor([1.0, 2.0]))
    expected = type(x * 2)
    for found in (x.detach(), x.data, x.clone(), x.view(2, 1), x[0], x.new_zeros(2), x.new_tensor([1.0]),
                  cygrad.zeros_like(x), cygrad.rand_like(x), cygrad.full_like(x, 2.0), x.detach().add_(1)):
        assert type(found) is expected
    assert expected is (Tensor if issubclass(cls, nn.Parameter) else cls)


@pytest.mark.parametrize("cls", [Both, BothTurned, Named])
def test_parameters_keep_class_and_attributes_when_pickled(cls):
    parameter = cls(cygrad.ones(2), "name") if cls is Named else cls(cygrad.ones(2))
    parameter.mark = 3
    for twin in (pickle.loads(pickle.dumps(parameter)), copy.copy(parameter)):
        assert type(twin) is cls and twin.mark == 3 and twin.requires_grad and twin.tolist() == [1.0, 1.0]


def test_as_subclass_is_a_recorded_view():
    x = cygrad.ones(2, requires_grad=True)
    y = (x * 3).as_subclass(Plain)
    assert type(y) is Plain and y.grad_fn.name() == "AliasBackward0"
    back = y.as_subclass(Tensor)
    assert type(back) is Tensor
    (y + back).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    base = cygrad.zeros(2)
    base.as_subclass(Plain).add_(1)
    assert base.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="as_subclass: expected a subclass of Tensor"):
        x.as_subclass(int)


def test_names_of_python_2_are_there():
    x = cygrad.tensor([2.0])
    assert x.__div__(4).item() == 0.5 and x.__rdiv__(4).item() == 2.0 and x.__idiv__(2) is x and x.item() == 1.0
    assert x.__long__() == 1 and x.__nonzero__() is True


def test_wrapper_subclasses_have_shape_and_dtype_without_elements():
    made = Tensor._make_wrapper_subclass(Plain, (2, 3), dtype=cygrad.float64, requires_grad=True)
    assert type(made) is Plain and made.shape == (2, 3) and made.dtype == cygrad.float64 and made.requires_grad


CALLS = {
    "add": lambda x: x + 1, "mul_": lambda x: x.mul_(2), "__getitem__": lambda x: x[0],
    "__setitem__": lambda x: x.__setitem__(0, 1.0), "shape": lambda x: x.shape, "dtype": lambda x: x.dtype,
    "requires_grad": lambda x: x.requires_grad, "grad": lambda x: x.grad, "detach": lambda x: x.detach(),
    "size": lambda x: x.size(), "numpy": lambda x: x.numpy(), "tolist": lambda x: x.tolist(),
    "float": lambda x: x.float(), "to": lambda x: x.to(cygrad.float64), "chunk": lambda x: x.chunk(2),
    "zeros_like": cygrad.zeros_like,
    "new_zeros": lambda x: x.new_zeros(2), "copy_": lambda x: x.copy_(cygrad.ones(2)), "__len__": len,
    "__float__": lambda x: float(x[0]), "__repr__": repr, "register_hook": lambda x: (x * 1).register_hook(abs),
    "requires_grad_": lambda x: x.requires_grad_(False), "numel": lambda x: x.numel(), "relu": nn.functional.relu,
    "is_floating_point": lambda x: x.is_floating_point(),
}


@pytest.mark.parametrize("name", CALLS)
def test_own_functions_are_told_of_methods_properties_and_operators(name):
    told = []

    class Watched(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            owner = getattr(func, "__self__", None)
            told.append(getattr(owner, "__name__", None) if func.__name__ in ("__get__", "__set__") else func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = cygrad.tensor([1.0, 2.0], requires_grad=name == "register_hook").as_subclass(Watched)
    expected = CALLS[name](cygrad.tensor([1.0, 2.0], requires_grad=name == "register_hook"))
    told.clear()
    found = CALLS[name](x)
    assert name in told
    if isinstance(expected, Tensor):
        assert type(found) is Watched and found.tolist() == expected.tolist()


def test_custom_functions_get_and_give_the_subclass():
    class Double(cygrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert type(x) is Plain
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = cygrad.ones(2, requires_grad=True)
    y = Double.apply(x.as_subclass(Plain))
    assert type(y) is Plain
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_questions_about_classes_that_take_over():
    from cygrad.compatibility import overrides

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types

    x = cygrad.ones(2)
    assert not overrides.has_torch_function((x, 1)) and not overrides.has_torch_function_unary(nn.Parameter(x))
    assert overrides.has_torch_function_unary(x.as_subclass(Plain))
    assert overrides.has_torch_function_variadic(x, Other())
    assert overrides.handle_torch_function(abs, (x, Other()), x) == (abs, (Other,))
