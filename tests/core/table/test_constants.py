"""Constants shared by the Python and Cython code of the table."""

import re
from pathlib import Path

import pytest

from cygrad._core.table import expression, formula, layout, lowering, signature

CORE = Path(__file__).resolve().parents[3] / "cygrad" / "_core"


def enum(contract, name):
    """The names of an enum of a contract, in order."""
    text = (CORE / contract).read_text()
    body = re.search(rf"ctypedef enum {name}:\n((?:    [^\n]*\n|\n)*)", text).group(1)
    return [re.match(r"\w+", line.strip()).group().lower().rstrip("_")
            for line in body.splitlines() if line.strip() and not line.strip().startswith("#")]


def limit(contract, name):
    return int(re.search(rf"\b{name} = (\d+)", (CORE / contract).read_text()).group(1))


@pytest.mark.parametrize(("contract", "name", "names"), [
    ("table/interpreter.pxd", "step_kind_t", lowering.KINDS),
    ("table/interpreter.pxd", "attribute_t", tuple(lowering.ATTRIBUTE)),
    ("table/interpreter.pxd", "scalar_t", tuple(formula.SCALARS)),
    ("table/operator.pxd", "argument_kind_t",
     ("tensor", "tensors", "operand", "number", "int", "ints", "bool", "float", "dtype", "string")),
])
def test_enums_have_one_order(contract, name, names):
    found = [word.removesuffix("_of") for word in enum(contract, name)]
    assert found == list(names)


def test_kinds_of_arguments():
    assert [signature.KINDS[getattr(signature, name)] for name in ("TENSOR", "TENSORS", "INTS", "STRING")] == [
        "Tensor", "Tensor[]", "int[]", "str"]
    assert len(signature.KINDS) == len(enum("table/operator.pxd", "argument_kind_t"))


@pytest.mark.parametrize(("contract", "name", "value"), [
    ("elementwise/program.pxd", "MAX_REGISTERS", expression.MAX_REGISTERS),
    ("elementwise/program.pxd", "MAX_INPUTS", expression.MAX_INPUTS),
    ("table/interpreter.pxd", "MAX_STEP_INPUTS", lowering.MAX_STEP_INPUTS),
    ("table/interpreter.pxd", "MAX_TEMPORARIES", lowering.MAX_TEMPORARIES),
    ("table/interpreter.pxd", "MAX_GRADS", lowering.MAX_GRADS),
    ("table/interpreter.pxd", "WANTED", layout.WANTED),
    ("table/operator.pxd", "MAX_ARGUMENTS", signature.MAX_ARGUMENTS),
    ("table/operator.pxd", "MAX_RESULTS", signature.MAX_RESULTS),
])
def test_limits_agree(contract, name, value):
    assert limit(contract, name) == value


@pytest.mark.parametrize(("space", "number"), [
    ("SAVED_SPACE", lowering.SAVED), ("GRADS_SPACE", lowering.GRADS), ("TEMPORARY_SPACE", lowering.TEMPORARIES),
    ("CONSTANT_SPACE", lowering.CONSTANTS),
])
def test_spaces_have_one_order(space, number):
    spaces = re.findall(r"\b(\w+_SPACE)\b", (CORE / "table/interpreter.pxd").read_text())
    assert spaces.index(space) == number
