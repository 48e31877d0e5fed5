"""From the operator table to Cython: one module per family, with a function for each operator.

The modules only box arguments; what an operator does is in its kernel, its derivative in its row. Rows are
checked here, derivative formulas included, so that a mistake in the table stops the build and not a user.
"""

import importlib
import re
import sys
import tomllib
import types
from pathlib import Path
from textwrap import indent

from build_tools.files import write_if_changed
from build_tools.operator_docs import completed

TENSORS = (0, 2)        # kinds of arguments that are one tensor: Tensor and Tensor|number
TABLE = Path(__file__).resolve().parent.parent / "cygrad" / "_core" / "table"

HEADER = '''"""Operators of the family '{family}': generated from ops/{family}.toml, not to be edited."""

from cpython.object cimport PyObject
from cygrad._core.dispatch.dispatch cimport binary, call, call_inplace, unary
from cygrad._core.graph.early_forms import factors_first
from cygrad._core.table.operator cimport Operator, register_operator
from cygrad._core.table.operator import functions
'''
FOOTER = '''
# By the name that formulas call them by; their in-place forms, for composites; public functions; methods of Tensor.
OPERATORS = {operators}
INPLACE = {inplace}
FUNCTIONS = {functions}
METHODS = {methods}
functions.update(OPERATORS)
'''


class TableError(ValueError):
    """A mistake in the operator table; the text names file and row."""


def table_module(name: str):
    """A module of cygrad/_core/table in plain Python, imported without importing cygrad."""
    if "cygrad_table" not in sys.modules:
        package = types.ModuleType("cygrad_table")
        package.__path__ = [str(TABLE)]
        sys.modules["cygrad_table"] = package
    return importlib.import_module(f"cygrad_table.{name}")


def read_table(ops_dir: Path) -> dict[str, dict[str, dict]]:
    """Family -> name of the row -> row, spelled out and checked."""
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
    check_formulas({name: row for rows in families.values() for name, row in rows.items()})
    return families


def raw_rows(path: Path) -> dict[str, dict]:
    """The rows and helpers of a file as they are written."""
    try:
        rows = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path}: {error}") from None
    for name, row in rows.items():
        if not isinstance(row, dict):
            raise TableError(f"{path}: '{name}' stands outside of a row (got {row!r}).")
    return rows


def spellings(row: dict) -> list[str]:
    """All names of the Python functions of a row."""
    names = [row["row"].get("name", row["name"]), *row["row"].get("alias", [])]
    return names + [f"{name}_" for name in names if row["inplace"]]


def check_formulas(rows: dict[str, dict]) -> None:
    """Compile every formula as far as that goes without kernels."""
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


# ---- the Cython modules

def generate(ops_dir: Path, target_dir: Path) -> list[Path]:
    """Write functions_<family>.pyx for each family of the table; -> their paths."""
    paths = []
    for family, rows in read_table(ops_dir).items():
        path = Path(target_dir) / f"functions_{family}.pyx"
        write_if_changed(path, module_text(family, list(rows.values())))
        paths.append(path)
    return paths


def module_text(family: str, rows: list[dict]) -> str:
    """The text of one module."""
    parts = [HEADER.format(family=family)]
    if any("variadic" in row["row"] for row in rows):
        parts.append("from cygrad._core.dispatch.size_calls cimport call_with_sizes, replace_call, vectorcall_t\n")
    if any("elsewhere" in row["row"] for row in rows):
        parts.append("from cygrad._core.arrays.dtype cimport dtype as Dtype\n")
    functions, methods = {}, {}
    for row in rows:
        parts.append(row_text(row))
        own, *others = [row["row"].get("name", row["name"]), *row["row"].get("alias", [])]
        for name in (own, *others):
            if is_function(row):
                functions[name] = own
            if is_method(row):
                methods[name] = own
            if is_inplace_method(row):
                methods[f"{name}_"] = f"{own}_"
    operators = {row["name"]: row["row"].get("name", row["name"]) for row in rows}
    inplace = {f"{row['name']}_": f"{operators[row['name']]}_" for row in rows if row["inplace"]}
    parts.append(FOOTER.format(operators=dict_text(operators), inplace=dict_text(inplace),
                               functions=dict_text(functions), methods=dict_text(methods)))
    return "\n".join(parts)


