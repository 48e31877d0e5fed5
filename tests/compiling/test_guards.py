"""Guards on variables that a function reads, or an eager fallback."""

import abc
import collections
import collections.abc
import dataclasses
import enum
import functools
import types
import warnings

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.compiling import explain


def check(function, change, executions=True):
    """The compiled function gives what the function gives, before and after a change; it ran as a program before it."""
    compiled, x = cygrad.compile(function), cygrad.ones(2)
    for _ in range(3):
        assert compiled(x).tolist() == function(x).tolist()
    assert (explain(compiled).executions == 2) is executions, str(explain(compiled))
    change()
    for _ in range(3):
        assert compiled(x).tolist() == function(x).tolist()


class Meta(type):
    gain = 2.0


class Descriptor:
    factor = 2.0

    def __get__(self, instance, owner):
        return self.factor


class Reader(metaclass=Meta):
    scale = 2.0
    described = Descriptor()

    def __init__(self):
        self.hidden = 2.0

    @property
    def shown(self):
        return self.hidden

    def __getattr__(self, name):
        return 3.0 if name == "made_up" else object.__getattribute__(self, name)


class Slots:
    __slots__ = ("factor",)


@dataclasses.dataclass
class Settings:
    factor: float = 2.0


class Choice(enum.Enum):
    FACTOR = 2.0


@pytest.mark.parametrize(("read", "change"), {
    "attribute": (lambda r, x: x * r.hidden, lambda r: setattr(r, "hidden", 5.0)),
    "class attribute": (lambda r, x: x * r.scale, lambda r: setattr(type(r), "scale", 5.0)),
    "metaclass": (lambda r, x: x * type(r).gain, lambda r: setattr(type(type(r)), "gain", 5.0)),
    "property": (lambda r, x: x * r.shown, lambda r: setattr(type(r), "shown", property(lambda self: 5.0))),
    "descriptor": (lambda r, x: x * r.described, lambda r: setattr(vars(type(r))["described"], "factor", 5.0)),
    "made-up attribute": (lambda r, x: x * r.made_up, lambda r: setattr(type(r), "__getattr__", lambda s, n: 5.0)),
    "class of an object": (lambda r, x: x * r.scale, lambda r: setattr(r, "__class__", Meta("R", (type(r),), {
        "scale": 5.0}))),
    "dict of an object": (lambda r, x: x * r.hidden, lambda r: setattr(r, "__dict__", {"hidden": 5.0})),
}.values(), ids=lambda value: None)
def test_attributes(read, change, monkeypatch):
    namespace = dict(vars(Reader), described=Descriptor())
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name)
    reader = Meta("Reader", (), namespace)()
    monkeypatch.setattr(Meta, "gain", 2.0)
    check(lambda x: read(reader, x), lambda: change(reader))


def test_slots_dataclasses_namespaces_enumerations():
    slots, settings, space = Slots(), Settings(), types.SimpleNamespace(factor=2.0)
    slots.factor = 2.0
    check(lambda x: x * slots.factor * Choice.FACTOR.value, lambda: setattr(slots, "factor", 5.0))
    check(lambda x: x * settings.factor, lambda: setattr(settings, "factor", 5.0))
    check(lambda x: x * space.factor, lambda: setattr(space, "factor", 5.0))


def test_functions():
    def helper(x, factor=2.0, *, shift=1.0):
        return x * factor + shift + helper.gain

    helper.gain = 1.0
    partial = functools.partial(helper, factor=3.0)
    check(lambda x: helper(x), lambda: setattr(helper, "gain", 5.0))
    check(lambda x: helper(x), lambda: setattr(helper, "__defaults__", (5.0,)))
    check(lambda x: helper(x), lambda: helper.__kwdefaults__.update(shift=5.0))
    check(lambda x: partial(x), lambda: partial.keywords.update(factor=5.0))

    def other(x, factor=2.0, *, shift=1.0):
        return x * 7 + helper.gain

    check(lambda x: helper(x), lambda: setattr(helper, "__code__", other.__code__))


