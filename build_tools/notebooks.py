"""Convert tutorials from MyST to Jupyter notebooks."""

import json
import re
from pathlib import Path

from build_tools.files import write_if_changed

CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r"\{\w+\}`(?:([^`<]+?) <[^`>]+>|[^`]*?([^`/]+))`")


def cells(text: str) -> list[tuple[str, str]]:
    """Return the cells of a tutorial: "markdown" or "code", and the text."""
    parts = CELL.split(HEAD.sub("", text))
    found = [("code" if number % 2 else "markdown", part.strip()) for number, part in enumerate(parts)]
    return [(kind, part) for kind, part in found if part]


def notebook(text: str) -> dict:
    """Return a tutorial as a notebook. Sphinx links become text."""
    made = []
    for number, (kind, part) in enumerate(cells(text)):
        source = part if kind == "code" else ROLE.sub(lambda role: role[1] or role[2], part)
        cell = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write_notebooks(sources: Path, target: Path) -> None:
    """Write NAME.ipynb for each tutorial NAME.md."""
    for path in sorted(sources.glob("*.md")):
        write_if_changed(target / f"{path.stem}.ipynb", json.dumps(notebook(path.read_text()), indent=1) + "\n")
