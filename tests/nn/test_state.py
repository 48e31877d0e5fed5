"""Saving and loading modules: hooks, versions, extra state."""

import copy
import pickle
from collections import OrderedDict

import pytest

import cygrad
from cygrad import nn
from tests.reference import torch
from tests.tools import error_of


def both(work):
    return [work(library) for library in (cygrad, torch)]


def test_hooks_see_what_those_of_pytorch_see():
    def work(library):
        seen = []
        net = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.Sequential(library.nn.Linear(3, 1)))

        def plain(arg):
            if isinstance(arg, library.nn.Module):
                return type(arg).__name__
            if isinstance(arg, tuple):
                return [list(part) for part in arg]
            if isinstance(arg, bool):              # PyTorch always passes strict=True
                return "strict"
            return sorted(arg) if isinstance(arg, (dict, list)) else str(arg)

        def note(name):
            return lambda *args: seen.append((name, *map(plain, args)))

        for module in net, net[1], net[1][0]:
            module.register_state_dict_pre_hook(note("before save"))
            module.register_state_dict_post_hook(note("saved"))
            module.register_load_state_dict_pre_hook(note("before load"))
            module._register_load_state_dict_pre_hook(note("before load, plain"))
            module._register_load_state_dict_pre_hook(note("before load, with module"), with_module=True)
            module.register_load_state_dict_post_hook(note("loaded"))
        state = net.state_dict()
        net.load_state_dict(state)
        del state["1.0.bias"]
        state["more"] = library.ones(1)
        net.load_state_dict(state, strict=False)
        return seen

    ours, theirs = both(work)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other


@pytest.mark.parametrize("strict", [True, False])
def test_hooks_before_loading_are_told_whether_it_is_strict(strict):
    seen, net = [], cygrad.nn.Sequential(cygrad.nn.Linear(1, 1))
    for module in net, net[0]:
        module.register_load_state_dict_pre_hook(lambda *args: seen.append(args[4]))
    net.load_state_dict(net.state_dict(), strict=strict)
    assert seen == [strict, strict]


def test_hooks_may_change_what_is_saved_and_loaded():
    def work(library):
        net = library.nn.Linear(2, 1)
        net.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update(
            {prefix + "old": state.pop(prefix + "weight")}))
        net.register_load_state_dict_pre_hook(lambda module, state, prefix, *_: state.update(
            {prefix + "weight": state.pop(prefix + "old")}))
        state = net.state_dict()
        keys = list(state)
        other = copy.deepcopy(net)                 # with its hooks
        other.load_state_dict(state)
        assert list(state) == keys                 # the caller's dict is left alone
        assert (other.weight == net.weight).all()
        forgiving = library.nn.Linear(2, 1)
        forgiving.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
        forgiving.load_state_dict({"bias": library.zeros(1)})
        replaced = library.nn.Linear(2, 1)
        replaced._register_state_dict_hook(lambda module, state, prefix, meta: {"all": 1})
        handle = replaced.register_state_dict_pre_hook(lambda *_: keys.append("x"))
        handle.remove()
        return keys, replaced.state_dict()

    ours, theirs = both(work)
    assert ours == theirs


def test_hooks_that_return_something():
    state = nn.Linear(1, 1).state_dict()
    for register, call in (("register_state_dict_post_hook", lambda net: net.state_dict()),
                           ("register_load_state_dict_post_hook", lambda net: net.load_state_dict(state))):
        net = nn.Linear(1, 1)
        getattr(net, register)(lambda *_: 1)
        with pytest.raises(RuntimeError):
            call(net)
        with pytest.raises(TypeError, match="callable"):
            getattr(net, register)(3)


