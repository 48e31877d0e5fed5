"""Calls shared by the formulas of a node are executed once."""

from itertools import combinations

import numpy as np
import pytest

from cygrad._core.program.instruction import KINDS
from cygrad._core.table.layout import saved_layout
from cygrad._core.table.lowering import lower_formulas
from cygrad._core.table.signature import parse_row
from cygrad._core.testing import interop as machine

HELPERS = [
    {"call": "s_sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", "kernel": "sum"},
    {"call": "s_mean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", "kernel": "mean"},
    {"call": "s_max(Tensor self, int dim, bool keepdim=False)", "kernel": "max_dim",
     "results": ["values", "indices"], "differentiable": ["values"]},
]
NAMES = ("self", "other", "third")
x = np.linspace(-2, 3, 12).reshape(3, 4)
g = np.cos(np.arange(12.0)).reshape(3, 4)
total, largest, place = (g * x).sum(0), (g * x).max(0), (g * x).argmax(0)


@pytest.fixture(scope="module", autouse=True)
def helpers():
    for row in HELPERS:
        machine.register(row)
    yield
    for row in HELPERS:
        machine.forget(row["call"].partition("(")[0])


@pytest.fixture
def register():
    names = []

    def add(*formulas):
        row = {"call": "s_any(Tensor self, Tensor other, Tensor third, number p)", "kernel": "alias",
               **dict(zip(NAMES, formulas, strict=True))}
        names.append(machine.register(row).name)
        return names[-1]

    yield add
    for name in names:
        machine.forget(name)


def steps(*formulas):
    """Kinds of the instructions of each formula."""
    rows = {row["call"].partition("(")[0]: parse_row(row) for row in HELPERS}
    row = parse_row({"call": "f(Tensor self, Tensor other, Tensor third, number p)", "kernel": "alias",
                     **dict(zip(NAMES, formulas, strict=False))})
    codes = lower_formulas(row, saved_layout(row), rows.get)
    return [[KINDS[made.kind] for made in codes[name].instructions] for name in NAMES[:len(formulas)]]


# Formulas of three arguments that share a call, and their values.
SHARING = {
    "alone": (["s_sum(grad * self, (0,))"] * 3, lambda p: [total] * 3),
    "within others": (["s_sum(grad * self, (0,)) * 2", "s_mean(s_sum(grad * self, (0,)))",
                       "s_sum(grad * self, (0,)) - p"], lambda p: [total * 2, total.mean(), total - p]),
    "a shared one in a shared one": (["s_mean(s_sum(grad * self, (0,)))", "s_mean(s_sum(grad * self, (0,)))",
                                      "s_sum(grad * self, (0,))"], lambda p: [total.mean(), total.mean(), total]),
    "on one of two ways": (["s_sum(grad * self, (0,)) if p > 1 else grad", "s_sum(grad * self, (0,))",
                            "grad if p > 1 else -s_sum(grad * self, (0,))"],
                           lambda p: [total if p > 1 else g, total, g if p > 1 else -total]),
    "on both ways": (["s_sum(grad * self, (0,)) if p > 1 else -s_sum(grad * self, (0,))",
                      "s_sum(grad * self, (0,)) * p", "grad"],
                     lambda p: [total if p > 1 else -total, total * p, g]),
    "several results": (["s_max(grad * self, 0)[0]", "s_max(grad * self, 0)[1]",
                         "s_max(grad * self, 0)[0] + s_max(grad * self, 0)[1]"],
                        lambda p: [largest, place, largest + place]),
    "other results on each way": (["s_max(grad * self, 0)[0] if p > 1 else s_max(grad * self, 0)[1]",
                                   "s_max(grad * self, 0)[1] * 1.0", "grad"],
                                  lambda p: [largest if p > 1 else place, place, g]),
    "what is wanted": (["grad * wanted", "s_sum(grad * wanted, (0,))", "s_sum(grad * wanted, (0,))"], None),
}


@pytest.mark.parametrize("p", [0, 3])
@pytest.mark.parametrize("give_up", [False, True])
@pytest.mark.parametrize("case", SHARING)
def test_values_whichever_are_wanted(register, case, give_up, p):
    formulas, expected = SHARING[case]
    name = register(*formulas)
    values = {"self": x, "p": p}
    saved = [values[entry[0]] for entry in machine.describe(name)["saved"]]
    for count in (1, 2, 3):
        for needed in combinations(NAMES, count):
            found = machine.differentiate_arrays(name, saved, [g.copy()], needed, give_up_grads=give_up)
            bits = sum(1 << NAMES.index(argument) for argument in needed)
            theirs = expected(p) if expected else [g * bits, g.sum(0) * bits, g.sum(0) * bits]
            for argument in needed:
                np.testing.assert_allclose(found[argument], theirs[NAMES.index(argument)], rtol=1e-13)


def test_computed_once(register):
    name = register(*SHARING["alone"][0])
    found = machine.differentiate_arrays(name, [x], [g], NAMES)
    assert np.shares_memory(found["self"], found["other"])
    assert np.shares_memory(found["self"], found["third"])


def test_gradients_of_a_list_and_what_is_shared(register):
    machine.register({"call": "s_list(Tensor self, Tensor other)", "kernel": "alias", "list": True,
                      "self": "s_sum(grads[0] * wanted, 0)", "other": "s_sum(grads[0] * wanted, 0)"})
    try:
        found = machine.differentiate_arrays("s_list", [], [g, None], ["self", "other"])
    finally:
        machine.forget("s_list")
    np.testing.assert_array_equal(found["self"], (g * 3).sum(0))
    assert np.shares_memory(found["self"], found["other"])


def test_only_calls_are_shared():
    fused, call, there = "evaluate", "call", "jump_if_there"
    assert steps("s_sum(grad, 0)", "s_sum(grad, 1)") == [[call], [call]]
    assert steps("s_sum(grad, 0)", "s_sum(grad, 0)") == [[there, call], [there, call]]
    assert steps("s_sum(grad, 0) * other", "s_sum(grad, 0) * self") == [[there, call, fused]] * 2
    # Calls within a shared call are not shared separately.
    assert steps("s_mean(s_sum(grad, 0))", "s_mean(s_sum(grad, 0))") == [[there, call, call]] * 2
    assert steps("s_sum(grad, 0) + s_sum(grad, 0)", "grad") == [[call, fused], []]


def test_recorded_formulas_are_each_wanted_alone():
    machine.register({"call": "s_alone(Tensor self, Tensor other)", "kernel": "alias", "self": "grad * wanted",
                      "other": "grad * wanted"})
    try:
        found = [machine.recorded("s_alone", name)((g,), ())[0, 0] for name in ("self", "other")]
        assert found == [g[0, 0], 2 * g[0, 0]]
    finally:
        machine.forget("s_alone")


def test_errors_come_from_whoever_is_first(register):
    name = register("s_sum(grad, 7)", "s_sum(grad, 7)", "grad")
    for needed in (("self", "other"), ("other",)):
        with pytest.raises(IndexError):
            machine.differentiate_arrays(name, [], [g], needed)
