"""Attributes, traversal, conversion, state and hooks of modules."""

import copy
import pickle

import pytest

import cygrad
from cygrad import nn


class Net(nn.Module):
    """A module with children, a parameter, and persistent and non-persistent buffers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(cygrad.ones(3))
        self.register_buffer("seen", cygrad.zeros(1))
        self.register_buffer("scratch", cygrad.zeros(2), persistent=False)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))

    def forward(self, input):
        return self.second(self.first(input) * self.scale)


NAMES = ["scale", "first.weight", "first.bias", "second.1.weight"]


# ---- attributes

def test_assignment_registers():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert next(net.parameters()) is net.scale
    assert [name for name, _ in net.named_buffers()] == ["seen", "scratch"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert list(net._parameters) == ["scale"]
    assert list(net._modules) == ["first", "second"]
    assert net._modules["first"] is net.first


def test_plain_attributes_are_plain():
    net = Net()
    net.count = 3
    net.tensor = cygrad.ones(1)
    assert net.count == 3
    assert [name for name, _ in net.named_buffers()] == ["seen", "scratch"]
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        _ = net.missing


def test_values_of_another_kind_are_refused_or_take_over():
    net = Net()
    with pytest.raises(TypeError, match="cannot assign 'Tensor' object as parameter 'scale'"):
        net.scale = cygrad.ones(3)
    with pytest.raises(TypeError, match="cannot assign 'ReLU' object as parameter 'scale'"):
        net.scale = nn.ReLU()
    with pytest.raises(TypeError, match="cannot assign 'int' object as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="cannot assign 'str' object as buffer 'seen'"):
        net.seen = "no"
    net.scale = None
    net.seen = cygrad.ones(2)
    assert [name for name, _ in net.named_parameters()] == NAMES[1:]
    assert list(net._parameters) == ["scale"]
    assert [name for name, _ in net.named_buffers()] == ["seen", "scratch"]
    net.first = nn.Parameter(cygrad.ones(1))
    assert "first" in net._parameters
    assert "first" not in net._modules
    net.plain = 3
    net.plain = nn.ReLU()
    assert "plain" in net._modules


def test_deletion_unregisters():
    net = Net()
    del net.first, net.scale, net.seen
    assert [name for name, _ in net.named_parameters()] == ["second.1.weight"]
    assert not hasattr(net, "scale")
    with pytest.raises(AttributeError):
        del net.scale


def test_registration_is_checked():
    net = Net()
    for register, value in (net.register_parameter, nn.Parameter(cygrad.ones(1))), (
            net.register_buffer, cygrad.ones(1)), (net.register_module, nn.ReLU()):
        with pytest.raises(KeyError, match="already exists"):
            register("forward", value)
        with pytest.raises(KeyError, match="empty or contain a dot"):
            register("a.b", value)
        with pytest.raises(KeyError, match="empty or contain a dot"):
            register("", value)
        with pytest.raises(TypeError, match="must be a string"):
            register(3, value)
        with pytest.raises(TypeError, match="expected a"):
            register("x", "value")
    with pytest.raises(TypeError, match="Wrap it in nn"):
        net.register_parameter("x", cygrad.ones(1))
    with pytest.raises(ValueError, match="must be a leaf"):
        net.register_parameter("x", _non_leaf())


def _non_leaf():
    """A parameter that an operation has modified in place."""
    parameter = nn.Parameter(cygrad.ones(1), requires_grad=False)
    parameter.mul_(cygrad.ones(1, requires_grad=True))
    return parameter


def test_assignment_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self):
            self.number = 3
            self.child = nn.ReLU()

    with pytest.raises(AttributeError, match="before Module"):
        Early()


def test_properties_and_dir():
    class WithProperty(nn.Module):
        @property
        def double(self):
            return 2 * self.value

    module = WithProperty()
    module.value = 3
    assert module.double == 6
    names = dir(nn.Sequential(nn.ReLU()))
    assert "forward" in names
    assert "0" not in names
    assert "first" in dir(Net())


def test_buffer_objects_register_themselves():
    module = nn.Module()
    module.a = nn.Buffer(cygrad.ones(2))
    module.b = nn.Buffer(cygrad.ones(2), persistent=False)
    assert [name for name, _ in module.named_buffers()] == ["a", "b"]
    assert list(module.state_dict()) == ["a"]
    assert isinstance(module.a, nn.Buffer)


# ---- traversal

def test_modules_in_order_and_once():
    net = Net()
    net.again = net.first
    assert [path for path, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert [path for path, _ in net.named_modules(remove_duplicate=False)][-1] == "again"
    assert len(list(net.parameters())) == 4
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert [name for name, _ in net.named_parameters(prefix="net")][1] == "net.first.weight"
    assert len(list(net.children())) == 2


def test_deep_trees_do_not_need_recursion():
    net = nn.ReLU()
    for _ in range(3000):
        net = nn.Sequential(net)
    assert sum(1 for _ in net.modules()) == 3001


def test_modules_that_contain_themselves_come_to_an_end():
    """Each once; without an end of paths, an error."""
    net = nn.Linear(2, 2)
    net.again = nn.Sequential(net)
    assert len(list(net.modules())) == 2 and [path for path, _ in net.named_parameters()] == ["weight", "bias"]
    for call in (lambda: list(net.named_parameters(remove_duplicate=False)), lambda: net.load_state_dict({}),
                 lambda: cygrad.func.functional_call(net, {"bias": cygrad.zeros(2)}, (cygrad.ones(2),))):
        with pytest.raises(RuntimeError, match=r"a module contains itself .got a Linear at 'again\.0"):
            call()


def test_parts_by_path():
    net = Net()
    assert net.get_submodule("second.1") is net.second[1]
    assert net.get_submodule("") is net
    assert net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("seen") is net.seen
    with pytest.raises(AttributeError, match="no attribute 'third'"):
        net.get_submodule("third")
    with pytest.raises(AttributeError, match="not a Module"):
        net.get_submodule("scale")
    with pytest.raises(AttributeError, match="not found"):
        net.get_parameter("seen")


def test_gradients_stay_the_same_objects():
    """References to the dict see later changes."""
    layer = nn.Linear(2, 1)
    layer(cygrad.ones(1, 2)).sum().backward()
    parameter, held = layer.weight, layer.weight.grad
    layer.to(cygrad.float64)
    assert layer.weight is parameter
    assert layer.weight.grad is held
    assert held.dtype is cygrad.float64
    layer._apply(lambda tensor: tensor.mul_(2))
    assert held.tolist() == [[2, 2]]


def test_apply_goes_from_below():
    seen = []
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["ReLU", "Tanh", "Sequential", "Sequential"]


def test_train_and_eval():
    net = Net()
    assert net.training
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.first.train()
    assert net.first.training
    assert not net.training
    assert all(module.training for module in net.train().modules())
    with pytest.raises(ValueError, match="must be a bool"):
        net.train(1)


# ---- gradients

def test_training_one_step_changes_parameters_and_freezing_prevents_it():
    net = Net()
    net.first.requires_grad_(False)
    net(cygrad.ones(4, 2)).sum().backward()
    assert net.first.weight.grad is None
    assert net.second[1].weight.grad is not None
    net.zero_grad()
    assert net.second[1].weight.grad is None
    assert all(p.requires_grad for p in net.requires_grad_().parameters())


def test_zero_grad_can_keep_the_tensors():
    net = Net()
    net(cygrad.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0, 0, 0]


# ---- conversion

def test_to_converts_floating_point_parts_in_place():
    net = Net()
    net.register_buffer("numbers", cygrad.zeros(1, dtype=cygrad.int64))
    weight = net.first.weight
    net(cygrad.ones(1, 2)).sum().backward()
    assert net.to(cygrad.float64) is net
    assert net.first.weight is weight
    assert weight.dtype == cygrad.float64
    assert weight.grad.dtype == cygrad.float64
    assert net.seen.dtype == cygrad.float64
    assert net.numbers.dtype == cygrad.int64
    assert net(cygrad.ones(1, 2, dtype=cygrad.float64)).dtype == cygrad.float64
    assert net.float().scale.dtype == cygrad.float32
    assert net.double().scale.dtype == cygrad.float64
    assert net.to(cygrad.ones(1)).scale.dtype == cygrad.float32
    assert net.to("cpu").to(device="cpu", dtype=cygrad.float64).cpu().scale.dtype == cygrad.float64
    with pytest.raises(TypeError, match="floating point or complex"):
        net.to(cygrad.int64)
    with pytest.raises(RuntimeError, match="no such device"):
        net.to("cuda")
    with pytest.raises(TypeError, match="unknown keyword"):
        net.to(color="red")


def test_modules_can_be_complex():
    layer = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="complex modules"):
        layer.to(cygrad.complex64)
    result = layer(cygrad.ones(1, 2, dtype=cygrad.complex64))
    assert result.dtype == cygrad.complex64
    result.abs().sum().backward()
    assert layer.weight.grad.dtype == cygrad.complex64


# ---- state

def test_state_dict_shares_memory_and_loads_back():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == ["scale", "seen", "first.weight", "first.bias", "second.1.weight"]
    assert not state["scale"].requires_grad
    assert state["scale"].data_ptr() == net.scale.data_ptr()
    assert net.state_dict(keep_vars=True)["scale"] is net.scale
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale"
    weight = other.first.weight
    result = other.load_state_dict(state)
    assert str(result) == "<All keys matched successfully>"
    assert other.first.weight is weight
    assert weight.tolist() == net.first.weight.tolist()
    assert weight.data_ptr() != net.first.weight.data_ptr()


def test_state_that_does_not_fit():
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = {"0.weight": cygrad.ones(3, 3), "zz": cygrad.ones(1), "0.weight.x": cygrad.ones(1), "7.weight": 3}
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(state)
    text = str(raised.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\t")
    assert 'Missing key(s) in state_dict: "0.bias", "1.weight", "1.bias". ' in text
    for key in "zz", "0.weight.x", "7.weight":
        assert f'"{key}"' in text.partition("Unexpected key(s) in state_dict: ")[2]
    assert "size mismatch for 0.weight: copying a param with shape (3, 3) from checkpoint" in text
    del state["0.weight"]
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert set(result.unexpected_keys) == {"zz", "0.weight.x", "7.weight"}
    with pytest.raises(TypeError, match="expected a mapping"):
        net.load_state_dict([1])
    with pytest.raises(RuntimeError, match="expected a Tensor from checkpoint"):
        net.load_state_dict({"0.weight": 3}, strict=False)


def test_assign_puts_the_given_tensors_in_place():
    layer = nn.Linear(2, 1)
    given = {"weight": cygrad.zeros(1, 2, dtype=cygrad.float64), "bias": cygrad.ones(1, dtype=cygrad.float64)}
    layer.load_state_dict(given, assign=True)
    assert layer.weight.dtype == cygrad.float64
    assert layer.weight.data_ptr() == given["weight"].data_ptr()
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.requires_grad


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))],
                         ids=["deepcopy", "pickle"])
def test_copies_are_complete_and_apart(duplicate):
    net = Net()
    net.again = net.first
    net.eval()
    other = duplicate(net)
    assert other.again is other.first
    assert other.first is not net.first
    assert isinstance(other.scale, nn.Parameter)
    assert not other.training
    x = cygrad.ones(3, 2)
    assert other(x).tolist() == net(x).tolist()
    with cygrad.no_grad():
        other.scale.zero_()
    assert net.scale.tolist() == [1, 1, 1]
    assert list(other.state_dict()) == list(net.state_dict())


# ---- hooks

def test_forward_hooks_see_and_replace():
    calls = []
    net = nn.Identity()
    before = net.register_forward_pre_hook(lambda module, args: calls.append(("before", module, args)))
    after = net.register_forward_hook(lambda module, args, result: calls.append(("after", module, args, result)))
    assert net(3) == 3
    assert calls == [("before", net, (3,)), ("after", net, (3,), 3)]
    before.remove()
    after.remove()
    net(3)
    assert len(calls) == 2
    with net.register_forward_pre_hook(lambda module, args: args[0] + 1):
        assert net(3) == 4
        with net.register_forward_hook(lambda module, args, result: result * 10):
            assert net(3) == 40
    assert net(3) == 3


def test_order_of_hooks_and_keyword_arguments():
    class Sum(nn.Module):
        def forward(self, a, b=0):
            return a + b

    net, calls = Sum(), []
    net.register_forward_hook(lambda *args: calls.append(1))
    net.register_forward_hook(lambda *args: calls.append(2))
    net.register_forward_hook(lambda *args: calls.append(0), prepend=True)
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"b": kwargs["b"] + 1}), with_kwargs=True)
    net.register_forward_hook(lambda module, args, kwargs, result: (result, kwargs["b"]), with_kwargs=True)
    assert net(1, b=2) == (4, 3)
    assert calls == [0, 1, 2]
    net.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        net(1, b=2)
    with pytest.raises(TypeError, match="must be callable"):
        net.register_forward_hook(3)


def test_hooks_that_run_after_errors():
    class Failing(nn.Module):
        def forward(self):
            raise ValueError("no")

    net, calls = Failing(), []
    net.register_forward_hook(lambda *args: calls.append("usual"))
    net.register_forward_hook(lambda *args: calls.append("always"), always_call=True)
    with pytest.raises(ValueError, match="no"):
        net()
    assert calls == ["always"]


def test_hooks_are_copied_with_the_module():
    net, calls = nn.Identity(), []
    net.register_forward_hook(lambda *args: calls.append(1))
    other = copy.deepcopy(net)
    handle = other.register_forward_hook(lambda *args: calls.append(2))
    net(1)
    assert calls == [1]
    handle.remove()
    assert len(net._hooks.after) == 1


def test_a_hook_on_one_module_is_not_on_another():
    a, b, calls = nn.ReLU(), nn.ReLU(), []
    a.register_forward_hook(lambda *args: calls.append(1))
    b(cygrad.ones(1))
    assert not calls


# ---- text

def test_repr():
    assert repr(Net()) == """Net(
  (first): Linear(in_features=2, out_features=3, bias=True)
  (second): Sequential(
    (0): ReLU()
    (1): Linear(in_features=3, out_features=1, bias=False)
  )
)"""
    assert repr(nn.ReLU(inplace=True)) == "ReLU(inplace=True)"

    class TwoLines(nn.Module):
        def extra_repr(self):
            return "a\nb"

    assert repr(TwoLines()) == "TwoLines(\n  a\n  b\n)"


def test_forward_must_be_defined():
    with pytest.raises(NotImplementedError, match="Module \\[Module\\] is missing the required"):
        nn.Module()()


class Mixin:
    def __init__(self):
        self.prepared = True


@pytest.mark.parametrize("call", [False, True])
def test_call_super_init_initializes_mixins(call):
    class Mixed(nn.Module, Mixin):
        call_super_init = call

    assert hasattr(Mixed(), "prepared") is call


def test_a_buffer_does_not_replace_another_attribute():
    module = nn.Module()
    module.size = 5
    with pytest.raises(KeyError, match="already exists"):
        module.size = nn.Buffer(cygrad.ones(2))
    assert module.size == 5 and not list(module.buffers())
    module.kept = nn.Buffer(cygrad.ones(2))
    module.kept = nn.Buffer(cygrad.zeros(2), persistent=False)
    assert module.kept.tolist() == [0, 0] and not module.state_dict()


def test_to_refuses_a_flag_in_place_of_a_dtype():
    for device in ("cpu", cygrad.device("cpu"), None):
        with pytest.raises(TypeError, match="expected a dtype after the device"):
            nn.Linear(1, 1).to(device, True)
