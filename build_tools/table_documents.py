"""What else comes from the operator table: the type stub and the tables of operators and kinks in the documentation."""

from pathlib import Path

from build_tools.generate import (
    core_module,
    is_function,
    is_inplace_method,
    is_method,
    parameter_names,
    parameters,
    read_table,
)

HINTS = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "Tensor|number": "Tensor | Number", "number": "Number",
    "int": "int", "int[]": "int | Sequence[int]", "bool": "bool", "float": "float", "dtype": "dtype", "str": "str",
}
STUB_HEADER = '''"""Types of the operators: generated from the operator table."""

from collections.abc import Sequence
from typing import NamedTuple

from cygrad import dtype

Number = bool | int | float | complex
'''
COLUMNS = ("Operator", "Signature", "Differentiable in", "Dtypes", "In place", "`out=`", "At kinks")


def hint(argument) -> str:
    """The type hint of an argument."""
    kind = HINTS[core_module("signature").KINDS[argument.kind]]
    return f"{kind} | None" if argument.optional else kind


def result_hint(row: dict) -> str:
    if len(row["results"]) > 1:
        return f"_{row['name']}_result"
    return "list[Tensor]" if row["list"] else "Tensor"


def stubs(ops_dir: Path) -> str:
    """The text of a .pyi with the functions and the methods of Tensor that come from the table."""
    rows = [row for family in read_table(ops_dir).values() for row in family.values()]
    tuples, functions, methods = [], [], []
    for row in rows:
        if len(row["results"]) > 1:
            fields = "\n".join(f"    {name}: Tensor" for name in row["results"])
            tuples.append(f"class {result_hint(row)}(NamedTuple):\n{fields}\n")
        names = parameter_names(row)
        result = result_hint(row)
        for name in (row["row"].get("name", row["name"]), *row["row"].get("alias", [])):
            if is_function(row):
                functions.append(f"def {name}({parameters(row, row['out'], names, hint)}) -> {result}: ...")
            if is_method(row):
                own = parameters(row, row["out"], ["self", *names[1:]], hint)
                methods.append(f"    def {name}({own}) -> {result}: ...")
            if is_inplace_method(row):
                own = parameters(row, False, ["self", *names[1:]], hint)
                methods.append(f"    def {name}_({own}) -> Tensor: ...")
    body = "\n".join(methods) or "    ..."
    return "\n".join([STUB_HEADER, *tuples, f"class Tensor:\n{body}\n", *functions]) + "\n"


def documentation(ops_dir: Path) -> str:
    """The table of operators in Markdown, one section for each family."""
    lines = []
    for family, rows in read_table(ops_dir).items():
        public = [row for row in rows.values() if is_function(row) or is_method(row)]
        if public:
            lines += [f"## {family.replace('_', ' ').capitalize()}", "", line(COLUMNS), line(["---"] * len(COLUMNS))]
            lines += [line(cells(row)) for row in public] + [""]
    return "\n".join(lines)


def kinks(ops_dir: Path) -> str:
    """The table of gradients where operators are not differentiable, in Markdown."""
    lines = [line(("Operator", "What it computes", "Gradient")), line(("---",) * 3)]
    for rows in read_table(ops_dir).values():
        for row in rows.values():
            written = row["row"]
            if "kink" in written:
                summary = " ".join(written.get("doc", "").strip().partition("\n\n")[0].split()).replace("``", "`")
                lines.append(line((f"`{written.get('name', row['name'])}`", summary, written["kink"])))
    return "\n".join(lines) + "\n"


def cells(row: dict) -> list[str]:
    written = row["row"]
    names = [f"`{name}`" for name in (written.get("name", row["name"]), *written.get("alias", []))]
    differentiable = ", ".join(f"`{name}`" for name in row["formulas"]) or "none"
    return [", ".join(names), f"`{row['call']}`", differentiable, written.get("dtypes", ""),
            "yes" if row["inplace"] else "", "yes" if row["out"] else "", written.get("kink", "")]


def line(texts) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
