"""Training steps as one program are bit-identical to eager: parameters, gradients, state and versions."""

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.compiling import explain

OPTIMIZERS = {
    "SGD": lambda parameters: optim.SGD(parameters, lr=0.1),
    "SGD with momentum": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD after Nesterov": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.01),
    "Adam with amsgrad": lambda parameters: optim.Adam(parameters, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda parameters: optim.AdamW(parameters, lr=0.01, maximize=True),
}


class Training:
    """A model with its optimizer and a step; two of them with the same seed have the same numbers."""

    def __init__(self, make_optimizer, model=None):
        cygrad.manual_seed(3)
        self.model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4)) if model is None else model()
        self.optimizer = make_optimizer(self.model.parameters())
        model, optimizer = self.model, self.optimizer

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        self.step = step

    def state(self):
        """All numbers there are."""
        found = [*self.model.parameters(), *self.model.buffers()]
        found += [parameter.grad for parameter in self.model.parameters()]
        for parameter in self.model.parameters():
            found += self.optimizer.state.get(parameter, {}).values()
        return found


def assert_alike(training, other):
    for a, b in zip(training.state(), other.state(), strict=True):
        assert cygrad.equal(a, b)
        assert a._version == b._version


def batches(count, rows=8):
    cygrad.manual_seed(4)
    return [(cygrad.randn(rows, 10), cygrad.randn(rows, 4)) for _ in range(count)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_is_that_of_eager(name):
    eager, compiled = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    step = cygrad.compile(compiled.step)
    for x, y in batches(6):
        expected, found = eager.step(x, y), step(x, y)
        assert cygrad.equal(expected, found)
        assert found.requires_grad and found.grad_fn.name() == expected.grad_fn.name()
        assert_alike(eager, compiled)
    assert explain(step).executions >= 4


def test_options_of_the_optimizer_may_change():
    eager, compiled = Training(OPTIMIZERS["Adam"]), Training(OPTIMIZERS["Adam"])
    step = cygrad.compile(compiled.step)
    for number, (x, y) in enumerate(batches(6)):
        for training in (eager, compiled):
            training.optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
        eager.step(x, y), step(x, y)
        assert_alike(eager, compiled)
    assert explain(step).executions == 4


def test_gradients_accumulate_in_place():
    eager, compiled = Training(OPTIMIZERS["SGD"]), Training(OPTIMIZERS["SGD"])

    def accumulating(model):
        def step(x, y):
            nn.functional.mse_loss(model(x), y).backward()
        return step

    plain, step = accumulating(eager.model), cygrad.compile(accumulating(compiled.model))
    kept = None
    for x, y in batches(5):
        plain(x, y), step(x, y)
        assert_alike(eager, compiled)
        grad = compiled.model[0].weight.grad
        assert kept is None or grad is kept
        kept = grad
    assert explain(step).executions == 3       # without gradients, then with them


def test_zeroed_gradients():
    eager, compiled = Training(OPTIMIZERS["SGD"]), Training(OPTIMIZERS["SGD"])

    def zeroing(training):
        def step(x, y):
            training.optimizer.zero_grad(set_to_none=False)
            nn.functional.mse_loss(training.model(x), y).backward()
            training.optimizer.step()
        return step

    plain, step = zeroing(eager), cygrad.compile(zeroing(compiled))
    for x, y in batches(6):
        plain(x, y), step(x, y)
        assert_alike(eager, compiled)
    assert explain(step).executions >= 3


def test_batch_norm_changes_its_buffers():
    def model():
        return nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))

    eager, compiled = Training(OPTIMIZERS["SGD"], model), Training(OPTIMIZERS["SGD"], model)
    step = cygrad.compile(compiled.step)
    for x, y in batches(5):
        assert cygrad.equal(eager.step(x, y), step(x, y))
        assert_alike(eager, compiled)
    assert explain(step).executions == 4
    for training in (eager, compiled):
        training.model.eval()
    for x, y in batches(3):
        assert cygrad.equal(eager.step(x, y), step(x, y))
        assert_alike(eager, compiled)
    assert len(explain(step).programs) == 2