def is_function(row: dict) -> bool:
    """Is it in the public namespace? An internal operator is for formulas and composites only."""
    return row["row"].get("function", not row["row"].get("internal", False))


def is_method(row: dict) -> bool:
    """Is it a method of Tensor? What is no public function is none either, unless the row says so."""
    return (bool(row["arguments"]) and row["arguments"][0].kind in TENSORS
            and row["row"].get("method", is_function(row)))


def is_inplace_method(row: dict) -> bool:
    """Is its in-place form a method of Tensor? That of an internal operator is for composites only."""
    return row["inplace"] and (is_method(row) or row["row"].get("inplace_method", False))


def dict_text(names: dict[str, str]) -> str:
    return "{\n" + "".join(f"    {name!r}: {function},\n" for name, function in names.items()) + "}"


def row_text(row: dict) -> str:
    """Registration, function and in-place function of one row."""
    name = row["row"].get("name", row["name"])
    keys = ("name", "call", "arguments", "formulas", "forward", "kernel", "into", "results", "differentiable", "list",
            "view", "inplace", "out", "gradient", "node", "dtypes", "jvp", "moves", "mixed", "autocast",
            "zeros")
    described = "".join(f"    {key!r}: {literal(row[key])},\n" for key in keys)
    text = [f"cdef Operator _{row['name']} = register_operator({{\n{described}}})\n"]
    out = ", out" if row["out"] else ", None"
    text.append(function_text(name, row, completed(row, table_module("signature").KINDS), row["out"], out,
                              "call"))
    if row["row"].get("variadic"):
        text.append(size_call_text(name, row["name"]))
    if row["inplace"]:
        text.append(function_text(f"{name}_", row, f"In-place version of `{name}`.", False, "", "call_inplace"))
    return "\n".join(text)


def literal(value) -> str:
    """Text that evaluates to the value; tuples of numbers and texts, dictionaries of texts."""
    if isinstance(value, float) and repr(value) in ("inf", "-inf", "nan"):
        return f'float("{value!r}")'
    if isinstance(value, tuple):
        return "(" + "".join(f"{literal(part)}, " for part in value).rstrip() + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(part)}" for key, part in value.items()) + "}"
    return repr(value)


def parameter_names(row: dict) -> list[str]:
    """Names of the Python parameters: what the table calls `self` is `input`."""
    return ["input" if argument.name == "self" else argument.name for argument in row["arguments"]]


def function_text(name: str, row: dict, doc: str, with_out: bool, out: str, through: str) -> str:
    """One `def`."""
    names = parameter_names(row)
    header, renamed = spellings_of_numpy(row, name, parameters(row, with_out, names))
    lines = [f"def {name}({header}):", f'    """{docstring(doc)}"""', *renamed]
    factors = leading_factors(row)
    if factors:
        lines[0] = f"def {name}({header.replace('*', '*more', 1)}):"
        options = ", out=out" if with_out else ""
        lines += ["    if more:",
                  f"        return factors_first({name}, ({', '.join(names[:3])}, *more), {factors}{options})"]
    if through == "call" and row["forward"] is not None and len(names) <= 2 and not any(
            argument.kind not in TENSORS or not argument.required for argument in row["arguments"]):
        lines.append(f"    return {('unary', 'binary')[len(names) - 1]}(_{row['name']}, {', '.join(names)}{out})")
        return "\n".join(lines) + "\n"
    if row["row"].get("variadic"):
        lines += ["    " + line for line in variadic_text(name, names[1])]
    if through == "call":
        lines += elsewhere_text(row, names)
    lines.append(f"    cdef PyObject *arguments[{max(len(names), 1)}]")
    lines += [f"    arguments[{number}] = <PyObject *>{argument}" for number, argument in enumerate(names)]
    lines.append(f"    return {through}(_{row['name']}, arguments{out})")
    return "\n".join(lines) + "\n"