def test_versions_and_extra_state():
    def work(library):
        seen = []

        class Counted(library.nn.Module):
            _version = 3

            def __init__(self):
                super().__init__()
                self.weight = library.nn.Parameter(library.ones(1))
                self.count = 0

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

            def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
                seen.append((prefix, local_metadata.get("version")))
                super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

        net, other = library.nn.Sequential(Counted(), Counted()), library.nn.Sequential(Counted(), Counted())
        net[1].count = 5
        state = net.state_dict()
        seen += [list(state), dict(state._metadata)]
        other.load_state_dict(state)
        seen.append(other[1].count)
        other.load_state_dict(dict(state))         # without versions
        del state["0._extra_state"]
        seen += [list(part) for part in other.load_state_dict(state, strict=False)]
        with pytest.raises(RuntimeError, match="_extra_state"):
            other.load_state_dict(state)
        plain = library.nn.Sequential(library.nn.Module())
        seen += [list(part) for part in plain.load_state_dict({"0._extra_state": 1}, strict=False)]
        return seen

    ours, theirs = both(work)
    assert ours == theirs


def test_the_older_form_of_state_dict():
    net = nn.Linear(1, 1, bias=False)
    made = OrderedDict(x=1)
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert net.state_dict(made, "a.") is made
    assert list(made) == ["x", "a.weight"]
    assert net.state_dict(keep_vars=True)["weight"] is net.weight


def test_loading_into_meta_parameters_warns_and_assigns_only_if_asked():
    given = nn.Linear(2, 1).state_dict()
    net = nn.Linear(2, 1, device="meta")
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter .* is a no-op"):
        net.load_state_dict({**given, "bias": cygrad.ones(1, device="meta")})
    assert net.weight.is_meta
    net.load_state_dict(given, assign=True)
    assert net.weight.tolist() == given["weight"].tolist()


def test_set_submodule():
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    net.set_submodule("1.0", nn.Tanh())
    assert type(net[1][0]) is nn.Tanh
    net.set_submodule("1.new", nn.ReLU())
    assert "1.new" in dict(net.named_modules())
    for target, module, error in (
        ("", nn.ReLU(), ValueError),
        ("1.0", 3, ValueError),
        ("9.0", nn.ReLU(), AttributeError),
        ("0.weight", nn.ReLU(), AttributeError),
    ):
        with pytest.raises(error):
            net.set_submodule(target, module)
    with pytest.raises(AttributeError, match="no attribute"):
        net.set_submodule("1.other", nn.ReLU(), strict=True)


def test_new_memory():
    net = nn.Sequential(nn.Linear(2, 2))
    before = net[0].weight
    assert net.to_empty(device="cpu") is net
    assert net[0].weight is before
    assert before.shape == (2, 2)
    assert net.share_memory() is net


def test_multiplied_chains():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert len(net * 3) == len(3 * net) == 6
    assert (net * 2)[2] is net[0]
    net *= 2
    assert len(net) == 4
    for wrong, error in (("a", TypeError), (0, ValueError)):
        with pytest.raises(error):
            net * wrong


# ------------------------------------------------------------------------------------------- parameters in containers

def test_lists_of_parameters_are_those_of_pytorch():
    def work(library):
        made = library.nn.ParameterList([library.ones(2), library.nn.Parameter(library.zeros(2, 3)), "text"])
        made.append(library.ones(1))
        made += [library.zeros(()), None]
        made[0] = library.full((3,), 2.0)
        seen = [len(made), [name for name, _ in made.named_parameters()], list(made.state_dict()),
                [tuple(p.shape) for p in made[1:2]], type(made[3:]).__name__, made[-1], made[2],
                type(made[0]) is library.nn.Parameter, repr(made).replace("torch.", "").replace("cygrad.", "")]
        twin = copy.deepcopy(made)
        seen += [len(twin), twin[1] is made[1], len(list(twin.parameters()))]
        for attempt in (lambda: made[9], lambda: made.extend(3), lambda: made()):
            seen.append(error_of(attempt))
        return seen

    ours, theirs = both(work)
    assert ours == theirs


