"""Sequential, ModuleList and ModuleDict."""

from collections import OrderedDict

import pytest

import cygrad
from cygrad import nn


def test_sequential_runs_in_order():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    x = cygrad.ones(4, 2)
    assert net(x).tolist() == net[2](net[1](net[0](x))).tolist()
    assert nn.Sequential()(x) is x
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_sequential_with_names():
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert net.a is net[0]
    assert net[-1] is net.b
    assert list(net[1:]._modules) == ["b"]
    del net[0]
    assert list(net._modules) == ["b"]


def test_sequential_as_a_sequence():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    net = nn.Sequential(a, b)
    assert len(net) == 2
    assert list(net) == [a, b]
    assert net.append(c) is net
    assert net[-1] is c
    assert type(net[:2]) is nn.Sequential
    assert list(net[:2]) == [a, b]
    net[0] = c
    assert net[0] is c
    del net[0]
    assert list(net._modules) == ["0", "1"]
    assert list(net) == [b, c]
    net.insert(1, a)
    assert list(net) == [b, a, c]
    assert net.pop(1) is a
    assert list(net.extend([a])) == [b, c, a]
    assert list(nn.Sequential(a) + nn.Sequential(b)) == [a, b]
    del net[1:]
    assert list(net) == [b]
    with pytest.raises(IndexError, match="out of range"):
        _ = net[1]
    with pytest.raises(TypeError, match="expected a Module"):
        nn.Sequential(3)


def test_module_list():
    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
    assert len(list(layers.parameters())) == 6
    assert list(layers[1:]) == [layers[1], layers[2]]
    layers += [nn.ReLU()]
    layers.insert(0, nn.Tanh())
    assert [type(layer).__name__ for layer in layers] == ["Tanh", "Linear", "Linear", "Linear", "ReLU"]
    del layers[0]
    assert repr(layers) == """ModuleList(
  (0-2): 3 x Linear(in_features=1, out_features=1, bias=True)
  (3): ReLU()
)"""
    assert repr(nn.ModuleList()) == "ModuleList()"
    assert len(layers + nn.ModuleList([nn.ReLU()])) == 5
    with pytest.raises(TypeError, match="expected an iterable"):
        layers.extend(3)
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_dict():
    modules = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(1, 1)})
    assert list(modules) == ["a", "b"]
    assert "a" in modules
    assert modules["b"] is modules.b
    modules["c"] = nn.Tanh()
    modules.update([("d", nn.Tanh())])
    assert [key for key, _ in modules.items()] == ["a", "b", "c", "d"]
    assert isinstance(modules.pop("c"), nn.Tanh)
    del modules["d"]
    assert len(modules) == 2
    assert len(list(modules.values())) == 2
    with pytest.raises(KeyError):
        _ = modules["c"]
    modules.clear()
    assert not len(modules)
    with pytest.raises(TypeError, match="expected a Module"):
        modules["x"] = 3
    with pytest.raises(TypeError, match="expected a mapping"):
        modules.update(3)
