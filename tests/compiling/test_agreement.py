"""Scripts have the same output eagerly and compiled."""

import collections
import copy
import functools
import itertools
import pickle
import time
import types
from dataclasses import dataclass
from typing import NamedTuple

import pytest

import cygrad
from cygrad import nn, optim

X = [1.0, 2.0, 3.0]


def calls(compile, note, function, change, first=3, then=3):
    """Call a function of one tensor before and after a change."""
    compiled = compile(function)
    for number in range(first + then):
        if number == first:
            change()
        note(cygrad.tensor(X), call=compiled)


# Reads.

def test_a_name_that_a_module_lacks_is_compared(agree):
    def script(compile, note):
        module = types.ModuleType("settings")
        calls(compile, note, lambda x: x * (module.factor if hasattr(module, "factor") else 2.0),
              lambda: setattr(module, "factor", 5.0))

    agree(script, executions=4)


def test_a_global_variable_that_is_missing_is_compared(agree):
    def script(compile, note):
        def function(x):
            try:
                return x * LATER
            except NameError:
                return x

        calls(compile, note, function, lambda: globals().update(LATER=4.0))
        del globals()["LATER"]

    agree(script, executions=4)


def test_the_order_of_a_set_is_compared(agree):
    def script(compile, note):
        numbers = {0, 8}
        calls(compile, note, lambda x: functools.reduce(lambda total, number: total * 2 + number, numbers, x),
              lambda: (numbers.clear(), numbers.add(8), numbers.add(0)))

    agree(script, executions=4)


def test_a_replaced_function_of_the_library_is_obeyed(agree, monkeypatch):
    for name, module in [("linear", nn.Linear(3, 2)), ("dropout", nn.Dropout(0.5)), ("mse_loss", nn.MSELoss())]:
        def script(compile, note, name=name, module=module):
            own = compile(lambda x: module(x, x + 1) if name == "mse_loss" else module(x))
            for number in range(6):
                with monkeypatch.context() as patch:
                    if number >= 3:
                        patch.setattr(nn.functional, name, lambda x, *args, **options: x * 10)
                    note(cygrad.tensor(X), call=own)

        agree(script, executions=2)


def test_names_of_attributes_that_no_guard_covers(agree):
    name = "_version"

    def script(compile, note):
        own, x = compile(lambda x: x * getattr(x, name)), cygrad.tensor(X)
        for _ in range(4):
            note(x, call=own)
            x.add_(1)

    agree(script, executions=0, reason="'_version'")


CLOCK = functools.partial(time.perf_counter_ns)


@pytest.mark.parametrize("function", [
    lambda x: x * (CLOCK() > 0), lambda x: x * (next(iter(time.perf_counter_ns, -1)) > 0),
    lambda x: x * (collections.defaultdict(time.perf_counter_ns)[0] > 0), lambda x: x * len([*map(id, [x])])],
    ids=["partial", "iterator", "default", "map"])
def test_functions_of_c_that_are_passed_on_make_it_eager(agree, function):
    agree(lambda compile, note: calls(compile, note, function, lambda: None), executions=0, reason="as a value")


def test_pure_functions_of_c_may_be_passed_on(agree):
    agree(lambda compile, note: calls(compile, note, lambda x: x * sum(map(len, sorted("ab", key=str.upper))),
                                      lambda: None), executions=5)


def test_hashes_of_tensors_that_differ_make_it_eager(agree):
    def script(compile, note):
        tensors = sorted([cygrad.full((2,), float(number)) for number in range(4)], key=id)
        own = compile(lambda *tensors: functools.reduce(lambda total, tensor: total * 2 + tensor, {*tensors}))
        for order in ([0, 1, 2, 3], [0, 1, 2, 3], [3, 2, 1, 0]):
            expected = functools.reduce(lambda total, tensor: total * 2 + tensor, {*[tensors[i] for i in order]})
            note(cygrad.equal(own(*[tensors[i] for i in order]), expected))

    agree(script, executions=0, reason="hashes a tensor")


