"""Dicts and registration hooks of a module."""

import copy
import pickle
from collections import OrderedDict

import pytest

import cygrad
from cygrad import nn
from cygrad.nn.modules import module as shared


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_parts_are_dicts():
    model = network()
    for part in (model._modules, model[0]._parameters, model[1]._buffers):
        assert isinstance(part, dict)
        assert dict(part) == {**part} == part.copy() == OrderedDict(part) == copy.copy(part) == part
        assert type(pickle.loads(pickle.dumps(dict.fromkeys(part)))) is dict
        assert list(reversed(part.items())) == list(part.items())[::-1]
        assert list(reversed(part)) == list(part)[::-1]
        assert part | {} == {} | part == part
        assert bool(part)
    assert not nn.ReLU()._parameters
    assert repr(model._modules) == repr(dict(model._modules))


def test_parts_can_be_changed_while_they_are_read():
    model = network()
    for name, child in model._modules.items():
        model._modules[name] = nn.Identity() if isinstance(child, nn.Linear) else child
        del model._modules["0" if name == "1" else "1"]
        model.add_module("2", child)
        break
    assert [type(child) for child in model] == [nn.Identity, nn.Linear]
    assert model._modules.pop("2") is not None
    assert list(model._modules) == ["0"]
    model._modules.update({"5": nn.ReLU()})
    model._modules |= {"6": nn.Tanh()}
    assert list(model._modules) == ["0", "5", "6"]


def test_parts_can_be_replaced():
    layer = nn.Linear(2, 3)
    weight = layer.weight
    layer._parameters = {"weight": weight}
    assert list(layer.state_dict()) == ["weight"]
    assert not hasattr(layer, "bias")
    layer._parameters = {}
    assert list(layer.parameters()) == []


def test_names_of_buffers_that_are_not_saved():
    model = nn.Module()
    model.register_buffer("a", cygrad.ones(1))
    model.register_buffer("b", cygrad.ones(1), persistent=False)
    assert model._non_persistent_buffers_set == {"b"}
    model._non_persistent_buffers_set.add("a")
    model._non_persistent_buffers_set.discard("b")
    assert list(model.state_dict()) == ["b"]


def test_getattr_can_be_called_by_name_and_costs_nothing():
    layer = nn.Linear(2, 3)
    assert layer.__getattr__("weight") is layer.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'missing'"):
        layer.__getattr__("missing")
    with pytest.raises(AttributeError, match="missing"):
        _ = layer.missing

    class Wrapper(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    wrapped = Wrapper(layer)
    assert wrapped.weight is layer.weight
    assert wrapped.inner is layer
    with pytest.raises(AttributeError, match="missing"):
        _ = wrapped.missing

    class Late(nn.Module):
        pass

    Late.__getattr__ = lambda self, name: 7
    assert Late().anything == 7
    del Late.__getattr__
    assert not hasattr(Late(), "anything")


def test_hooks_are_dicts():
    layer = nn.Linear(1, 1)
    for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
                 "_load_state_dict_pre_hooks", "_forward_hooks_with_kwargs", "_load_state_dict_post_hooks"):
        assert getattr(layer, name) == {}
        assert isinstance(getattr(layer, name), dict)
    assert "_hooks" not in vars(layer)
    calls = []
    handle = layer.register_forward_hook(lambda module, args, result: calls.append("a"))
    layer.register_forward_hook(lambda module, args, kwargs, result: calls.append("b"), with_kwargs=True)
    assert list(layer._forward_hooks) == [handle.id, handle.id + 1]
    assert layer._forward_hooks_with_kwargs == {handle.id + 1: True}
    layer(cygrad.ones(1, 1))
    handle.remove()
    assert len(layer._forward_hooks) == 1
    layer(cygrad.ones(1, 1))
    layer._forward_hooks = OrderedDict()
    layer._forward_hooks[5] = lambda module, args, result: calls.append("c")
    layer(cygrad.ones(1, 1))
    layer._forward_hooks.clear()
    layer(cygrad.ones(1, 1))
    assert calls == ["a", "b", "b", "c"]


def test_early_backward_hooks():
    layer = nn.Tanh()
    calls = []
    assert layer._is_full_backward_hook is None
    handle = layer.register_backward_hook(lambda module, grad_input, grad_output: calls.append(
        (module, grad_input[0].tolist(), grad_output[0].tolist())))
    assert layer._is_full_backward_hook is False
    x = cygrad.zeros(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="non-full backward hook"):       # as in PyTorch where an input is a leaf
        (3 * layer(x)).sum().backward()
    assert calls == [(layer, [3.0, 3.0], [3.0, 3.0])]
    with pytest.raises(RuntimeError, match="full and non-full backward hooks"):
        layer.register_full_backward_hook(print)
    handle.remove()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    assert layer._is_full_backward_hook is True
    with pytest.raises(RuntimeError, match="full and non-full backward hooks"):
        layer.register_backward_hook(print)
    with (shared.register_module_backward_hook(lambda module, grad_input, grad_output: calls.append(type(module))),
          pytest.warns(FutureWarning, match="non-full backward hook")):
        nn.Sequential(nn.Tanh())(x).sum().backward()
    assert calls[1:] == [nn.Tanh, nn.Sequential]


