"""Types for the stub, and tables for the documentation, from the operator table."""

from pathlib import Path

from build_tools.mathematics import gradient_of, latex
from build_tools.operator_table import is_function, is_method, parameter_names, raw_rows, read_table, table_module

# Types as the stub names them, because `int` and `float` of the package are dtypes.
HINTS = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "Tensor|number": "Tensor | _Number", "number": "_Number",
    "int": "_int", "int[]": "_int | Sequence[_int]", "bool": "_bool", "float": "_float", "dtype": "_dtype",
    "str": "str",
}
FORMULA_COLUMNS = ("Operator", "Computes", "Gradients")
HELPER_COLUMNS = ("Helper", "What it is", "Formula")
COLUMNS = ("Operator", "Signature", "Differentiable in", "Dtypes", "In place", "`out=`", "At kinks")


def hint(argument) -> str:
    """Return the type hint of an argument."""
    kind = HINTS[table_module("signature").KINDS[argument.kind]]
    return hint_or_none(kind) if argument.optional else kind


def result_hint(row: dict) -> str:
    if len(row["results"]) > 1:
        return f"_{row['name']}_result"
    return "list[Tensor]" if row["list"] else "Tensor"


def types(ops_dir: Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """
    Return the types of functions and in-place forms, by parameter and "return", and classes of named tuples.
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
    """Return the table of operators in Markdown, one section per family."""
    lines = []
    for family, rows in read_table(ops_dir).items():
        public = [row for row in rows.values() if is_function(row) or is_method(row)]
        if public:
            lines += [f"## {title(family)}", "", line(COLUMNS), line(["---"] * len(COLUMNS))]
            lines += [line(cells(row)) for row in public] + [""]
    return "\n".join(lines)


def derivatives(ops_dir: Path) -> str:
    """Return the tables of formulas in Markdown, one section per family: result and gradients."""
    lines = []
    for family, rows in read_table(ops_dir).items():
        found = [line(formula_cells(row)) for row in rows.values() if row["formulas"]]
        if found:
            lines += [f"## {title(family)}", "", line(FORMULA_COLUMNS), line(["---"] * 3), *found, ""]
    lines += ["## Helpers", "", line(HELPER_COLUMNS), line(["---"] * len(HELPER_COLUMNS))]
    for path in sorted(ops_dir.glob("*.toml")):
        for name, row in raw_rows(path).items():
            if "helper" in row:
                doc = " ".join(row["doc"].split()).replace("<", "&lt;").replace("$", "\\$").replace("*", "\\*")
                lines.append(line((f"`{name}`", doc, f"${latex(row['formula'], latex(row['helper']))}$")))
    return "\n".join(lines) + "\n"


def formula_cells(row: dict) -> list[str]:
    """Return name, formula if any, and the gradient of each argument."""
    summary = " ".join(row["row"].get("doc", "").strip().partition("\n\n")[0].split()).replace("``", "`")
    computes = f"$y = {latex(row['forward'])}$" if is_formula(row["forward"]) else summary
    return [function_link(row), computes, " <br> ".join(f"${text}$" for text in gradients(row))]


def is_formula(forward) -> bool:
    return forward not in (None, "primitive")


def gradients(row: dict) -> list[str]:
    """Return the gradient of each differentiable argument in LaTeX."""
    return [latex(row["row"].get(name, text), gradient_of(name)) for name, text in row["formulas"].items()]


def function_link(row: dict) -> str:
    """Return the name of an operator, linked to the page of its function, if any."""
    name = row["row"].get("name", row["name"])
    return f"[`{name}`](reference/cygrad.{name}.rst)" if is_function(row) else f"`{name}`"


def title(family: str) -> str:
    return family.replace("_", " ").capitalize()


def kinks(ops_dir: Path) -> str:
    """Return the table of gradients at points without a derivative, in Markdown."""
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
    names = [function_link(row), *(f"`{name}`" for name in written.get("alias", []))]
    differentiable = ", ".join(f"`{name}`" for name in row["formulas"]) or "none"
    return [", ".join(names), f"`{row['call']}`", differentiable, written.get("dtypes", ""),
            "yes" if row["inplace"] else "", "yes" if row["out"] else "", written.get("kink", "")]


def line(texts) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
