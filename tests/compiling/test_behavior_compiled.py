"""
Run the tests of guarantees as compiled functions.

What such a test asserts lets elements go to Python, so most of them end their recording somewhere: all that comes
before is noted, and nothing of it may be seen. Each is called three times, so that what is noted wholly is replayed.
"""

import importlib.util
import inspect
import itertools
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

import cygrad
from cygrad.compiling import explain

# They weigh memory while they run, which a recording keeps until its end (docs/guide/compile.md).
WEIGHING = {"test_freed_node_by_node", "test_memory_goes_with_the_graph"}
MARKED = type(pytest.param())
OTHERS = {"skip", "skipif", "slow", "resident"}


def parameters_of(function):
    """Keyword arguments of all cases of a test."""
    choices = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            choices.append([dict(zip(names, value.values if isinstance(value, MARKED) else value if len(names) > 1
                                     else (value,), strict=True)) for value in values])
    for chosen in itertools.product(*choices):
        yield {name: value for part in chosen for name, value in part.items()}


def as_written(path):
    """The module without pytest's own code in its assertions, which could not be recorded."""
    name = f"tests.behavior.as_written_{path.stem}"
    spec = importlib.util.spec_from_loader(name, SourceFileLoader(name, str(path)))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def promises():
    """Return the tests without fixtures, except those of threads, which affect the whole process."""
    for path in sorted(Path(__file__).parents[1].glob("behavior/test_*.py")):
        if path.stem.startswith("test_threads"):
            continue
        module = as_written(path)
        of_module = getattr(module, "pytestmark", [])
        for name, function in list(vars(module).items()):
            every = [*(of_module if isinstance(of_module, list) else [of_module]), *getattr(function, "pytestmark", [])]
            marks = {mark.name for mark in every}
            if (name.startswith("test_") and inspect.isfunction(function) and function.__module__ == module.__name__
                    and not marks & OTHERS and name not in WEIGHING):
                for number, given in enumerate(parameters_of(function)):
                    if set(inspect.signature(function).parameters) == set(given):
                        yield pytest.param(function, given, id=f"{path.stem}-{name}-{number}", marks=[
                            mark for mark in every if mark.name == "filterwarnings"])


@pytest.mark.parametrize(("function", "given"), list(promises()))
def test_promise(function, given):
    step = cygrad.compile(function)
    for _ in range(3):
        step(**given)


def test_each_runs_as_a_program_or_says_why_not():
    """Most look at elements, or read what no guard compares, such as `grad_fn` and `_version`."""
    steps = []
    for case in promises():
        function, given = case.values
        if re.search("test_(hooks|inplace|modes)", function.__module__) and not case.marks:
            steps.append(cygrad.compile(function))
            for _ in range(2):
                steps[-1](**given)
    assert any(explain(step).executions > 0 for step in steps)
    assert all(explain(step).executions > 0 or explain(step).reasons for step in steps)