def test_containers():
    numbers, names, kinds = {"a": 1.0, "b": 2.0}, {1, 2}, collections.Counter("aab")
    check(lambda x: x * next(iter(numbers.values())), lambda: numbers.update(a=numbers.pop("a")))
    check(lambda x: x * sum(names), lambda: names.add(3))
    check(lambda x: x * kinds["a"], lambda: kinds.update("a"))
    ordered, queue = collections.OrderedDict(a=1.0, b=2.0), collections.deque([1.0])
    check(lambda x: x * next(iter(ordered.values())), lambda: ordered.move_to_end("a"), executions=False)
    check(lambda x: x * queue[0], lambda: queue.appendleft(5.0), executions=False)


def test_modules_of_python_and_of_this_library(monkeypatch):
    module = types.ModuleType("module")
    module.factor = 2.0
    check(lambda x: x * module.factor, lambda: setattr(module, "factor", 5.0))
    check(lambda x: nn.functional.relu(x), lambda: monkeypatch.setattr(nn.functional, "relu", lambda x: x * 5))

    def importing(x):
        import math
        return x * math.pi

    check(importing, lambda: None)


def test_layers():
    linear = nn.Linear(2, 2)
    check(lambda x: linear(x).detach(), lambda: setattr(linear, "forward", lambda x: x * 5))
    layers = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Tanh()})

    def chain(x):
        for layer in layers.values():
            x = layer(x)
        return x.detach()

    check(chain, lambda: layers._modules.update(a=layers._modules.pop("a")))


def test_library_class_that_is_changed(monkeypatch):
    linear = nn.Linear(2, 2)
    check(lambda x: linear(x).detach(),
          lambda: monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x * 5))


def test_what_is_written_is_written_in_each_call():
    log, counts, reader = [], {"n": 0}, Reader()

    def write(x):
        log.append(1)
        counts["n"] += 1
        reader.hidden += 1
        return x * 2

    compiled = cygrad.compile(write)
    for _ in range(5):
        compiled(cygrad.ones(2))
    assert len(log) == counts["n"] == 5 and reader.hidden == 7.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = cygrad.compile(lambda x: warnings.warn("told", stacklevel=1) or x * 2)
        for _ in range(5):
            compiled(cygrad.ones(2))
    assert len(caught) == 5


def test_reasons_name_file_line_and_what_to_change():
    queue = collections.deque([1.0])
    compiled = cygrad.compile(lambda x: x * queue[0])
    compiled(cygrad.ones(2))
    assert "queue" in explain(compiled).reasons[0] and "argument" in explain(compiled).reasons[0]
    compiled = cygrad.compile(lambda x: x * id(queue))
    compiled(cygrad.ones(2))
    assert "queue" in explain(compiled).reasons[0] or "test_guards.py:" in explain(compiled).reasons[0]
    compiled = cygrad.compile(lambda x: x * id(x) * 0)
    compiled(cygrad.ones(2))
    assert "it calls id() (test_guards.py:" in explain(compiled).reasons[0]


def test_memory_in_several_roles():
    w = cygrad.ones(2)
    compiled = cygrad.compile(lambda a: a * 1 + w)
    for a in (w, w, cygrad.full((2,), 5.0), w[:], w.detach()):
        assert compiled(a).tolist() == (a * 1 + w).tolist()
    memory = cygrad.zeros(4)

    def write(a, b):
        a.add_(1)
        return b * 2

    compiled = cygrad.compile(write)
    for _ in range(3):
        assert compiled(cygrad.zeros(2), cygrad.zeros(2)).tolist() == [0, 0]
    assert compiled(memory[:2], memory[1:3]).tolist() == [2, 0]
    assert compiled(memory, cygrad.from_numpy(memory.numpy())).tolist() == [4, 4, 2, 2]
    leaf = cygrad.ones(2, requires_grad=True)
    leaf.grad = cygrad.ones(2)
    compiled = cygrad.compile(lambda a, g: g.cumsum(0))
    for _ in range(3):
        assert compiled(leaf, leaf.grad).tolist() == [1, 2]
    assert compiled(leaf, cygrad.full((2,), 3.0)).tolist() == [3, 6]