def test_dicts_of_parameters_are_those_of_pytorch():
    def work(library):
        made = library.nn.ParameterDict({"b": library.ones(2), "a": library.nn.Parameter(library.zeros(2, 3))})
        made["c"] = library.ones(1)
        made.update([("d", 5)])
        seen = [
            list(made),
            len(made),
            "a" in made,
            "x" in made,
            [name for name, _ in made.named_parameters()],
            list(made.state_dict()),
            repr(made).replace("torch.", "").replace("cygrad.", "").replace("FloatTensor", "float32"),
            made.get("x", 3),
            list(reversed(made)),
            list(made.keys()),
            [key for key, _ in made.items()],
            len(list(made.values())),
            made.setdefault("e", 1),
            made.setdefault("e", 2),
            made.popitem(),
            made.pop("d"),
            list(made | {"z": 1}),
            list({"z": 1} | made),
            list(made.copy()),
            list(made.fromkeys(["q"], library.ones(1))),
        ]
        made |= {"y": library.ones(1)}
        del made["b"]
        seen += [list(made), [name for name, _ in made.named_parameters()]]
        made.clear()
        seen += [len(made), repr(made)]
        for error in (AttributeError, KeyError) if library is cygrad else (AttributeError,):
            with pytest.raises(error):
                made["x"]
        for attempt in (lambda: made.update(3), lambda: made(1),
                        lambda: made.__setitem__(3, library.ones(1))):
            seen.append(error_of(attempt))
        return seen

    ours, theirs = both(work)
    assert ours == theirs


# ---------------------------------------------------------------------------------------------------------- lazily

def test_lazy_layers_are_those_of_pytorch():
    def work(library):
        made = library.nn.LazyLinear(3)
        seen = [repr(made), repr(made.weight), made.has_uninitialized_params(), type(made).__name__,
                isinstance(made.weight, library.nn.Parameter), library.nn.parameter.is_lazy(made.weight)]
        twin = copy.deepcopy(made)
        dumped = pickle.loads(pickle.dumps(made.weight))
        seen += [type(dumped).__name__]
        out = made(library.ones(2, 4))
        seen += [
            tuple(out.shape),
            type(made).__name__,
            tuple(made.weight.shape),
            type(made.weight).__name__,
            repr(made),
            made.weight.requires_grad,
            len(list(made.parameters())),
        ]
        out.sum().backward()
        seen += [tuple(made.weight.grad.shape)]
        twin.load_state_dict(made.state_dict())
        seen += [tuple(twin.weight.shape), tuple(twin(library.ones(2, 4)).shape), type(twin).__name__, twin.in_features,
                 bool((twin.weight == made.weight).all())]
        without = library.nn.Sequential(library.nn.LazyLinear(2, bias=False), library.nn.LazyLinear(5))
        without(library.ones(1, 7))
        seen += [repr(without), list(without.state_dict())]
        fresh = library.nn.LazyLinear(2)
        for attempt in (
            lambda: fresh.weight.shape,
            lambda: library.nn.Linear(2, 2).load_state_dict(fresh.state_dict()),
        ):
            with pytest.raises(RuntimeError):
                attempt()
        lazy = library.nn.LazyLinear(2)
        lazy.load_state_dict(fresh.state_dict())
        seen.append(lazy.has_uninitialized_params())
        return seen

    ours, theirs = both(work)
    assert ours == theirs


def test_lazy_modules_of_ones_own():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.UninitializedParameter()
            self.register_buffer("mean", nn.UninitializedBuffer())

        def initialize_parameters(self, x, *, shift=0):
            with cygrad.no_grad():
                self.scale.materialize(x.shape[1:], dtype=x.dtype)
                self.mean.materialize(x.shape[1:])
                self.scale.fill_(2.0)
                self.mean.fill_(shift)

        def forward(self, x, *, shift=0):
            return x * self.scale + self.mean

    net = Scale()
    out = net(cygrad.ones(2, 3, dtype=cygrad.float64), shift=1)
    assert out.tolist() == [[3.0] * 3] * 2
    assert type(net.scale) is nn.Parameter
    assert net.scale.dtype == cygrad.float64
    assert isinstance(net, Scale)
    assert list(net.state_dict()) == ["scale", "mean"]

    class Forgetful(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="not been fully initialized"):
        Forgetful()(cygrad.ones(1, 1))

    class Undefined(nn.modules.lazy.LazyModuleMixin, nn.Linear):
        def __init__(self):
            super().__init__(1, 1)
            self.weight = nn.UninitializedParameter()

    with pytest.raises(NotImplementedError):
        Undefined()(cygrad.ones(1, 1))
