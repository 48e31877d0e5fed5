"""Constants shared by the Python and Cython code of the table."""

import re
from pathlib import Path

import pytest

from cygrad._core.program import expression, instruction
from cygrad._core.table import formula, layout, signature

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
    ("program/executor.pxd", "instruction_kind_t", instruction.KINDS),
    ("program/executor.pxd", "attribute_t", tuple(instruction.ATTRIBUTE)),
    ("program/executor.pxd", "scalar_t", tuple(formula.SCALARS)),
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
    ("elementwise/expression.pxd", "MAX_REGISTERS", expression.MAX_REGISTERS),
    ("elementwise/expression.pxd", "MAX_INPUTS", expression.MAX_INPUTS),
    ("program/executor.pxd", "MAX_OPERANDS", instruction.MAX_OPERANDS),
    ("program/executor.pxd", "MAX_TEMPORARIES", instruction.MAX_TEMPORARIES),
    ("program/executor.pxd", "MAX_GRADS", instruction.MAX_GRADS),
    ("program/executor.pxd", "WANTED", layout.WANTED),
    ("table/operator.pxd", "MAX_ARGUMENTS", signature.MAX_ARGUMENTS),
    ("program/executor.pxd", "MAX_RESULTS", signature.MAX_RESULTS),
    *(("program/executor.pxd", name, getattr(instruction, name))
      for name in ("SPACE_SHIFT", "FINAL", "CONJUGATE", "IN_PLACE", "INTO", "UNPACK")),
])
def test_limits_agree(contract, name, value):
    assert limit(contract, name) == value


@pytest.mark.parametrize(("space", "number"), [
    ("SAVED_SPACE", instruction.SAVED), ("GRADS_SPACE", instruction.GRADS),
    ("TEMPORARY_SPACE", instruction.TEMPORARIES), ("CONSTANT_SPACE", instruction.CONSTANTS),
    ("LIST_SPACE", instruction.LISTS),
])
def test_spaces_have_one_order(space, number):
    spaces = re.findall(r"\b(\w+_SPACE)\b", (CORE / "program/executor.pxd").read_text())
    assert spaces.index(space) == number
