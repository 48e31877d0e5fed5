"""What else comes from the operator table: types for the stub; tables of operators and kinks for the documentation."""

from pathlib import Path

from build_tools.generate import (
    is_function,
    is_method,
    parameter_names,
    read_table,
    table_module,
)

# As the stub names them: in the namespace of the package, `int` and the like are dtypes.
HINTS = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "Tensor|number": "Tensor | _Number", "number": "_Number",
    "int": "_int", "int[]": "_int | Sequence[_int]", "bool": "_bool", "float": "_float", "dtype": "_dtype",
    "str": "str",
}
COLUMNS = ("Operator", "Signature", "Differentiable in", "Dtypes", "In place", "`out=`", "At kinks")


def hint(argument) -> str:
    """The type hint of an argument."""
    kind = HINTS[table_module("signature").KINDS[argument.kind]]
    return hint_or_none(kind) if argument.optional else kind


def result_hint(row: dict) -> str:
    if len(row["results"]) > 1:
        return f"_{row['name']}_result"
    return "list[Tensor]" if row["list"] else "Tensor"


def types(ops_dir: Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """
    What the stub is told by the table.

    The types of each function and in-place form: those of its parameters by name, that of its result as "return". And
    the named tuples among the results, as classes.
    """
    hints, tuples = {}, []
    for row in (row for family in read_table(ops_dir).values() for row in family.values()):
        if len(row["results"]) > 1:
            fields = "\n".join(f"    {name}: Tensor" for name in row["results"])
            tuples.append(f"class {result_hint(row)}(NamedTuple):\n{fields}\n")
        own = dict(zip(parameter_names(row), map(hint, row["arguments"]), strict=True))
        if "dim" in own:
            own["axis"] = hint_or_none(own["dim"])
        if row["row"].get("variadic"):
            own["sizes"] = "_int | Sequence[_int]"
        own |= {"keepdims": "_bool | None", "out": "Tensor | None"}
        for name in (row["row"].get("name", row["name"]), *row["row"].get("alias", [])):
            hints[name] = {**own, "return": result_hint(row)}
            hints[f"{name}_"] = {**own, "return": "Tensor"}
    return hints, tuples


def hint_or_none(kind: str) -> str:
    return kind if kind.endswith("None") else f"{kind} | None"


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
