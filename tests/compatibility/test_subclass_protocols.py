"""
Base classes call the overridable methods that PyTorch's call.

A subclass overrides every method and property of a base by one that notes its name and goes on as before. The same
scenario runs with both libraries; whatever is called in PyTorch must be called here.
"""

import copy
import types
import warnings

import pytest

torch = pytest.importorskip("torch")

import cygrad  # noqa: E402

CREATION = {"__init__", "__new__", "__init_subclass__", "__subclasshook__", "__class_getitem__", "__del__", "__hash__",
            "__eq__", "get_extra_state", "set_extra_state"}
# Calls of PyTorch for its compiler, profiler, other devices, or parts of one operator of cygrad.
UNCALLED = {
    "Module": {"_call_impl"}, "Optimizer": {"_init_group", "_optimizer_step_code", "profile_hook_step",
                                            "_accelerator_graph_capture_health_check"},
    "Sequential": {"_get_item_by_idx"}, "ModuleList": {"_get_abs_string_index", "__iadd__"},
    "DataLoader": {"multiprocessing_context"}, "AffineTransform": {"event_dim"},
    "HalfCauchy": {"_extended_shape"},
    "RNNBase": {"_init_flat_weights", "_update_flat_weights", "_weights_have_changed", "check_forward_args",
                "check_hidden_size", "flatten_parameters", "get_expected_cell_size", "get_expected_hidden_size",
                "permute_hidden"},
    "_InstanceNorm": {"_apply_instance_norm", "_get_no_batch_dim"},
}


def members(cls):
    """Return the methods and properties of a class and its bases."""
    found = {}
    for base in cls.__mro__:
        if base.__module__ not in ("builtins", "typing", "abc"):
            found.update({name: value for name, value in vars(base).items() if name not in found and (
                hasattr(value, "__get__") or isinstance(value, (classmethod, staticmethod))) and not isinstance(
                    value, type) and name not in CREATION and name not in ("__dict__", "__weakref__")})
    return found


def noting(cls, names, called):
    """Return a subclass whose methods and properties record their use."""
    body = {}
    for name in names:
        own = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        if isinstance(own, (staticmethod, classmethod)):
            def function(*args, _name=name, _own=own.__func__, **options):
                called.add(_name)
                return _own(*args, **options)
            body[name] = type(own)(function)
        elif isinstance(own, types.FunctionType):
            def method(self, *args, _name=name, _own=own, **options):
                called.add(_name)
                return _own(self, *args, **options)
            body[name] = method
        elif hasattr(own, "__get__"):
            def get(self, _name=name, _own=own):
                called.add(_name)
                return self.__dict__[_name] if _name in self.__dict__ else _own.__get__(self, type(self))

            def put(self, value, _name=name, _own=own):
                if hasattr(_own, "__set__"):
                    _own.__set__(self, value)
                else:
                    self.__dict__[_name] = value
            body[name] = property(get, put)
    return type(cls.__name__, (cls,), body)


def at(library, path):
    for part in path.split("."):
        library = getattr(library, part)
    return library


def network(t, cls):
    class Net(cls):
        def __init__(self):
            super().__init__()
            self.layer, self.child, self.weight = t.nn.Linear(2, 3), cls(), t.nn.Parameter(t.ones(2))
            self.register_buffer("mean", t.zeros(2))

        def forward(self, x):
            return self.layer(x)

    net = Net()
    net(t.ones(1, 2)).sum().backward()
    net.load_state_dict(net.state_dict())
    for call in (repr, dir, copy.deepcopy, Net.train, Net.eval, Net.requires_grad_, Net.zero_grad, Net.double, Net.half,
                 Net.float, Net.bfloat16, Net.cpu, Net.share_memory, Net._replicate_for_data_parallel):
        call(net)
    for walk in (net.parameters, net.buffers, net.modules, net.children):
        list(walk())
    net.to(t.float32).type(t.float32).apply(lambda module: None).to_empty(device="cpu")
    net.get_submodule("child"), net.get_parameter("layer.weight"), net.get_buffer("mean")
    net.register_module("more", None)
    net.register_forward_hook(lambda *args: None)
    net(t.ones(1, 2))
    del net.more


def container(t, cls):
    modules = cls(t.nn.ReLU(), t.nn.Tanh()) if issubclass(cls, t.nn.Sequential) else cls([t.nn.ReLU(), t.nn.Tanh()])
    modules.append(t.nn.ReLU()).extend([t.nn.ReLU()]).insert(0, t.nn.Tanh())
    modules[0] = modules[1]
    del modules[1]
    modules.pop(0), len(modules), list(modules), repr(modules), modules[:1], modules + modules


def layer(*arguments, shape):
    def scenario(t, cls):
        module = cls(*arguments)
        for mode in (True, False):
            module.train(mode)(t.zeros(shape, dtype=t.int64) if "Embedding" in cls.__name__ else t.ones(shape))
        repr(module), copy.deepcopy(module).load_state_dict(module.state_dict())
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return scenario


def optimizer(t, cls):
    first, second = (t.nn.Parameter(t.ones(2)) for _ in range(2))
    made = cls([first], lr=0.1)
    made.add_param_group({"params": [second]})
    first.grad = second.grad = t.ones(2)
    made.step()
    made.zero_grad()
    made.load_state_dict(made.state_dict())
    repr(made), copy.deepcopy(made)


