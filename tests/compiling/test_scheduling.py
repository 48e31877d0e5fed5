"""Independent operations on several threads: results, errors and memory of one thread."""

import gc
import random

import pytest

import cygrad
from cygrad import nn, optim
from cygrad._core.compiler.assembly import barriers
from cygrad.compiling import explain
from tests.compiling.random_functions import numbers, random_function
from tests.tools import in_threads, run_program

pytestmark = pytest.mark.usefixtures("keep_number_of_threads")

F = nn.functional


@pytest.fixture
def all_sections(monkeypatch):
    """Parallelize all independent operations, however small."""
    for name, value in (("MIN_PARALLEL_WORK", 0), ("MIN_PARALLEL_FRACTION", 1 << 40), ("MIN_MEAN_WORK", 0)):
        monkeypatch.setattr(f"cygrad._core.compiler.assembly.{name}", value)


def training(make, *inputs):
    """A model, and a step of it."""
    cygrad.manual_seed(0)
    model = make()
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(*inputs):
        optimizer.zero_grad()
        loss = model(*inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step, inputs


class Towers(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.towers = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
                                     for _ in range(3)])

    def forward(self, x):
        first, second, third = (tower(x) for tower in self.towers)
        return cygrad.cat([first * second, third], 1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(64, 64)

    def forward(self, xs):
        state = cygrad.zeros(64, 64), cygrad.zeros(64, 64)
        for x in xs:
            state = self.cell(x, state)
        return state[0]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.rest = nn.MultiheadAttention(64, 4, batch_first=True), nn.Linear(64, 64)

    def forward(self, x):
        return self.rest(self.attention(x, x, x, need_weights=False)[0])


def perceptron():
    return nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


TRAININGS = {
    "perceptron": lambda: training(perceptron, numbers(64, 256)),
    "towers": lambda: training(Towers, numbers(64, 128)),
    "lstm": lambda: training(Recurrent, numbers(5, 64, 64)),
    "attention": lambda: training(Attention, numbers(8, 32, 64)),
}


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", TRAININGS)
def test_bits_are_those_of_eager(name, threads):
    eager, step, inputs = TRAININGS[name]()
    other, to_compile, _ = TRAININGS[name]()
    compiled = cygrad.compile(to_compile)
    for _ in range(40):
        cygrad.set_num_threads(1)
        expected = step(*inputs)
        cygrad.set_num_threads(threads)
        assert cygrad.equal(compiled(*inputs), expected)
    assert all(map(cygrad.equal, eager.parameters(), other.parameters()))
    assert explain(compiled).executions >= 38
    assert explain(compiled).parallel[0]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed, fast, all_sections):
    function = random_function(seed)
    inputs = [numbers(48, 48, seed=seed * 5 + place) for place in range(4)]
    compiled = cygrad.compile(function, mode="fast" if fast else "default")
    cygrad.set_num_threads(1)
    compiled(*inputs)
    # Gradients may have another layout than in eager, and mode="fast" sums in another order.
    expected = compiled(*inputs) if fast or seed % 2 else function(*inputs)
    for _ in range(30):
        cygrad.set_num_threads(3)
        for a, b in zip(compiled(*inputs), expected, strict=True):
            assert a is b is None or (cygrad.equal(a, b) and a.stride() == b.stride())
    assert explain(compiled).executions >= 30
    assert explain(compiled).parallel[0]


def test_several_python_threads_share_one_program():
    cygrad.set_num_threads(2)
    eager, inputs = Towers(), numbers(64, 128)
    compiled = cygrad.compile(eager)
    expected = [eager(inputs + number) for number in range(3)]
    given = [inputs + number for number in range(3)]
    compiled(inputs)

    def work(number):
        for _ in range(100):
            assert cygrad.equal(compiled(given[number]), expected[number])

    in_threads(3, work)
    assert explain(compiled).parallel[0]


# ---- parallel sections

def parallel_sections(function, *inputs):
    """The operations of a program that threads share."""
    compiled = cygrad.compile(function)
    for _ in range(3):
        compiled(*inputs)
    (program,), (sections,) = explain(compiled).programs, explain(compiled).parallel
    assert explain(compiled).executions
    return [[program[place] for place in section] for section in sections]


def test_a_backward_is_and_its_forward_is_not():
    _, step, inputs = TRAININGS["perceptron"]()
    (section,) = parallel_sections(step, *inputs)
    assert sum("mm(" in line or "matmul(" in line for line in section) == 5       # 3 of weights, 2 of inputs
    assert not any("linear(" in line or "Adam" in line for line in section)


