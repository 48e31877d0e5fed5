"""Random programs are bit-identical under `compile`: results, gradients, in-place operations."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import cygrad
from cygrad.compiling import explain
from tests.programs import elementwise, reductions, shapes
from tests.programs.machine import Machine
from tests.programs.refusal import Refusal
from tests.programs.writer import nothing, write

pytestmark = pytest.mark.slow

PROGRAMS = int(os.environ.get("CYGRAD_PROGRAMS", "150"))
WRITERS = (nothing, *elementwise.WRITERS, *reductions.WRITERS, *shapes.WRITERS)
DRAFTS = st.lists(st.tuples(st.sampled_from(WRITERS), st.tuples(*[st.integers(0, 255)] * 6)), min_size=4, max_size=24)
LEAVES = 2                        # the first values are arguments


def kept(result):
    """Yield the tensors in the result of a line."""
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in kept(item)]
    return [result] if isinstance(result, cygrad.Tensor) else []


def function_of(lines):
    """A function of the leaves that runs the lines and returns copies of all floating values."""
    body = "".join(f"    v += kept({line})\n" for line in lines)
    text = f"def program(*leaves):\n    v = list(leaves)\n{body}    return [x * 1 for x in v if x.is_floating_point()]"
    space = {"t": cygrad, "F": cygrad.nn.functional, "kept": kept, "inf": float("inf"), "nan": float("nan")}
    exec(text, space)
    return space["program"], text


def written(drafts):
    """The lines of a program that did not fail, and so changed anything; and the leaves."""
    machine = Machine(cygrad)
    lines = write(drafts, machine)
    notes = machine.notes[LEAVES:len(lines)]
    assert [title for title, _ in notes] == lines[LEAVES:]
    return [line for line, facts in notes if not isinstance(facts["outcome"], Refusal)], lines[:LEAVES]


def leaves_of(lines, turn):
    machine = Machine(cygrad)
    for line in lines:
        machine.run(line)
    return [(value.detach() * (1 + turn / 8) if value.is_floating_point() else value.detach().clone())
            .requires_grad_(value.requires_grad) for value in machine.values]


def gradients(results, leaves):
    """Those of the sum of all results that have a history."""
    roots, wanted = ([x for x in part if x.requires_grad] for part in (results, leaves))
    return cygrad.autograd.grad([root.sum() for root in roots], wanted, allow_unused=True) if roots and wanted else ()


def outcome(function, leaves, outside):
    """Values, gradients, and the leaves afterwards; or the error."""
    leaves = [leaf.clone() if turn % 2 else leaf for turn, leaf in enumerate(leaves)]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = function(*leaves)
            found = [*results, *(gradients(results, leaves) if outside else ()), *leaves]
            return [None if part is None else (part.detach().numpy(), part.requires_grad) for part in found]
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return str(error)


def same(expected, found):
    if isinstance(expected, str) or isinstance(found, str):
        return expected == found
    return len(expected) == len(found) and all(
        a is b or (a is not None and b is not None and a[1] == b[1] and a[0].dtype == b[0].dtype
                   and np.array_equal(a[0], b[0], equal_nan=a[0].dtype.kind in "fc"))
        for a, b in zip(expected, found, strict=True))


@settings(max_examples=PROGRAMS, derandomize="CYGRAD_PROGRAMS" not in os.environ, deadline=None, database=None,
          suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink))
@pytest.mark.parametrize("outside", [True, False], ids=["backward outside", "backward inside"])
@given(drafts=DRAFTS)
def test_random_programs_compiled(outside, drafts):
    lines, first = written(drafts)
    if not lines or any("m." in line for line in lines):       # what the machine does is no operation
        return
    program, text = function_of(lines)

    def function(*leaves):
        results = program(*leaves)
        return results if outside else [*(x.detach() for x in results), *gradients(results, leaves)]

    compiled = cygrad.compile(function)
    for turn in range(3):
        expected = outcome(function, leaves_of(first, turn), outside)
        found = outcome(compiled, leaves_of(first, turn), outside)
        assert same(expected, found), f"in turn {turn}\n{text}\nof {first}\n{explain(compiled)}\n{expected}\n{found}"
    event("replayed" if explain(compiled).executions else (explain(compiled).reasons or ["it raised an error"])[-1])