def test_members_of_named_tuples(agree):
    class Plain(NamedTuple):
        x: cygrad.Tensor
        y: float = 2.0

        def scaled(self):
            return self.x * self.factor

    class Open(collections.namedtuple("Open", "x")):
        pass

    def script(compile, note):
        Plain.factor = 2.0
        own, attribute = compile(lambda pair: pair.scaled()), compile(lambda pair: pair.x * pair.extra)
        for number in range(6):
            Plain.factor = number // 3 + 1.0
            note(Plain(cygrad.tensor(X)), call=own)
            pair = Open(cygrad.tensor(X))
            pair.extra = number // 3
            note(pair, call=attribute)

    agree(script)


def test_the_default_device_is_compared(agree):
    def script(compile, note):
        own = compile(lambda x: (x * 2, cygrad.zeros(3)))
        for place in ("cpu", "cpu", "meta", "cpu"):
            with cygrad.device(place):
                note(str(own(cygrad.ones(3, device="cpu"))[1].device))

    agree(script, executions=2)


# Results and side effects.

def test_containers_that_the_function_has_not_made_keep_their_identity(agree):
    @dataclass
    class Pair:
        x: cygrad.Tensor

    kept, x = [1.0], cygrad.tensor(X)

    def script(compile, note):
        def default(x, kept=[2.0]):  # noqa: B006
            return kept

        for function in (lambda given: given, lambda given: (kept, 3)[0], default):
            own = compile(function)
            for _ in range(3):
                for given in ([x], {"a": x}, Pair(x)):
                    result = own(given)
                    note(result is given, result is kept, result is default.__defaults__[0])

    agree(script, executions=0, reason="Return a copy")


def test_settings_that_a_function_leaves_make_it_eager(agree):
    settings = [
        (cygrad.use_deterministic_algorithms, cygrad.are_deterministic_algorithms_enabled, True, False),
        (lambda value: cygrad.set_printoptions(precision=value), lambda: repr(cygrad.tensor(0.123456)), 2, 4),
        (cygrad.set_float32_matmul_precision, cygrad.get_float32_matmul_precision, "high", "highest"),
        (cygrad.autograd.set_detect_anomaly, cygrad.is_anomaly_enabled, True, False),
        (cygrad.set_warn_always, cygrad.is_warn_always_enabled, True, False),
        (cygrad.set_default_device, lambda: str(cygrad.get_default_device()), "meta", None),
        (lambda value: cygrad.set_autocast_enabled("cpu", value), lambda: cygrad.is_autocast_enabled("cpu"), True,
         False),
        (lambda value: cygrad.set_autocast_dtype("cpu", value), lambda: cygrad.get_autocast_dtype("cpu"),
         cygrad.float16, cygrad.bfloat16),
        (cygrad.distributions.Distribution.set_default_validate_args,
         lambda: cygrad.distributions.Distribution._validate_args, False, True)]
    x = cygrad.ones(3)
    for choose, get, value, former in settings:
        def script(compile, note, choose=choose, get=get, value=value, former=former):
            own = compile(lambda x: (choose(value), x * 2)[1])
            for _ in range(3):
                own(x)
                note(get())
                choose(former)

        agree(script, executions=0, reason="setting")


def test_deterministic_algorithms_fill_memory_in_a_function_that_was_compiled_before():
    function = cygrad.compile(lambda x: cygrad.empty(3).fill_(0) + cygrad.empty_like(x) * 0 + x)
    x = cygrad.ones(3)
    function(x)
    cygrad.use_deterministic_algorithms(True)
    try:
        assert all(function(x).isnan().all() for _ in range(3))
    finally:
        cygrad.use_deterministic_algorithms(False)


def test_results_made_in_another_inference_mode(agree):
    def function(x):
        with cygrad.inference_mode():
            return x * 2

    agree(lambda compile, note: calls(compile, note, function, lambda: None), executions=0, reason="inference mode")


# Compiled functions in compiled functions.

def test_compiled_functions_in_compiled_functions(agree):
    def script(compile, note):
        inner = cygrad.compile(lambda x: x * 2, fullgraph=True)
        module = cygrad.compile(nn.Tanh())
        calls(compile, note, lambda x: module(inner(x)) + 1, lambda: None)

    agree(script, executions=5)