def test_options_that_need_other_arrays_are_traced_again():
    def training():
        w = cygrad.ones(3, requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1)

        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()
        return w, optimizer, step

    w, optimizer, step = training()
    v, other, plain = training()
    compiled = cygrad.compile(step)
    for number, options in enumerate([{}, {}, {}, {"momentum": 0.9}, {}, {}, {}, {"momentum": 0}, {}, {"lr": None}]):
        for each in (optimizer, other):
            each.param_groups[0].update(options)
        x = cygrad.arange(3.0) + number
        if "lr" in options:
            for _ in range(3):
                with pytest.raises(TypeError):
                    compiled(x)
        else:
            compiled(x), plain(x)
        assert w.tolist() == v.tolist()
    assert explain(compiled).executions >= 4


LAYERS = {
    "Linear": (lambda: nn.Linear(4, 3), (5, 4)), "Bilinear": (lambda: nn.Bilinear(4, 4, 3), (5, 4), (5, 4)),
    "Conv1d": (lambda: nn.Conv1d(4, 3, 3), (2, 4, 8)), "Conv2d": (lambda: nn.Conv2d(4, 3, 3, padding=1), (2, 4, 6, 6)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 3, 3), (2, 4, 6)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), (6, 4)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), (3, 4, 2, 2)), "LayerNorm": (lambda: nn.LayerNorm(4), (5, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (3, 4, 2)), "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4), (3, 4, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (5, 4)), "Dropout": (lambda: nn.Dropout(0.5), (5, 4)),
    "Dropout1d": (lambda: nn.Dropout1d(0.5), (3, 4, 5)), "Dropout2d": (lambda: nn.Dropout2d(0.5), (3, 4, 2, 2)),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.5), (5, 4)),
    "FeatureAlphaDropout": (lambda: nn.FeatureAlphaDropout(0.5), (3, 4, 5)), "RReLU": (nn.RReLU, (5, 4)),
    "PReLU": (nn.PReLU, (5, 4)), "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True), (2, 3, 4), (2, 3, 4), (2, 3, 4)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 3, 4)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), (2, 3, 4), (2, 3, 4)),
    "RNN": (lambda: nn.RNN(4, 3, 2, dropout=0.5), (3, 2, 4)),
    "LSTM": (lambda: nn.LSTM(4, 3, 2, dropout=0.5), (3, 2, 4)),
    "GRU": (lambda: nn.GRU(4, 3), (3, 2, 4)), "LSTMCell": (lambda: nn.LSTMCell(4, 3), (2, 4)),
    "GRUCell": (lambda: nn.GRUCell(4, 3), (2, 4)), "MaxPool1d": (lambda: nn.MaxPool1d(2), (2, 3, 6)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), (2, 3, 4, 4)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(2), (2, 3, 5)),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, output_size=2), (2, 3, 5, 5)),
    "Softmax": (lambda: nn.Softmax(-1), (3, 4)), "GLU": (nn.GLU, (3, 4)), "GELU": (nn.GELU, (3, 4)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 4, 2, 2)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), (1, 2, 3)),
    "CosineSimilarity": (nn.CosineSimilarity, (3, 4), (3, 4)), "MSELoss": (nn.MSELoss, (3, 4), (3, 4)),
    "SmoothL1Loss": (nn.SmoothL1Loss, (3, 4), (3, 4)), "Unfold": (lambda: nn.Unfold(2), (1, 2, 3, 3)),
}


