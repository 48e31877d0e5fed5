"""Check and expand all rows of the operator table, and write them to one file that is read at import.

Derivative formulas are compiled as far as possible without kernels, so that mistakes stop the build.
"""

import importlib
import marshal
import sys
import tomllib
import types
from pathlib import Path

from build_tools.operator_docs import completed

CORE = Path(__file__).resolve().parent.parent / "cygrad" / "_core"
# Read by cygrad.operators; next to the modules of the table.
FILE = Path("table", "rows.marshal")
# Keys of a row at run time.
KEYS = ("name", "call", "arguments", "formulas", "forward", "kernel", "into", "results", "differentiable", "list",
        "view", "inplace", "out", "gradient", "node", "dtypes", "jvp", "moves", "mixed", "autocast", "zeros", "fits",
        "public", "alias", "variadic", "overloads", "factors", "function", "method", "inplace_method",
        "inplace_function", "vmap", "per_sample", "numpy", "array_api")


class TableError(ValueError):
    """A mistake in the operator table; the message names file and row."""


def table_module(name: str):
    """Import a pure Python module of cygrad/_core/table without cygrad."""
    if "cygrad_core" not in sys.modules:
        package = types.ModuleType("cygrad_core")
        package.__path__ = [str(CORE)]
        sys.modules["cygrad_core"] = package
    return importlib.import_module(f"cygrad_core.table.{name}")


def read_table(ops_dir: Path) -> dict[str, dict[str, dict]]:
    """Return family -> name of the row -> row, expanded and checked."""
    signature, expansion = table_module("signature"), table_module("expansion")
    raw = {path: raw_rows(path) for path in sorted(Path(ops_dir).glob("*.toml"))}
    try:
        helpers = expansion.read_helpers(
            {name: row for rows in raw.values() for name, row in rows.items() if "helper" in row})
    except signature.RowError as error:
        raise TableError(f"{ops_dir}: {error}") from None
    families, origin = {}, {}
    for path, written in raw.items():
        rows = families[path.stem] = {}
        for name, row in written.items():
            if "helper" in row:
                continue
            try:
                parsed = signature.parse_row(row, name, helpers)
            except signature.RowError as error:
                raise TableError(f"{path}: {error}") from None
            rows[name] = {**parsed, "row": row, "path": path}
            for spelling in spellings(rows[name]):
                if spelling in origin:
                    raise TableError(f"{path}: {name}: the name '{spelling}' is taken by {origin[spelling]}.")
                origin[spelling] = f"'{name}' in {path.name}"
    rows = {name: row for family in families.values() for name, row in family.items()}
    check_formulas(rows)
    for name, row in rows.items():
        if row["vmap"] is None:
            raise TableError(f"{row['path']}: {name}: no rule for vmap follows from the row. Give it the key 'vmap': "
                             f"{', '.join(signature.VMAP)}, 'family.function' or 'loop: why'.")
    return families


def raw_rows(path: Path) -> dict[str, dict]:
    """Read the rows and helpers of a file."""
    try:
        rows = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path}: {error}") from None
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise TableError(f"{path}: '{name}' stands outside of a row (got {row!r}).")
    return rows


def spellings(row: dict) -> list[str]:
    """Return all names of the Python functions of a row."""
    names = [row["public"], *row["alias"]]
    return names + [f"{name}_" for name in names if row["inplace"]]


def check_formulas(rows: dict[str, dict]) -> None:
    """Compile every formula as far as possible without kernels."""
    formula, layout, lowering = (table_module(name) for name in ("formula", "layout", "lowering"))
    for row in rows.values():
        try:
            if row["forward"] not in (None, "primitive"):
                names = layout.forward_names(row)
                value = formula.Reader(f"{row['name']}: forward", row["forward"], names, rows.get).read()
                lowering.lower_forward(value, list(names.values()))
            lowering.lower_formulas(row, layout.saved_layout(row), rows.get)
        except formula.FormulaError as error:
            raise TableError(f"{row['path']}: {error}") from None


def compiled(ops_dir: Path) -> bytes:
    """Return rows and docstrings as two marshal objects, because most programs never read docstrings."""
    rows, docs = [], {}
    for family in read_table(ops_dir).values():
        for name, row in family.items():
            rows.append({key: row[key] for key in KEYS} | {"arguments": tuple(map(tuple, row["arguments"]))})
            text = completed(row, table_module("signature").KINDS)
            docs[name] = f"{text}\n" if "\n" in text else text        # closing quotes are on their own line
    return marshal.dumps((rows, marshal.dumps(docs, 2)), 2)         # version 2 is deterministic


def is_function(row: dict) -> bool:
    """Return whether the operator is in the public namespace; internal ones are for formulas and composites."""
    return row["function"]


def is_method(row: dict) -> bool:
    """Return whether the operator is a method of Tensor; internal ones are not, unless the row says so."""
    return row["method"]


def parameter_names(row: dict) -> list[str]:
    """Return the names of the Python parameters; `self` of the table is `input`."""
    return ["input" if argument.name == "self" else argument.name for argument in row["arguments"]]