def test_hooks_for_what_is_registered():
    seen = []
    twice = nn.Parameter(cygrad.full((1,), 2.0))
    handles = [
        shared.register_module_parameter_registration_hook(
            lambda module, name, value: twice if name == "bias" else seen.append(name)),
        shared.register_module_buffer_registration_hook(lambda module, name, value: seen.append(name)),
        shared.register_module_module_registration_hook(lambda module, name, value: seen.append(type(value).__name__)),
    ]
    try:
        model = nn.Sequential(nn.Linear(1, 1))
        model.register_buffer("b", None)
        model.child = nn.ReLU()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["weight", "Linear", "b", "ReLU"]
    assert model[0].bias is twice
    assert nn.Linear(1, 1).bias is not twice
    with pytest.raises(TypeError, match="callable"):
        shared.register_module_module_registration_hook(3)


def test_choices_of_attention():
    import cygrad.nn.attention as attention

    query = cygrad.rand(1, 2, 3, 4)
    expected = nn.functional.scaled_dot_product_attention(query, query, query)
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert cygrad.equal(nn.functional.scaled_dot_product_attention(query, query, query), expected)
    with pytest.raises(TypeError, match="SDPBackend"), attention.sdpa_kernel("math"):
        pass


class Counted(nn.Module):
    """A module with all kinds of attributes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cygrad.ones(2))
        self.inner = nn.Linear(2, 2)
        self.register_buffer("mean", cygrad.zeros(2))
        self.register_buffer("scratch", cygrad.zeros(2), persistent=False)
        self.size = 2

    def forward(self, x):
        return self.inner(x * self.weight) + self.mean


def test_parts_do_not_stand_among_plain_attributes():
    model = Counted()
    assert set(vars(model)) == {"training", "_parameters", "_buffers", "_non_persistent_buffers_set", "_modules",
                                "size"}
    own = model.__dict__
    assert own["_parameters"]["weight"] is model.weight and own["_modules"]["inner"] is model.inner
    assert own["_buffers"]["mean"] is model.mean and own["_non_persistent_buffers_set"] == {"scratch"}
    assert model._parameters is own["_parameters"] and type(model._modules) is dict
    own["_parameters"]["weight"] = other = nn.Parameter(cygrad.zeros(2))
    assert model.weight is other
    del model.weight, model.scratch
    assert not hasattr(model, "weight") and own["_non_persistent_buffers_set"] == set()
    with pytest.raises(AttributeError, match="'Counted' object has no attribute 'weight'"):
        _ = model.weight
    with pytest.raises(AttributeError, match="weight"):
        del model.weight
    model.mean = None
    assert model.mean is None and "mean" not in vars(model) and {"mean", "inner"} <= set(dir(model))
    model.inner = None
    assert model.inner is None and list(model.children()) == []


def test_copies_and_pickles_of_both_kinds():
    model = Counted()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert set(vars(twin)) == set(vars(model)) and twin.weight is not model.weight
        assert list(twin.state_dict()) == list(model.state_dict())
        assert twin(cygrad.ones(1, 2)).equal(model(cygrad.ones(1, 2)))
    shallow = copy.copy(model)
    assert shallow.weight is model.weight
    state = {"training": False, "size": 5, "weight": model.weight, "inner": model.inner, "mean": model.mean,
             "scratch": None, "_kinds": {"weight": "parameter", "inner": "child module", "mean": "buffer",
                                         "scratch": "buffer that state_dict leaves out"}}
    old = object.__new__(Counted)
    old.__setstate__(state)
    assert set(vars(old)) == set(vars(model)) and old.size == 5 and not old.training
    assert old.weight is model.weight and old._non_persistent_buffers_set == {"scratch"} and "_kinds" in state


def test_calls_can_be_exchanged():
    class Late(nn.Identity):
        pass

    model, calls = Late(), []
    former = nn.Module.__call__

    def counted(self, *args, **kwargs):
        calls.append(type(self).__name__)
        return former(self, *args, **kwargs)
    nn.Module.__call__ = counted
    try:
        assert model(3) == 3
        assert nn.Sequential(model)(4) == 4
    finally:
        nn.Module.__call__ = former
    assert calls == ["Late", "Sequential", "Late"]
    assert model(5) == 5 and len(calls) == 3
    Late.__call__ = lambda self, x: -x
    assert model(6) == -6
    model.forward = lambda x: x + 1
    del Late.__call__
    assert model(6) == 7
    assert model.__call__(6) == 7 and model.__call__(x=6) == 7


def test_properties_that_fail_and_names_of_classes():
    class Strange(nn.Module):
        bias = None

        def __init__(self):
            super().__init__()
            self.register_parameter("weight", nn.Parameter(cygrad.ones(1)))

        @property
        def failing(self):
            return self.nothing

    model = Strange()
    with pytest.raises(AttributeError, match="nothing"):
        _ = model.failing
    with pytest.raises(KeyError, match="already exists"):
        model.bias = nn.Parameter(cygrad.ones(1))
    bare = object.__new__(Strange)
    with pytest.raises(AttributeError, match="'Strange' object has no attribute 'weight'"):
        _ = bare.weight