def scheduler(*arguments, step=()):
    def scenario(t, cls):
        stepped = t.optim.SGD([t.nn.Parameter(t.ones(2))], lr=0.1, momentum=0.9)
        made = cls(stepped, *arguments)
        for _ in range(4):
            stepped.step()
            made.step(*step)
        made.load_state_dict(made.state_dict())
        made.get_last_lr()
    return scenario


def loader(t, cls):
    data = t.utils.data.TensorDataset(t.arange(6))
    for options in ({"batch_size": 2}, {"batch_size": None}, {"batch_size": 2, "num_workers": 1}):
        len(cls(data, **options)), list(cls(data, **options))


def samples(*arguments):
    def scenario(t, cls):
        data = cls(*(t.utils.data.TensorDataset(t.arange(6)) if part is None else
                     [t.utils.data.TensorDataset(t.arange(6))] * 2 if part == "list" else
                     t.arange(6) if part == "tensor" else part for part in arguments))
        len(data), data[0], list(t.utils.data.DataLoader(data, batch_size=2)), data + data
    return scenario


def order(*arguments):
    def scenario(t, cls):
        sampler = cls(*arguments)
        len(sampler), list(sampler), list(t.utils.data.DataLoader(list(range(3)), sampler=sampler))
    return scenario


def density(*arguments):
    def scenario(t, cls):
        made = cls(*(t.tensor(part) if isinstance(part, (float, list)) else part for part in arguments))
        value = made.sample()
        made.log_prob(value), repr(made), made.mean, made.variance, made.batch_shape, made.event_shape, made.support
        made.sample((2,)), made.entropy() if cls.__name__ in ("Normal", "Gamma", "Categorical", "Gumbel") else None
    return scenario


def turned(*arguments):
    def scenario(t, cls):
        made = cls(*arguments)
        x = t.tensor([0.3, 0.4])
        y = made(x)
        made.inv(y), made.log_abs_det_jacobian(x, y), repr(made), made.inv.inv, made.forward_shape((2,))
        made.inverse_shape((2,)), made == cls(*arguments), made.sign
        cls(*arguments, cache_size=1)(x)
    return scenario


SCENARIOS = {
    "nn.Module": network, "nn.Sequential": container, "nn.ModuleList": container,
    "nn.Linear": layer(2, 3, shape=(1, 2)), "nn.Conv2d": layer(1, 2, 1, shape=(1, 1, 2, 2)),
    "nn.BatchNorm1d": layer(2, shape=(3, 2)), "nn.InstanceNorm1d": layer(2, shape=(1, 2, 4)),
    "nn.LayerNorm": layer(2, shape=(3, 2)), "nn.Embedding": layer(3, 2, 0, shape=(2,)),
    "nn.LSTM": layer(2, 3, shape=(4, 2)), "nn.GRU": layer(2, 3, shape=(4, 2)), "nn.Dropout": layer(shape=(3, 2)),
    "nn.PReLU": layer(shape=(3, 2)), "nn.TransformerEncoderLayer": layer(4, 2, 8, shape=(3, 4)),
    "nn.ZeroPad2d": layer(1, shape=(1, 1, 2, 2)), "nn.MaxPool2d": layer(2, shape=(1, 1, 2, 2)),
    "optim.SGD": optimizer, "optim.Adam": optimizer, "optim.AdamW": optimizer, "optim.RMSprop": optimizer,
    "optim.lr_scheduler.StepLR": scheduler(2), "optim.lr_scheduler.LambdaLR": scheduler(lambda epoch: 0.9),
    "optim.lr_scheduler.CosineAnnealingLR": scheduler(4), "optim.lr_scheduler.ExponentialLR": scheduler(0.9),
    "optim.lr_scheduler.ReduceLROnPlateau": scheduler("min", 0.5, 0, step=(1.0,)),
    "utils.data.DataLoader": loader, "utils.data.TensorDataset": samples("tensor"),
    "utils.data.Subset": samples(None, [1]), "utils.data.ConcatDataset": samples("list"),
    "utils.data.SequentialSampler": order([1, 2, 3]),
    "utils.data.RandomSampler": order([1, 2, 3]), "utils.data.SubsetRandomSampler": order([1, 2]),
    "utils.data.WeightedRandomSampler": order([0.5, 0.5], 3),
    "distributions.Normal": density(0.0, 1.0), "distributions.Gamma": density(1.0, 1.0),
    "distributions.Categorical": density([0.5, 0.5]), "distributions.HalfNormal": density(1.0),
    "distributions.HalfCauchy": density(1.0), "distributions.Gumbel": density(0.0, 1.0),
    "distributions.LogNormal": density(0.0, 1.0), "distributions.Weibull": density(1.0, 1.0),
    "distributions.transforms.ExpTransform": turned(), "distributions.transforms.AffineTransform": turned(0.5, 2.0),
    "distributions.transforms.SigmoidTransform": turned(),
}


@pytest.mark.parametrize("path", SCENARIOS)
def test_whatever_the_base_class_calls_on_itself_can_be_overridden(path):
    names, called = members(at(torch, path)), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for library in (torch, cygrad):
            called[library] = set()
            library.manual_seed(0)
            SCENARIOS[path](library, noting(at(library, path), names, called[library]))
    left_out = set().union(*(UNCALLED.get(base.__name__, ()) for base in at(torch, path).__mro__))
    assert called[torch]
    assert called[torch] - called[cygrad] <= left_out
