"""Tasks with dependencies run once, after them, on any number of threads."""

import random

import pytest

from cygrad._core.compiler.executable import ParallelSection
from cygrad._core.testing import probes
from cygrad._core.threads.parallel import set_num_threads

pytestmark = pytest.mark.usefixtures("keep_number_of_threads")


def graph(seed, n):
    """For each task some earlier ones."""
    numbers = random.Random(seed)
    return [sorted(numbers.sample(range(place), min(place, numbers.randrange(4)))) for place in range(n)]


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 300])
def test_each_runs_once_after_what_it_needs(n, number):
    set_num_threads(number)
    for seed in range(20):
        needs = graph(seed, n)
        noted = probes.task_run(ParallelSection(0, needs))
        assert all(runs == 1 for runs, *_ in noted)
        for (_, begin, *_), own in zip(noted, needs, strict=True):
            assert all(noted[need][2] < begin for need in own)


def test_one_thread_runs_them_in_order():
    set_num_threads(1)
    noted = probes.task_run(ParallelSection(0, graph(0, 200)))
    assert [begin for _, begin, *_ in noted] == list(range(1, 400, 2))


def test_those_that_need_nothing_of_each_other_run_at_the_same_time():
    set_num_threads(2)
    section = ParallelSection(0, [[], *([[0]] * 40), list(range(1, 41))])
    for _ in range(50):                           # the worker may find no core at first
        noted = probes.task_run(section, sleep=True)
        if len({thread for *_, thread in noted}) == 2:
            break
    else:
        pytest.fail("no other thread has come")
    assert any(first[1] < second[1] < first[2] for first in noted for second in noted)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_the_first_that_fails_is_told_and_all_before_it_have_run(number):
    set_num_threads(number)
    for seed in range(50):
        needs = graph(seed, 100)
        fails = random.Random(seed).sample(range(100), 3)
        with pytest.raises(RuntimeError, match=f"^task {min(fails)}$"):
            probes.task_run(ParallelSection(0, needs), fails)