def test_recursion(agree):
    def script(compile, note):
        own = compile(lambda x, n: x if n == 0 else own(x * 2, n - 1) + 1)
        for _ in range(3):
            note(cygrad.tensor(X), 3, call=own)

    agree(script, executions=2)


def test_a_compiled_method_is_a_method():
    class Scaled:
        factor = 2.0

        @cygrad.compile
        def scale(self, x):
            return x * self.factor

    own = Scaled()
    assert [own.scale(cygrad.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert own.scale.__self__ is own and own.scale == own.scale and own.scale.__name__ == "scale"


# Errors.

def failing(name):
    """A function of a float and an integer tensor, and the arguments that make it fail or not."""
    matrix = cygrad.arange(9.0).view(3, 3)
    return {
        "index": (lambda x, y: x[y], matrix), "gather": (lambda x, y: x[0].gather(0, y), matrix),
        "scatter_": (lambda x, y: x[0].scatter_(0, y, 2.0), matrix * 1),
        "embedding": (lambda x, y: nn.functional.embedding(y, x), matrix),
        "cross_entropy": (lambda x, y: nn.functional.cross_entropy(x[:2], y), matrix),
        "floor_divide": (lambda x, y: 7 // (y - 5), matrix), "remainder": (lambda x, y: 7 % (y - 5), matrix),
    }[name]


@pytest.mark.parametrize("name", ["index", "gather", "scatter_", "embedding", "cross_entropy", "floor_divide",
                                  "remainder"])
@pytest.mark.parametrize("draws", [False, True])
def test_an_error_leaves_what_eager_leaves(agree, name, draws):
    part, x = failing(name)

    def script(compile, note):
        buffer, weight = cygrad.zeros(3), cygrad.ones(3, requires_grad=True)
        before = x.clone()

        @compile
        def own(x, y):
            buffer.add_(cygrad.rand(3) if draws else 1.0)
            (weight * weight).sum().backward()
            result = part(x, y)
            buffer.mul_(2.0).add_(cygrad.rand(3) if draws else 1.0)
            return result

        for y in ([0, 1], [0, 1], [0, 5], [0, 1], [5, 0]):
            note(before, cygrad.tensor(y), call=own)
            note(before, buffer, weight, cygrad.get_rng_state())

    assert agree(script, executions=1).calls == 2               # the failing calls were executed, too


@pytest.mark.parametrize("optimizer", [
    lambda w: cygrad.optim.Adam([w]), lambda w: cygrad.optim.AdamW([w], amsgrad=True),
    lambda w: cygrad.optim.SGD([w], lr=0.1, momentum=0.9)])
def test_an_error_leaves_all_state_of_optimizers(agree, optimizer):
    def script(compile, note):
        weight = cygrad.tensor(X, requires_grad=True)
        own = optimizer(weight)

        @compile
        def step(index):
            own.zero_grad()
            weight.square().sum().backward()
            own.step()
            return weight.detach()[index]

        for index in ([0], [0], [1], [9], [1], [9]):
            note(cygrad.tensor(index), call=step)
            note(weight, *own.state[weight].values())

    assert agree(script, executions=2).calls == 2


@pytest.mark.parametrize("mode", [cygrad.inference_mode, cygrad.no_grad, cygrad.enable_grad])
def test_what_is_modified_before_an_operation_that_may_fail_keeps_its_version(agree, mode):
    def script(compile, note):
        buffer, x = cygrad.zeros(3), cygrad.arange(3.0)
        own = compile(lambda index: buffer.add_(x[index].sum()) * 1 + x[index])
        for index in (0, 1, 2, 9, 1):
            with mode():
                note(cygrad.tensor([index]), call=own)
            note(buffer)

    assert agree(script, executions=3).calls == 1


def test_an_error_in_one_of_many_calls():
    total = cygrad.zeros(2)
    own = cygrad.compile(lambda x, y: total.add_(x[y]))
    x = cygrad.arange(3.0)
    own(x, cygrad.tensor([0, 1]))
    with pytest.raises(IndexError):
        own.each([(x, cygrad.tensor([2, 1])), (x, cygrad.tensor([0, 9])), (x, cygrad.tensor([1, 1]))])
    assert total.tolist() == [2.0, 2.0]


# Backward outside of the function.

def test_results_with_graphs_of_their_own_end_one_by_one(agree):
    def script(compile, note):
        weight = cygrad.tensor(X, requires_grad=True)
        own = compile(lambda x: ((x * weight).exp(), (x + weight * 2).sin(), weight * weight))
        for order in itertools.permutations(range(3)):
            results = own(cygrad.tensor(X))
            for position in order:
                note(results[position].sum(), call=cygrad.autograd.backward)
                note(weight)

    agree(script, executions=5)


@pytest.mark.parametrize("shared", [lambda x, w: x + w, lambda x, w: (x * w).exp()], ids=["kept none", "kept one"])
def test_a_second_backward_fails_where_that_of_eager_fails(agree, shared):
    def script(compile, note):
        weight = cygrad.tensor(X, requires_grad=True)

        def function(x):
            both = shared(x, weight)
            return both.sum(), both.mean(), both * weight

        own = compile(function)
        for order in ((0, 1, 2), (2, 1, 0), (1, 1, 0), (0, 2, 2)):
            results = own(cygrad.tensor(X))
            for position in order:
                note(results[position].sum(), call=cygrad.autograd.backward)
                note(weight)
            results = own(cygrad.tensor(X))
            note(results[0] + results[2].sum(), call=cygrad.autograd.backward)
            note(results[1], call=cygrad.autograd.backward)
            note(weight)

    agree(script, executions=7)


def test_hooks_of_leaves_run_in_the_order_of_eager(agree):
    def script(compile, note):
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        own = compile(lambda x: model(x).sum() + model[0].weight.sum() * model[2].bias.sum())
        for _ in range(2):
            own(cygrad.tensor(X)).backward()
        for name, parameter in model.named_parameters():
            parameter.register_hook(lambda gradient, name=name: note("before", name))
            parameter.register_post_accumulate_grad_hook(lambda leaf, name=name: note("after", name, leaf.grad))
        for _ in range(3):
            own(cygrad.tensor(X)).backward()

    agree(script, executions=4)


def test_gradients_that_are_expanded_make_it_eager(agree):
    def script(compile, note):
        weight = cygrad.tensor(X, requires_grad=True)
        weight.grad = cygrad.zeros(1).expand(3)
        own = compile(lambda x: (weight * x).sum().backward())
        for _ in range(3):
            note(cygrad.tensor(X), call=own)

    agree(script, executions=0)


# Optimizers.

@pytest.mark.parametrize(("name", "options"), [("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("Adam", {}),
                                               ("AdamW", {"amsgrad": True}), ("RMSprop", {}), ("Rprop", {})])
def test_options_groups_and_frozen_layers_that_change(agree, name, options):
    def script(compile, note):
        model = nn.Linear(3, 3)
        optimizer = getattr(optim, name)(model.parameters(), lr=0.1, **options)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        @compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        group = optimizer.param_groups[0]
        for number in range(10):
            if number == 4 and "momentum" in group:
                group["momentum"], group["nesterov"] = 0.9 - group["momentum"], False
            if number == 5:
                group["weight_decay"] = 0.05
            if number in (6, 7):
                model.bias.requires_grad_(number == 7)
            if number == 8:
                optimizer.add_param_group({"params": [cygrad.ones(3, requires_grad=True)], "lr": 0.3})
            if number == 9:
                group["lr"] = "fast"
            note(cygrad.tensor(X), call=step)
            schedule.step() if number < 9 else None
            note([*model.parameters()], [optimizer.state.get(leaf, {}) for leaf in model.parameters()])

    agree(script)


def test_a_trace_that_a_backward_aborts_accumulates_as_eager_does(agree):
    def script(compile, note):
        model = nn.Linear(3, 3)

        def run(x):
            cygrad.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
            return x * 2

        own = compile(run)
        for _ in range(5):
            note(cygrad.tensor(X), call=own)
            note(*model.parameters())

    agree(script, executions=0)


def test_objects_whose_class_controls_attribute_access(agree):
    class Settings:
        def __getattribute__(self, name):
            return object.__getattribute__(self, "values")[name]

    def script(compile, note):
        settings = Settings()
        object.__setattr__(settings, "values", {"factor": 2.0})
        calls(compile, note, lambda x: x * settings.factor,
              lambda: object.__getattribute__(settings, "values").update(factor=3.0))

    agree(script, executions=4)


def test_the_state_of_a_partial_is_compared(agree):
    def script(compile, note):
        scaled = functools.partial(lambda a, b: a * b, 2.0)
        calls(compile, note, lambda x: scaled(x), lambda: scaled.__setstate__((scaled.func, (3.0,), {}, {})))

    agree(script, executions=4)


@cygrad.compile
def triple(x):
    return x * 3


def test_copies_and_pickles_of_compiled_functions():
    x = cygrad.ones(1)
    assert copy.copy(triple) is triple and pickle.loads(pickle.dumps(triple)) is triple
    double = cygrad.compile(lambda x: x * 2)
    assert copy.deepcopy(double)(x).item() == copy.copy(double)(x).item() == 2.0
    model = cygrad.compile(nn.Linear(1, 1))
    twin = copy.deepcopy(model)
    with cygrad.no_grad():
        model.weight.zero_()
        model.bias.zero_()
    assert [model(x).item() for _ in range(3)] == [0.0] * 3 and twin(x).item() != 0.0
    assert pickle.loads(pickle.dumps(twin))(x).item() == twin(x).item()


def test_attributes_of_a_compiled_module_are_those_of_the_original():
    original = nn.Dropout(0.5)
    model = cygrad.compile(original)
    model.p = 0.25
    assert original.p == 0.25 and model.eval().training is False is original.training
    del model.p
    assert not hasattr(original, "p")


def test_a_gradient_that_is_returned_is_that_of_the_leaf(agree):
    def script(compile, note):
        weight = cygrad.tensor(X, requires_grad=True)

        def function(x):
            (weight * x).sum().backward()
            return weight.grad

        own = compile(function)
        for _ in range(5):
            gradient = own(cygrad.tensor(X))
            note(gradient is weight.grad, gradient.add_(1))
            note(weight)

    agree(script, executions=3)


def test_results_with_version_counters_of_their_own(agree):
    def script(compile, note):
        for function in (lambda x: x.data, lambda x: (lambda y: (y, y.data))(x * 2), lambda x: (x * 2).data):
            own = compile(function)
            for _ in range(3):
                x = cygrad.ones(3)
                result = own(x)
                (result[1] if isinstance(result, tuple) else result).add_(1)
                note(x, result)

    agree(script, executions=2)


def test_explain_says_for_what_change_a_function_was_traced_again():
    factors = {"k": 2.0}
    own = cygrad.compile(lambda x, n=1: x * factors["k"] * n)
    x = cygrad.ones(2)
    own(x)
    own(cygrad.ones(3))
    factors["k"] = 3.0
    own(x)
    with cygrad.no_grad():
        own(x)
    own(x, 2)
    own(x, 3)
    changes = cygrad.compiling.explain(own).retraces
    assert "argument 0" in changes[0] and "'k'" in changes[1] and "mode" in changes[2], changes
    assert changes[4] == "argument 1, a int" and len(changes) == 5


@pytest.mark.parametrize("unused", [lambda x, y: x[y], lambda x, y: 7 // (y - 9)], ids=["index", "division"])
def test_an_error_of_an_unused_result_is_raised(agree, unused):
    def script(compile, note):
        own = compile(lambda x, y: (unused(x, y), x * 2)[1])
        for y in ([0, 1], [0, 1], [0, 9], [1, 1]):
            note(cygrad.tensor(X), cygrad.tensor(y), call=own)

    agree(script, executions=2)