def spellings_of_numpy(row: dict, name: str, header: str) -> tuple[str, list[str]]:
    """The parameter list with NumPy's names for `dim` and `keepdim`, and the lines that translate them."""
    positional = [argument for argument in row["arguments"] if not argument.keyword_only]
    place = next((number for number, argument in enumerate(positional) if argument.name == "dim"), None)
    if place is None or not is_function(row) or row["row"].get("variadic"):
        return header, []
    lines = ["    if axis is not None:", "        dim = axis"]
    if positional[place].required:
        needed = [argument.name for argument in positional[place:] if argument.required]
        for needed_name in needed:
            header = re.sub(rf"\b{needed_name}\b", f"{needed_name}=None", header, count=1)
        lines += [f"    {'elif' if needed_name == 'dim' else 'if'} {needed_name} is None:\n"
                  f'        raise TypeError("{name}: missing required argument \'{needed_name}\'")'
                  for needed_name in needed]
    header += ", axis=None" if "*" in header else ", *, axis=None"
    if any(argument.name == "keepdim" for argument in row["arguments"]):
        header += ", keepdims=None"
        lines += ["    if keepdims is not None:", "        keepdim = keepdims"]
    return header, lines


def leading_factors(row: dict) -> tuple[str, ...]:
    """The factors that may also stand before the tensors they belong to, as in PyTorch's early days."""
    tensors = [argument for argument in row["arguments"] if not argument.keyword_only]
    if not is_function(row) or len(tensors) != 3 or any(argument.kind not in TENSORS for argument in tensors):
        return ()
    return tuple(argument.name for argument in row["arguments"]
                 if argument.keyword_only and argument.name in ("alpha", "beta", "value"))


def elsewhere_text(row: dict, names: list[str]) -> list[str]:
    """
    What rare calls do, which a module that is loaded late answers: those of which a condition holds, or that give a
    keyword which the row does not have.
    """
    lines = []
    for condition, place in row["row"].get("elsewhere", {}).items():
        module, _, function = place.rpartition(".")
        keyword = condition.isidentifier()
        lines += [f"    if {condition}{' is not None' if keyword else ''}:",
                  f"        from {module} import {function} as elsewhere",
                  f"        return elsewhere({', '.join([names[0], condition] if keyword else names)}"
                  f"{', out=out' if row['out'] else ''})"]
    return lines


def variadic_text(name: str, argument: str) -> list[str]:
    """`reshape(x, 2, 3)`, `reshape(x, (2, 3))` and `reshape(x, shape=(2, 3))` mean the same."""
    return [
        f"if {argument} is None:",
        f"    {argument} = sizes[0] if len(sizes) == 1 else sizes",
        "elif sizes:",
        f'    raise TypeError("{name}: {argument} given twice")',
    ]


def size_call_text(name: str, row_name: str) -> str:
    """What Python calls first: the short way of `reshape(x, 2, 3)`."""
    return f"""\
cdef vectorcall_t _{row_name}_otherwise

cdef object _{row_name}_of_sizes(PyObject *function, PyObject **given, size_t count, PyObject *names):
    return call_with_sizes(_{row_name}, _{row_name}_otherwise, function, given, count, names)

_{row_name}_otherwise = replace_call({name}, _{row_name}_of_sizes)
"""


def parameters(row: dict, with_out: bool, names: list[str]) -> str:
    """The parameter list."""
    parts, keyword_only = [], False
    for number, (name, argument) in enumerate(zip(names, row["arguments"], strict=False)):
        variadic = row["row"].get("variadic") and number == 1
        if variadic:
            parts.append("*sizes")
            keyword_only = True
        elif argument.keyword_only and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(f"{name}={literal(argument.default)}" if variadic or not argument.required else name)
    for keyword in filter(str.isidentifier, row["row"].get("elsewhere", ())):
        parts.append(f"{keyword}=None")
    if with_out:
        if not keyword_only:
            parts.append("*")
        parts.append("out=None")
    return ", ".join(parts)


def docstring(doc: str) -> str:
    """The text between the quotes, indented."""
    text = doc.strip().replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if "\n" not in text:
        return text + (" " if text.endswith('"') else "")
    return "\n" + indent(text, "    ") + "\n    "
