"""Formulas of the table are short; helpers have a name and a docstring."""

import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "cygrad" / "_core" / "table" / "ops"
ROWS = [(path.stem, name, row) for path in sorted(FOLDER.glob("*.toml"))
        for name, row in tomllib.loads(path.read_text()).items()]
# The keys whose texts are no formulas.
PROSE = {"doc", "call", "kink"}


@pytest.mark.parametrize("row", [row for _, _, row in ROWS if "helper" not in row],
                         ids=[f"{file}-{name}" for file, name, row in ROWS if "helper" not in row])
def test_three_lines_at_most(row):
    for key, text in row.items():
        if key not in PROSE and isinstance(text, str):
            assert len(text.strip().splitlines()) <= 3, f"'{key}' is longer than three lines: make it a named helper"


@pytest.mark.parametrize("row", [row for _, _, row in ROWS if "helper" in row],
                         ids=[name for _, name, row in ROWS if "helper" in row])
def test_helpers_say_what_they_are(row):
    assert len(row["doc"].strip()) > 10
