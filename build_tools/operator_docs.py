"""Docstrings of operators, completed from their rows."""

import re

# Default descriptions of parameters by type and name; a row may override them.
MEANINGS = {
    "Tensor input": "Values of any shape.",
    "Tensor or number input": "Values of any shape.",
    "Tensor other": "Values; the two shapes are broadcast.",
    "Tensor or number other": "Values; the two shapes are broadcast.",
    "int dim": "Dimension; negative ones count from the end.",
    "int or sequence of int dim": "Dimensions to reduce; all if not given.",
    "bool keepdim": "Keep the reduced dimensions with size 1.",
    "dtype dtype": "Type of the result; the input is converted before the computation.",
}
TYPES = {"Tensor|number": "Tensor or number", "int[]": "int or sequence of int"}
TITLES = ("Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples")
TITLE = re.compile(rf"^({'|'.join(TITLES)})\n-+\n", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:\n]*?)(?: : .*)?\n(?:[ ].*\n)*", re.MULTILINE)


def completed(row: dict, kinds: tuple[str, ...]) -> str:
    """Return the docstring of a parsed row; internal ones, without examples, are unchanged."""
    doc = row["row"].get("doc", f"Operator `{row['call']}`.").strip()
    summary, *parts = TITLE.split(doc)
    sections = {title: text.strip("\n") for title, text in zip(parts[::2], parts[1::2], strict=True)}
    if "Examples" not in sections:
        return doc
    sections["Parameters"] = parameters(row, kinds, sections.get("Parameters", ""))
    if "returns" in row["row"]:
        sections["Returns"] = f"Tensor\n    {row['row']['returns']}"
    if row["dtypes"] == ("bool", "integer", "real"):
        sections.setdefault("Raises", "RuntimeError\n    For complex tensors.")
    text = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in TITLES if sections.get(title)]
    return "\n\n".join([summary.strip(), *text])


def parameters(row: dict, kinds: tuple[str, ...], written: str) -> str:
    """Return the section on parameters, in the order of the signature."""
    own = {name: entry for entry in ENTRY.finditer(written + "\n") for name in entry[1].split(", ")}
    entries = []
    for argument in row["arguments"]:
        name = "input" if argument.name == "self" else argument.name
        kind = TYPES.get(kinds[argument.kind], kinds[argument.kind])
        if name in own:
            entries.append(own[name][0])
        elif f"{kind} {name}" in MEANINGS:
            default = "" if argument.required else ", optional" if argument.default is None else (
                f", default {argument.default}")
            entries.append(f"{name} : {kind}{default}\n    {MEANINGS[f'{kind} {name}']}\n")
    entries += [entry[0] for entry in own.values()]
    if row["out"] and "out" not in own:
        entries.append("out : Tensor, optional\n    Tensor that the result is written to.\n")
    return "".join(dict.fromkeys(entries)).rstrip("\n")
