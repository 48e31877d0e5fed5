"""Formulas of several lines, with named values."""

import pytest

from cygrad._core.table.formula import Block, FormulaError, parse


def test_lines_are_definitions_and_an_expression():
    block = parse("title", "a = self * 2\nb = a + 1\na * b")
    assert isinstance(block, Block)
    assert [line.targets[0].id for line in block.definitions] == ["a", "b"]
    assert not isinstance(parse("title", "self * 2"), Block)


@pytest.mark.parametrize(("text", "message"), [
    ("a = 1", "last line"), ("a, b = 1, 2\na", "name = expression"), ("print(1)\n1", "name = expression"),
    ("a = = 1\na", "syntax"), ("", "last line"),
])
def test_other_lines_are_refused(text, message):
    with pytest.raises(FormulaError, match=message):
        parse("title", text)
