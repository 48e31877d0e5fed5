"""A page for each function of `cygrad` that no other page of the reference has, with the derivative from the table."""

from pathlib import Path
from re import findall

import cygrad
from build_tools.files import write_if_changed
from build_tools.operator_table import is_function, read_table, spellings
from build_tools.table_documents import gradients, line

HEAD = """# Functions

Every function of `cygrad`, each with a page of its own; those of modules (`cygrad.nn`, `cygrad.optim`, ...) are in the
{doc}`reference </reference>`. Most are methods of tensors too, and `name_` is the form in place.

"""
PAGE = """# {name}

```{{eval-rst}}
.. autofunction:: cygrad.{name}{options}
```
"""


def summary(name: str) -> str:
    """The first sentence of a docstring, on one line."""
    return " ".join((getattr(cygrad, name).__doc__ or "").strip().partition("\n\n")[0].split()).replace("``", "`")


def homes(rows: dict[str, dict]) -> dict[str, str]:
    """Name of a function -> the page that it is on: aliases and forms in place are on that of their operator."""
    names = [name for name, value in vars(cygrad).items()
             if not name.startswith("_") and callable(value) and not isinstance(value, (type, cygrad.dtype))]
    found = {name: row["row"].get("name", row["name"]) for row in rows.values() for name in spellings(row)}
    first = {}
    for name in sorted(names, key=lambda name: (name.endswith("_"), name not in found, name)):
        plain = name.rstrip("_")
        same = first.setdefault(id(getattr(cygrad, name)), name)
        first[name] = found.get(name) or (first[plain] if name != plain and plain in first else same)
    return {name: first[name] for name in names}


def page(name: str, row: dict | None, others: list[str], described: set[str]) -> str:
    """One function: its docstring, other names, and what the table says of its derivative."""
    options = "\n   :no-index:" if f"cygrad.{name}" in described else ""
    lines = [PAGE.format(name=name, options=options)]
    if others:
        lines += ["Also: " + ", ".join(f"`{other}`" for other in sorted(others)) + ".", ""]
    if row is not None and row["formulas"]:
        lines += ["## Gradients", "", "From the operator table; {doc}`/generated/derivatives` explains the signs.", ""]
        for text in gradients(row):
            lines += ["```{math}", text, "```", ""]
        if "kink" in row["row"]:
            lines += [f"Where it is not differentiable: {row['row']['kink']}.", ""]
    return "\n".join(lines)


def write_function_pages(root: Path) -> None:
    """Write docs/generated/functions and the list of its pages."""
    folder = root / "docs" / "generated" / "functions"
    table = {name: row for rows in read_table(root / "cygrad/_core/table/ops").values() for name, row in rows.items()}
    table = {name: row for name, row in table.items() if is_function(row)}
    described = set(findall(r"auto\w+:: (\S+)", (root / "docs" / "reference.md").read_text()))
    by_name = {row["row"].get("name", row["name"]): row for row in table.values()}
    others = {}
    for name, home in homes(table).items():
        others.setdefault(home, []).append(name)
    lines = [HEAD, line(("Function", "What it computes")), line(("---", "---"))]
    pages = []
    for home, names in sorted(others.items()):
        if home not in by_name and f"cygrad.{home}" in described:
            lines.append(line((f"{{py:obj}}`cygrad.{home}`", summary(home))))
            continue
        pages.append(home)
        names = [name for name in names if name != home]
        write_if_changed(folder / f"{home}.md", page(home, by_name.get(home), names, described))
        lines.append(line((", ".join([f"[`{home}`](functions/{home}.md)", *(f"`{name}`" for name in sorted(names))]),
                           summary(home))))
    for path in folder.glob("*.md"):
        if path.stem not in pages:
            path.unlink()
    lines += ["", "```{toctree}", ":hidden:", ":maxdepth: 1", "", *(f"functions/{name}" for name in pages), "```", ""]
    write_if_changed(folder.parent / "functions.md", "\n".join(lines))
