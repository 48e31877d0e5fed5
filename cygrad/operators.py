"""The operators of the table: read from the file that the build writes, and made callable."""

import marshal
from importlib import import_module
from pathlib import Path

from cygrad._core.build_config import KERNELS
from cygrad._core.dispatch import dispatch
from cygrad._core.dispatch.binding import OperatorMethod, load_rows
from cygrad._core.dispatch.indexing import index_put_
from cygrad._core.table.operator import operators, set_docstrings

# The table finds kernels by their names, so all of them come first.
for _name in KERNELS:
    import_module(_name)

# Public functions and methods of Tensor, by name.
FUNCTIONS, METHODS = {}, {}


def _load():
    """Register all rows."""
    path = Path(import_module("cygrad._core.table").__file__).with_name("rows.marshal")
    rows, docs = marshal.loads(path.read_bytes())
    load_rows(rows)
    set_docstrings(lambda: marshal.loads(docs))
    for row in rows:
        function = getattr(operators, row["name"])
        for name in (row["public"], *row["alias"]):
            if row["function"]:
                FUNCTIONS[name] = function
            if row["method"]:
                METHODS[name] = OperatorMethod(function, name)
            if row["inplace_method"]:
                METHODS[f"{name}_"] = OperatorMethod(getattr(operators, row["name"] + "_"), f"{name}_")
            if row["inplace_function"]:
                FUNCTIONS[f"{name}_"] = getattr(operators, row["name"] + "_")


_load()
operators.index_put_ = index_put_
dispatch.connect()