def test_second_backward_through_a_result():
    eager, compiled = Training(OPTIMIZERS["SGD"]), Training(OPTIMIZERS["SGD"])
    step = cygrad.compile(compiled.step)
    for x, y in batches(3):
        loss = step(x, y)
        with pytest.raises(RuntimeError, match="already been freed"):
            loss.backward()
        with pytest.raises(RuntimeError, match="already been freed"):
            eager.step(x, y).backward()


def test_gradient_and_hessian_vector_product():
    def product(x, v):
        loss = (x.sin() * x).sum()
        (gradient,) = cygrad.autograd.grad(loss, x, create_graph=True)
        return cygrad.autograd.grad((gradient * v).sum(), x)[0]

    step = cygrad.compile(product)
    for number in range(4):
        x = (cygrad.arange(5.0) + number).requires_grad_()
        v = cygrad.linspace(-1, 1, 5) + number
        assert cygrad.equal(step(x, v), product(x, v))
    assert explain(step).executions == 3


def test_results_are_new_each_time():
    step = cygrad.compile(lambda x: (x * 2, x + 1))
    x = cygrad.ones(3)
    results = [step(x + number) for number in range(4)]
    for number, (double, more) in enumerate(results):
        assert double.tolist() == [2.0 * (1 + number)] * 3 and more.tolist() == [2.0 + number] * 3


@pytest.mark.parametrize("value", [None, 3, 2.5, "done", (), [], {}, (1, None), {"loss": (1.0,)}])
def test_results_without_tensors(value):
    total = cygrad.zeros(3)

    @cygrad.compile
    def step(x):
        total.add_(x)
        return [*value] if isinstance(value, list) else {**value} if isinstance(value, dict) else value

    results = [step(cygrad.ones(3)) for _ in range(4)] + step.each([(cygrad.ones(3),)] * 2)
    assert results == [value] * 6 and total.tolist() == [6.0] * 3
    assert explain(step).executions == 5
    if isinstance(value, (list, dict)):          # each is another object, as without `compile`
        assert len(set(map(id, results))) == 6


def test_each_of_many_batches():
    eager, compiled = Training(OPTIMIZERS["Adam"]), Training(OPTIMIZERS["Adam"])
    step = cygrad.compile(compiled.step)
    for _ in range(2):
        calls = batches(6)
        expected = [eager.step(*call) for call in calls]
        found = step.each(calls)
        assert all(cygrad.equal(a, b) and b.requires_grad for a, b in zip(expected, found, strict=True))
        assert_alike(eager, compiled)
    assert explain(step).executions == 10
    mixed = [*batches(45), *batches(2, rows=3), *batches(40)]          # more than are made at a time
    expected = [eager.step(*call) for call in mixed]
    assert all(cygrad.equal(a, b) for a, b in zip(expected, step.each(mixed), strict=True))
    assert_alike(eager, compiled)
    assert explain(step).executions == 10 + 45 + 1 + 40


def test_memory_after_many_replays():
    training = Training(OPTIMIZERS["Adam"])
    step = cygrad.compile(training.step)
    (x, y), = batches(1)
    for _ in range(1000):
        step(x, y)
    before = cygrad.memory_stats()
    for _ in range(100_000):
        step(x, y)
    after = cygrad.memory_stats()
    assert {name: after[name] for name in before if "in_use" in name} == {
        name: before[name] for name in before if "in_use" in name}


@pytest.mark.parametrize("modify", [lambda x: x.grad.mul_(2), lambda x: (x * 3).sum().backward()])
def test_a_constant_gradient_belongs_to_the_caller(modify):
    """What the caller adds to it is not there in the next execution."""
    x = cygrad.tensor([1.0, 0.6], requires_grad=True)

    def step():
        x.grad = None
        (x * 0.25).sum().backward()

    compiled = cygrad.compile(step)
    for _ in range(5):
        compiled()
        assert x.grad.tolist() == [0.25, 0.25]
        modify(x)
    assert cygrad.compiling.explain(compiled).executions > 0