def test_barriers_are_where_nothing_can_be_shared():
    choice = random.Random(0)
    for n in range(1, 40):
        before = [set(choice.sample(range(place), min(place, choice.randrange(3)))) | ({place - 1} & set(range(n)))
                  if choice.random() < 0.7 else set(choice.sample(range(place), min(place, 2))) for place in range(n)]
        leads = []                                # all that lead to each
        for needs in before:
            leads.append(needs.union(*(leads[need] for need in needs)))
        assert barriers(before) == [place for place in range(n) if len(leads[place]) == place and all(
            place in leads[other] for other in range(place + 1, n))]


def test_what_needs_each_other_is_not():
    a, b, c, d = (numbers(256, 256, seed=seed) for seed in range(4))

    def chain(a, b):
        for _ in range(6):
            a = a @ b
        return a

    def in_place(a, b):
        own = a * 2
        for _ in range(6):
            own += own @ b
        return own

    def through_views(a, b):
        own = a * 2
        for _ in range(6):
            own[:128] += own[128:] @ b
            own[128:] += own[:128] @ b
        return own * 1

    for function in (chain, in_place, through_views):
        assert not parallel_sections(function, a, b)
    pair, = parallel_sections(lambda a, b, c, d: (a @ b + 1, c @ d + 1), a, b, c, d)
    assert len(pair) == 4


def test_what_others_can_see_is_changed_in_its_turn():
    a, b, c, d, seen = (numbers(256, 256, seed=seed) for seed in range(5))

    def function(a, b, c, d, seen):
        first = a @ b
        seen += 1
        return first, c @ d

    assert not parallel_sections(function, a, b, c, d, seen)


def test_little_is_not():
    assert not parallel_sections(lambda a, b: (a @ b + 1, b @ a + 1), numbers(8, 8), numbers(8, 8))


def test_stretches_are_marked():
    a, b = numbers(256, 256), numbers(256, 256)
    compiled = cygrad.compile(lambda a, b: ((a @ b) + (b @ a)).tanh())
    compiled(a, b)
    lines = [line for line in str(explain(compiled)).splitlines() if "matmul" in line or "tanh" in line]
    assert [line[:4] for line in lines] == ["  | ", "  | ", "    "]


# ---- errors and memory

@pytest.mark.parametrize("threads", [1, 2])
def test_the_error_is_that_of_eager(threads, all_sections):
    cygrad.set_num_threads(threads)

    def function(table, rows, others, divisor):
        first = table @ table
        second = table[rows] @ table
        third = (table * 2)[others].sin()
        return first, second, third, (rows // divisor), first @ first

    compiled = cygrad.compile(function)
    table, good, bad = numbers(64, 64), cygrad.arange(8), cygrad.tensor([0, 64, 1, 2, 3, 4, 5, 6])
    worse, one, zero = bad * 2, cygrad.ones(8, dtype=cygrad.int64), cygrad.zeros(8, dtype=cygrad.int64)
    for _ in range(2):
        compiled(table, good, good, one)
    (section,) = explain(compiled).parallel[0]
    assert len(section) > 5
    for _ in range(50):
        for arguments in ((bad, good, one), (good, bad, one), (good, good, zero), (bad, worse, zero),
                          (worse, bad, one), (good, worse, zero)):
            with pytest.raises((IndexError, ZeroDivisionError)) as expected:
                function(table, *arguments)
            with pytest.raises(expected.type) as found:
                compiled(table, *arguments)
            assert str(found.value) == str(expected.value)
        assert all(map(cygrad.equal, compiled(table, good, good, one), function(table, good, good, one)))
    assert len(explain(compiled).programs) == 1


def test_memory_is_given_back():
    cygrad.set_num_threads(2)
    _, step, inputs = TRAININGS["lstm"]()
    step = cygrad.compile(step)
    for _ in range(10):
        step(*inputs)
    assert explain(step).parallel[0]
    gc.collect()                    # what earlier tests left, which the next call gives back
    step(*inputs)
    before = cygrad.memory_stats()
    for _ in range(200):
        step(*inputs)
    after = cygrad.memory_stats()
    assert {name: after[name] for name in before if "in_use" in name} == {
        name: before[name] for name in before if "in_use" in name}


PEAK = """
import sys
import cygrad
from cygrad.compiling import explain

def function(a, b):
    return sum((((a + number) @ b).sin() @ b).mean() for number in range(30))

a, b = cygrad.rand(256, 256), cygrad.rand(256, 256)
cygrad.set_num_threads(1)
compiled = cygrad.compile(function)
for _ in range(3):
    compiled(a, b)
assert explain(compiled).parallel[0]
alone = cygrad.memory_stats()["large_peak"]
cygrad.set_num_threads(2)
for _ in range(100):
    compiled(a, b)
print(alone, cygrad.memory_stats()["large_peak"])
"""


def test_what_dies_is_freed_before_the_end():
    alone, together = map(int, run_program(PEAK))
    assert together - alone <= 4 * 256 * 256 * 4
