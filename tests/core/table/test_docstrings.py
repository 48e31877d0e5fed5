"""Completion of docstrings: order of parameters and sections."""

import inspect

import cygrad
from build_tools.operator_docs import completed
from cygrad._core.table.docstrings import documented

FAMILY = {"low, high": "int\n    The range."}
KINDS = ("Tensor", "Tensor[]", "Tensor|number", "number", "int", "int[]", "bool", "float", "dtype", "str")


def test_parameters_and_result_are_added():
    @documented(FAMILY)
    def function(input, low, high, step, *, out=None):
        """
        Numbers.

        Parameters
        ----------
        step : int

        Examples
        --------
        >>> 1
        1
        """

    assert inspect.getdoc(function).splitlines() == [
        "Numbers.", "", "Parameters", "----------", "input : Tensor", "step : int", "low, high : int",
        "    The range.", "out : Tensor, optional",
        "    Tensor that the result is written to.", "", "Returns", "-------", "Tensor", "",
        "Examples", "--------", ">>> 1", "1"]


def test_what_is_written_stays():
    @documented(FAMILY, returns="Tensor\n    A view.")
    def function(first, low, out):
        """Numbers.

        Parameters
        ----------
        first, out : Tensor
            Both.

        Returns
        -------
        int
        """

    doc = inspect.getdoc(function)
    assert doc.count("out") == 1
    assert "Returns\n-------\nint" in doc
    assert "view" not in doc
    assert "low : int\n    The range." in doc


def test_a_summary_alone():
    @documented()
    def function(generator=None):
        """Numbers."""

    assert inspect.getdoc(function).endswith("Returns\n-------\nTensor")
    assert "Default: the default one." in function.__doc__


def test_variable_parameters():
    doc = inspect.getdoc(cygrad.zeros)
    assert doc.count("size") == 1
    assert doc.index("*args, size") < doc.index("dtype") < doc.index("out")


def row(doc, **keys):
    argument = type("Argument", (), {"name": "self", "kind": 0, "required": True, "default": None})
    return {"row": {"doc": doc, **keys}, "call": "f(Tensor self)", "arguments": [argument], "out": True,
            "dtypes": ("bool", "integer", "real")}


def test_docstrings_of_operators():
    assert completed(row("For formulas."), KINDS) == "For formulas."
    text = completed(row("Sum.\n\nExamples\n--------\n>>> 1", returns="Of one shape."), KINDS)
    assert [line for line in text.splitlines() if line and line[0].isupper()] == [
        "Sum.", "Parameters", "Returns", "Tensor", "Raises", "RuntimeError", "Examples"]
    assert "input : Tensor\n    Values of any shape.\nout : Tensor, optional\n" in text
