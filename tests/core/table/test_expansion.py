"""Expansion of helpers and absent gradients in formulas."""

import ast
import itertools

import pytest

from cygrad._core.table.expansion import expand, read_helpers
from cygrad._core.table.signature import RowError, parse_row

HELPERS = read_helpers({
    "twice": {"helper": "twice(x)", "formula": "x + x", "doc": "2 x"},
    "shifted": {"helper": "shifted(x, by)", "formula": "moved = twice(x) + by\nmoved * moved", "doc": "(2 x + by)^2"},
    "size_of": {"helper": "size_of(x)", "formula": "x.numel() * x.ndim", "doc": "attributes alone"},
})


def evaluated(text, **names):
    """The value of a formula whose names are Python numbers, or None."""
    *definitions, last = expand(text, [name for name in names if name.startswith("grad")], HELPERS, "test").splitlines()
    for line in definitions:
        exec(line, {}, names)
    return eval(last, {}, names)


@pytest.mark.parametrize(("text", "value"), [
    ("twice(a)", 6), ("twice(a * a)", 18), ("twice(twice(a))", 12), ("shifted(a, b)", 121),
    ("shifted(a + b, a * b)", 961), ("c = twice(a)\nshifted(c, 1) + twice(b)", 179), ("a + b", 8),
])
def test_helpers(text, value):
    assert evaluated(text, a=3, b=5) == value


def test_an_argument_that_is_used_twice_is_computed_once():
    written = expand("twice(exp(a))", [], HELPERS, "test")
    assert written.count("exp") == 1
    assert expand("size_of(exp(a))", [], HELPERS, "test").count("exp") == 2     # only looked at: nothing is computed


def test_formulas_without_helpers_stay_as_they_are():
    text = "grad *  self"
    assert expand(text, [], HELPERS, "test") is text


@pytest.mark.parametrize("text", [
    "grad_a * 2 + grad_b * 3", "grad_a * 2 - grad_b * 3", "grad_a - (grad_b + grad_c)",
    "grad_a * k + (grad_b - grad_c * k)",
    "s = grad_a * k + grad_b\ns * 2 - grad_c", "twice(grad_a) + grad_b", "-(grad_a + grad_b) + grad_c",
    "k + grad_a * 2 - grad_b", "2 * (grad_a - grad_b * k) + grad_c", "grad_a if k == 7 else grad_b * 2",
])
def test_absent_gradients_are_like_zeros(text):
    for mask in itertools.product([False, True], repeat=3):
        given = dict(zip(("grad_a", "grad_b", "grad_c"), (11, 13, 17), strict=True))
        zeros = {name: value if here else 0 for (name, value), here in zip(given.items(), mask, strict=True)}
        found = evaluated(text, k=7, **{name: value or None for name, value in zeros.items()})
        assert (found or 0) == evaluated(text, k=7, **zeros)


def test_a_sum_of_absent_terms_is_absent():
    assert evaluated("grad_a * 2 + grad_b", grad_a=None, grad_b=None) is None
    assert evaluated("s = grad_a - grad_b\ns * 2", grad_a=None, grad_b=None) is None


def test_who_asks_whether_a_gradient_is_absent_takes_care_of_it():
    text = "1 if grad_a is None else grad_a * 2"
    assert ast.dump(ast.parse(expand(text, ["grad_a"], HELPERS, "test"))) == ast.dump(ast.parse(text))


@pytest.mark.parametrize(("row", "message"), [
    ({"helper": "f(x)", "formula": "x"}, "keys"), ({"helper": "g(x)", "formula": "x", "doc": ""}, "helper"),
    ({"helper": "f(x=1)", "formula": "x", "doc": ""}, "helper"),
    ({"helper": "f(x)", "formula": "x +", "doc": ""}, "syntax"),
])
def test_helpers_that_are_none(row, message):
    with pytest.raises(RowError, match=message):
        read_helpers({"f": row})


def test_calls_that_do_not_fit():
    with pytest.raises(RowError, match=r"takes \(x, by\)"):
        parse_row({"call": "f(Tensor self)", "self": "shifted(grad)"}, "f", HELPERS)
