"""Concurrent executions by several threads."""

import threading

import cygrad
from cygrad import nn, optim
from cygrad._core.compiler.executable import execution_counts
from cygrad.compiling import explain
from tests.tools import in_threads


def training(seed, model=None, compiles=True, make_optimizer=optim.Adam):
    cygrad.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4)) if model is None else model
    optimizer = make_optimizer(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, cygrad.compile(step) if compiles else step


def batches(seed, count):
    generator = cygrad.Generator().manual_seed(seed)
    return [(cygrad.randn(8, 10, generator=generator), cygrad.randn(8, 4, generator=generator)) for _ in range(count)]


def test_models_of_their_own():
    expected = []
    for seed in range(4):
        model, step = training(seed, compiles=False)
        expected.append([[step(*batch) for batch in batches(seed, 300)][-1], *model.parameters()])
    trainings = [training(seed) for seed in range(4)]

    def work(seed):
        model, step = trainings[seed]
        losses = [step(*batch) for batch in batches(seed, 300)]
        found = [losses[-1], *model.parameters()]
        assert all(map(cygrad.equal, found, expected[seed]))

    in_threads(4, work)
    assert all(explain(step).executions == 298 for _, step in trainings)


def test_lock_is_given_up_once_in_a_replay_if_others_replay_too():
    (_, first), (_, second) = training(0), training(1)
    batch, = batches(2, 1)
    for step in (first, second):
        for _ in range(3):
            step(*batch)
    turn = threading.Barrier(2)
    counts = []

    def work(number):
        for _ in range(50):                       # each executions once before the other one does again
            turn.wait()
            if number == 0:
                first(*batch)
            turn.wait()
            if number == 1:
                second(*batch)
                counts.append(execution_counts())

    in_threads(2, work)
    (executions, n_released), (all_executions, all_released) = counts[0], counts[-1]
    assert all_executions - executions == all_released - n_released == 98


def test_one_function_in_several_threads():
    compiled = cygrad.compile(lambda x: (x * 2).sin().cumsum(0) + 1)
    x = cygrad.linspace(0, 1, 500)
    expected = [(x + number) * 1 for number in range(4)]
    results = [((part * 2).sin().cumsum(0) + 1) for part in expected]
    compiled(x)

    def work(number):
        for _ in range(500):
            assert cygrad.equal(compiled(expected[number]), results[number])

    in_threads(4, work)
    assert explain(compiled).executions == 2000


def test_gradients_that_accumulate_in_one_place():
    w = cygrad.zeros(8, requires_grad=True)

    def step(x):
        (w * x).sum().backward()

    compiled = cygrad.compile(step)
    ones = cygrad.ones(8)
    for _ in range(3):
        compiled(ones)
    stop = threading.Event()

    def work(number):
        if number == 3:                           # .grad is set and deleted meanwhile
            for _ in range(2000):
                w.grad = None
            stop.set()
            return
        while not stop.is_set():
            compiled(ones)

    in_threads(4, work)
    w.grad = None
    compiled(ones)
    assert w.grad.tolist() == [1.0] * 8


def test_hogwild_with_a_step_for_each_thread():
    cygrad.manual_seed(0)
    shared = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4))
    target = nn.Linear(10, 4)
    x = cygrad.randn(64, 10)
    with cygrad.no_grad():
        y = target(x)
    before = nn.functional.mse_loss(shared(x), y).item()
    steps = []

    def work(number):
        copy = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4))
        for own, of_all in zip(copy.parameters(), shared.parameters(), strict=True):
            own.data = of_all.data                # the same memory, separate gradients
        _, step = training(number, copy, make_optimizer=optim.SGD)
        for place in range(2000):
            rows = slice(place % 8 * 8, place % 8 * 8 + 8)
            step(x[rows], y[rows])
        steps.append(step)

    in_threads(4, work)
    assert nn.functional.mse_loss(shared(x), y).item() < before / 3
    assert all(explain(step).executions > 1990 for step in steps)
