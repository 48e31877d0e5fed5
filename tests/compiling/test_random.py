"""Executions draw the same random numbers from the same generators."""

import pytest

import cygrad
from cygrad import nn, optim
from cygrad.compiling import explain
from cygrad.random.generator import own_generator

F = nn.functional


def outcomes(function, calls, seed=3):
    """Return the results of calls after a seed, and the numbers drawn after them."""
    cygrad.manual_seed(seed)
    return [function(*arguments) for arguments in calls] + [cygrad.rand(3)]


def check(function, *calls, executions=None):
    compiled = cygrad.compile(function)
    for _ in range(2):
        expected, found = outcomes(function, calls), outcomes(compiled, calls)
        for a, b in zip(expected, found, strict=True):
            assert cygrad.equal(a, b) and a.requires_grad == b.requires_grad and a.stride() == b.stride()
    wanted = 2 * len(calls) - 1 if executions is None else executions
    assert explain(compiled).executions == wanted, str(explain(compiled))


DRAWS = {
    "rand": lambda x: x + cygrad.rand(3, 4),
    "returned": lambda x: cygrad.randn(4),
    "changed": lambda x: x * cygrad.randn(3, 4).mul_(2),
    "double": lambda x: cygrad.randn(2, dtype=cygrad.float64),
    "complex": lambda x: cygrad.randn(2, dtype=cygrad.complex64) * 2,
    "several": lambda x: cygrad.rand(3, 4) - cygrad.randn(3, 4) * cygrad.rand_like(x) + cygrad.randn_like(x),
    "not used": lambda x: (cygrad.rand(5), x + 1)[1],
    "integers": lambda x: x[cygrad.randint(3, (5,))],
    "permutation": lambda x: x[cygrad.randperm(3)],
    "bernoulli": lambda x: cygrad.bernoulli(cygrad.empty(3, 4), 0.3) + x,
    "in place": lambda x: x.clone().normal_(1, 2) + x.clone().uniform_(2, 3) + x.clone().exponential_(),
    "transposed": lambda x: x.clone().t().normal_() + 1,
    "number": lambda x: cygrad.normal(0.5, 2.0, (3, 4)) * x,
    "dropout": lambda x: F.dropout(x, 0.4),
    "dropout of channels": lambda x: F.dropout2d(x.reshape(1, 3, 2, 2)),
    "alpha dropout": lambda x: F.alpha_dropout(x, 0.2, training=True),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "noisy relu": lambda x: F.rrelu(x, training=True),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name):
    check(DRAWS[name], *[(cygrad.arange(12.0).reshape(3, 4) + number,) for number in range(4)])


def test_draws_of_the_other_algorithm():
    cygrad.random.set_algorithm("mt19937")
    try:
        for name in ("rand", "several", "bernoulli", "dropout", "permutation"):
            test_draws(name)
    finally:
        cygrad.random.set_algorithm("pcg64")


def test_generators_that_are_named():
    generator = cygrad.Generator()

    def function(x, given):
        return x + cygrad.rand(2, generator=generator) * cygrad.randn(2, generator=given) + cygrad.rand(2)

    other = cygrad.Generator()
    compiled = cygrad.compile(function)
    results = []
    for called in (function, compiled):
        cygrad.manual_seed(1), generator.manual_seed(2), other.manual_seed(3)
        results.append([called(cygrad.zeros(2), other) for _ in range(4)])
    assert all(map(cygrad.equal, *results)) and explain(compiled).executions == 3


def test_generators_of_threads_and_algorithms_are_compared():
    compiled = cygrad.compile(lambda x: x + cygrad.rand(2))
    for _ in range(2):
        compiled(cygrad.zeros(2))
    with own_generator(cygrad.Generator().manual_seed(5)):
        found = compiled(cygrad.zeros(2))
    assert cygrad.equal(found, cygrad.rand(2, generator=cygrad.Generator().manual_seed(5)))
    assert explain(compiled).executions == 1


@pytest.mark.parametrize("function", [
    lambda x: (cygrad.manual_seed(1), x + cygrad.rand(2))[1],
    lambda x: x + cygrad.rand(2, generator=cygrad.Generator().manual_seed(4)),
    lambda x: x + cygrad.bernoulli(x),
    lambda x: x + cygrad.normal(x, 1.0),
    lambda x: x + cygrad.multinomial(x, 1),
    lambda x: (cygrad.get_rng_state(), x + 1)[1],
    lambda x: x * (cygrad.initial_seed() % 2),
], ids=["seed", "new generator", "chances", "means", "weights", "state", "initial seed"])
def test_what_depends_on_more_stays_in_python(function):
    check(function, *[(cygrad.tensor([0.25, 0.5]),)] * 3, executions=0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.second(self.drop(self.first(x).relu()))


def trained(compiles):
    cygrad.manual_seed(0)
    net = Net()
    optimizer = optim.Adam(net.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    if compiles == "step":
        step = cygrad.compile(step)
    elif compiles == "module":
        net.drop.forward, net.first.forward = cygrad.compile(net.drop.forward), cygrad.compile(net.first.forward)
    losses = [step(cygrad.ones(4, 6) * number) for number in range(6)]
    net.eval()
    losses.append(step(cygrad.ones(4, 6)))
    return [*losses, *net.parameters()]


@pytest.mark.parametrize("compiles", ["step", "module"])
def test_training_with_dropout(compiles):
    assert all(map(cygrad.equal, trained(None), trained(compiles)))


def test_second_derivatives_see_the_same_numbers():
    def function(x):
        return F.dropout(x ** 3, 0.3) * cygrad.randn(8).sin()

    compiled = cygrad.compile(function)
    results = []
    for called in (function, compiled):
        cygrad.manual_seed(1)
        results.append([])
        for _ in range(3):
            x = cygrad.linspace(1, 2, 8).requires_grad_()
            (first,) = cygrad.autograd.grad(called(x).sum(), x, create_graph=True)
            results[-1] += [first, *cygrad.autograd.grad(first.sum(), x), cygrad.rand(2)]
    assert all(map(cygrad.equal, *results)) and explain(compiled).executions == 2