def tensors_of(result):
    if isinstance(result, cygrad.Tensor):
        return [result]
    return [] if result is None else [tensor for part in result for tensor in tensors_of(part)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layer_with_a_backward_outside(name):
    make, *shapes = LAYERS[name]
    outcomes = []
    for compiled in (False, True):
        cygrad.manual_seed(3)
        layer, found = make(), []
        function = cygrad.compile(layer) if compiled else layer
        for number in range(8):
            layer.train(number < 4)
            inputs = [cygrad.randn(*shape, generator=cygrad.Generator().manual_seed(number)).requires_grad_()
                      for shape in shapes]
            cygrad.manual_seed(number)
            results = tensors_of(function(*inputs))
            sum(result.square().sum() for result in results if result.requires_grad).backward()
            found.append([tensor.tolist() for tensor in (*results, *[x.grad for x in inputs if x.grad is not None])])
            found.append([parameter.grad.tolist() for parameter in layer.parameters() if parameter.grad is not None])
            found.append([buffer.tolist() for buffer in layer.buffers()])
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
              "Adafactor"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_with_options_that_change(name):
    changes = [{}, {}, {}, {"lr": 0.02}, {"weight_decay": 0.1}, {"maximize": True}, {"momentum": 0.5},
               {"amsgrad": True}, {"lr": 0.01, "maximize": False}, {"momentum": 0}, {"nesterov": False}]
    outcomes = []
    for compiled in (False, True):
        cygrad.manual_seed(2)
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.3), nn.Tanh(), nn.Linear(4, 1))
        optimizer, found = getattr(optim, name)(model.parameters(), lr=0.05), []

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        function = cygrad.compile(step) if compiled else step
        for number, change in enumerate(changes):
            for option, value in change.items():
                if option in optimizer.param_groups[0]:
                    optimizer.param_groups[0][option] = value
            model[0].requires_grad_(number != 4)
            try:
                found.append(function(cygrad.linspace(-1, 1, 15).view(5, 3) + number).item())
            except (KeyError, RuntimeError) as error:
                found.append(type(error))
            found.append([parameter.tolist() for parameter in model.parameters()])
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("use", ["isinstance", "issubclass", "pattern"])
def test_registrations_with_abstract_base_classes(use):
    class Base(abc.ABC):
        @abc.abstractmethod
        def method(self):
            """Return nothing."""

    class Entry:
        """Registered later."""

    entry = Entry()

    def function(x):
        if use == "isinstance":
            return x * (2.0 if isinstance(entry, Base) else 3.0)
        if use == "issubclass":
            return x * (2.0 if issubclass(Entry, Base) else 3.0)
        match entry:
            case [*_]:
                return x * 2.0
        return x * 3.0

    check(function, lambda: (collections.abc.Sequence if use == "pattern" else Base).register(Entry))


def test_shared_memory_with_another_version_counter():
    def function(x, y):
        x.add_(1)
        return y * 2

    compiled, versions = cygrad.compile(function), []
    for called in (function, compiled):
        x = cygrad.ones(2)
        for y in (x.detach(), x.detach(), x.data, x.detach(), x.data):
            called(x, y)
            versions.append((x._version, y._version))
    assert versions[:5] == versions[5:]


@pytest.mark.parametrize("added", ["hook", "zero_grad", "attribute"])
def test_attributes_that_an_optimizer_gets_later(added):
    class Scaled(optim.SGD):
        factor = 1.0

        def zero_grad(self, set_to_none=True):
            super().zero_grad(set_to_none)
            calls.append(self.factor)

    calls, weight = [], cygrad.ones(2, requires_grad=True)
    optimizer = (Scaled if added == "attribute" else optim.SGD)([weight], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight * 1

    def function(x):
        return x * getattr(optimizer, "factor", 2.0)

    compiled = cygrad.compile(function if added == "attribute" else step)
    for _ in range(4):
        compiled(cygrad.ones(2))
    assert explain(compiled).executions >= 2
    if added == "hook":
        optimizer.register_step_post_hook(lambda *_: calls.append("hook"))
    elif added == "zero_grad":
        optimizer.zero_grad = lambda: calls.append("zero_grad")
    else:
        optimizer.factor = 3.0
    found = compiled(cygrad.ones(2))
    assert found.tolist() == [3.0, 3.0] if added == "attribute" else calls == [added]


@pytest.mark.parametrize("read", [lambda optimizer: optimizer.param_groups[0]["lr"],
                                  lambda optimizer: optimizer.state_dict()["param_groups"][0]["lr"]])
def test_options_that_the_function_reads_itself(read):
    optimizer = optim.SGD([cygrad.ones(2, requires_grad=True)], lr=0.5)

    def change():
        optimizer.param_groups[0]["lr"] = 2.0

    check(lambda x: x * read(optimizer), change)


def test_builtins_of_a_function():
    variables = {"__builtins__": {"len": len}}
    exec("def function(x): return x * len([1, 2])", variables)

    def change():
        variables["__builtins__"]["len"] = lambda items: 7

    check(variables["function"], change)


def gradient_with_graph(w):
    w.grad = None
    (w * w).sum().backward(create_graph=True)


def gradient_with_hook(w):
    w.grad = cygrad.ones(2, requires_grad=True)
    w.grad.register_hook(lambda gradient: gradient * 3)


def gradient_of_a_class(w):
    w.grad = nn.Parameter(cygrad.ones(2), requires_grad=False)


def gradient_with_gradient(w):
    w.grad = cygrad.ones(2)
    w.grad.grad = cygrad.full((2,), 5.0)


def reading_gradient_of_gradient(x, w):
    return x * (1.0 if w.grad.grad is None else 2.0)


@pytest.mark.parametrize("function", [lambda x, w: x + w.grad, lambda x, w: x * (2.0 if w.grad.requires_grad else 3.0),
                                      reading_gradient_of_gradient, lambda x, w: (x, type(w.grad).__name__)])
@pytest.mark.parametrize("change", [gradient_with_graph, gradient_with_hook, gradient_of_a_class,
                                    gradient_with_gradient])
@pytest.mark.filterwarnings("ignore:.grad of a non-leaf", "ignore:.*create_graph")
def test_a_gradient_with_history_hooks_or_of_another_class_is_not_the_traced_one(function, change):
    weights = [cygrad.ones(2, requires_grad=True) for _ in range(2)]
    functions = [lambda x: function(x, weights[0]), cygrad.compile(lambda x: function(x, weights[1]))]
    for weight in weights:
        weight.grad = cygrad.ones(2)
    found = []
    for step in range(8):
        if step == 4:
            for weight in weights:
                change(weight)
        found = [repr(call(cygrad.ones(2))) for call in functions]
        assert found[0] == found[1], step
        if "grad_fn" in found[0] or "requires_grad" in found[0]:
            results = [call(cygrad.ones(2)) for call in functions]
            gradients = [cygrad.autograd.grad(result.sum(), weight if weight.grad.grad_fn else weight.grad,
                                              retain_graph=True)[0].tolist()
                         for result, weight in zip(results, weights, strict=True)]
            assert gradients[0] == gradients[1]
    assert explain(functions[1]).executions >= 3


@pytest.mark.parametrize("where", ["argument", "variable"])
def test_history_that_a_view_gets_from_its_base_is_seen(where):
    gradients = []
    for wrap in (lambda function: function, cygrad.compile):
        weight = cygrad.full((3,), 2.0, requires_grad=True)
        base = cygrad.ones(4)
        view = base[1:]
        call = wrap((lambda x: x * 3) if where == "argument" else (lambda x: view * 3))
        for _ in range(3):
            assert not call(view).requires_grad
        base[:3].mul_(weight)
        call(view).sum().backward()
        gradients.append(weight.grad.tolist())
    assert gradients == [[0, 3, 3]] * 2


def test_a_view_whose_history_cannot_be_rewritten_is_refused_as_by_the_function():
    base = cygrad.ones(4)
    with cygrad.no_grad():
        view = base[1:]
    other = cygrad.ones(4)[1:]
    compiled = cygrad.compile(lambda x, use: x * 3 if use else 3)
    for use in (True, False):
        for _ in range(3):
            compiled(other, use)
    base.mul_(cygrad.ones(4, requires_grad=True))
    assert compiled(view, False) == 3
    with pytest.raises(RuntimeError, match="no-grad mode"):
        compiled(view, True)
