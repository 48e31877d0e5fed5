"""The type stub `cygrad/__init__.pyi`: for editors and type checkers, which do not see what a package makes of itself.

It is written by the build, from two sources. Functions and methods of the operator table have the types of their row.
Everything else is read from the package just built: its signatures, and the types that its docstrings tell.
Run as a script: ``python build_tools/stubs.py DIRECTORY`` for the package in that directory.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

STUB = "__init__.pyi"
HEADER = '''"""Types of the public names. Written by the build; not to be edited."""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as _numpy

'''
# What hides Python's own types in the namespace of the package, and in the class Tensor.
HIDDEN = re.compile(r"\b(bool|complex|float|int|dtype)\b")
# First words of the types in sections "Returns" and "Attributes" that mean a type of Python.
RETURNED = {
    "Tensor": "Tensor", "bool": "_bool", "int": "_int", "float": "_float", "dict": "dict[str, Any]", "str": "str",
    "dtype": "_dtype", "None": "None", "numpy.ndarray": "_numpy.ndarray",
}
PROPERTIES = {
    "shape": "tuple[_int, ...]", "dtype": "_dtype", "ndim": "_int", "itemsize": "_int", "nbytes": "_int",
    "requires_grad": "_bool", "is_leaf": "_bool", "output_nr": "_int", "retains_grad": "_bool", "_version": "_int",
    "grad": "Tensor | None", "data": "Tensor", "_base": "Tensor | None", "grad_fn": "Any",
    **dict.fromkeys(["T", "mT", "H", "mH", "real", "imag"], "Tensor"),
}
WRITABLE = {"grad", "data", "requires_grad"}
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
IN_PLACE = tuple(name for name in BINARY if name not in ("matmul", "lshift", "rshift"))
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def write(directory: Path) -> None:
    """Write the stub of the package in `directory`, in a process of its own, which imports it."""
    answer = subprocess.run([sys.executable, __file__, str(directory)], check=False, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})
    if answer.returncode:
        print(f"warning: no type stub was written, because the package does not import:\n{answer.stderr}",
              file=sys.stderr)


def stub_text(package, signatures: dict[str, str], methods: dict[str, str], tuples: list[str]) -> str:
    """The text for an imported package, with what the table says of functions and methods."""
    modules, values, classes, functions = [], [], [], []
    for name in dir(package):                  # also what is loaded when it is asked for
        if name.startswith("_"):
            continue
        value = getattr(package, name)
        if inspect.ismodule(value):
            if value.__name__ == f"{package.__name__}.{name}":
                modules.append(f"from {package.__name__} import {name} as {name}")
        elif isinstance(value, package.dtype):
            values.append(f"{name}: dtype")
        elif value is package.Tensor:
            classes.append(tensor_text(value, methods))
        elif isinstance(value, type):
            classes.append(class_text(name, value))
        elif callable(value):
            functions.append(signatures[name] if name in signatures and is_of_table(package, name, value)
                             else function_text(name, value))
        else:
            values.append(f"{name}: {'None' if value is None else '_' + type(value).__name__}")
    head = "_F = TypeVar(\"_F\", bound=Callable[..., Any])\nNumber: TypeAlias = _bool | _int | _float | _complex\n"
    aliases = "_dtype: TypeAlias = dtype\n__version__: str\n"
    return HEADER + "\n".join([*sorted(modules), "", head, *classes, aliases, *sorted(values), "", *tuples,
                               *functions]) + "\n"


def is_of_table(package, name, function) -> bool:
    return package.operators.FUNCTIONS.get(name) is function


# ---- what is not of the table

def function_text(name: str, function, own: str | None = None) -> str:
    """One `def`; `own` is what a method calls its tensor."""
    return f"def {name}({parameters(function, own)}) -> {returned(function)}: ..."


def parameters(function, own: str | None) -> str:
    """The parameters of a function as they stand in a stub."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"{own + ', ' if own else ''}*args: Any, **options: Any"
    texts, star = [], False
    for number, parameter in enumerate(found):
        if own and number == 0:
            texts.append(own)
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            texts.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else " = ..."
        texts.append(f"{mark}{parameter.name}: Any{default}")
    return ", ".join(texts)


def returned(function) -> str:
    """The type of the result, if the docstring's section "Returns" gives one that is known here."""
    section = re.search(r"Returns\n-+\n(\S+)\n", inspect.getdoc(function) or "")
    return RETURNED.get(section.group(1), "Any") if section else "Any"


def init_text(cls: type) -> str:
    """What the class is called with; extension types tell it themselves."""
    try:
        given = ", ".join(["self", *filter(None, [parameters(cls, None)])])
    except (TypeError, ValueError):
        given = "self, *args: Any, **options: Any"
    return f"def __init__({given}) -> None: ..."


def class_text(name: str, cls: type) -> str:
    """A class: its public methods, and what makes it a context manager or a decorator."""
    lines = []
    for member, value in vars(cls).items():
        if member == "__enter__" or (member == "__call__" and hasattr(cls, "__enter__")):
            continue
        if isinstance(value, property) or inspect.isgetsetdescriptor(value):
            if not member.startswith("_"):
                lines.append(f"    @property\n    def {member}(self) -> Any: ...")
        elif callable(value) and (not member.startswith("_") or member == "__init__"):
            lines.append("    " + (init_text(cls) if member == "__init__" else function_text(member, value, "self")))
    if hasattr(cls, "__enter__"):
        lines += [
            f"    def __enter__(self) -> {name}: ...",
            "    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, "
            "trace: TracebackType | None) -> _bool | None: ...",
        ]
        if "__call__" in dir(cls):
            lines.append("    def __call__(self, function: _F) -> _F: ...")
    return f"class {name}:\n" + ("\n".join(lines) or "    ...") + "\n"


def tensor_text(cls: type, methods: dict[str, str]) -> str:
    """The class Tensor: operators, properties, methods of the table and all others."""
    lines = ["    __array_priority__: _float", "    def __init__(self, data: Any = ...) -> None: ..."]
    for member, value in vars(cls).items():
        if member.startswith("__") or member == "_is_view":
            continue
        if member in methods:
            lines.append("    " + methods[member])
        elif callable(value):
            lines.append("    " + function_text(member, value, "self"))
        else:
            kind = PROPERTIES.get(member, "Any")
            lines.append(f"    @property\n    def {member}(self) -> {kind}: ...")
            if member in WRITABLE:
                lines.append(f"    @{member}.setter\n    def {member}(self, value: {kind}) -> None: ...")
    for name in BINARY:
        lines += [f"    def __{side}{name}__(self, other: Tensor | Number) -> Tensor: ..." for side in ("", "r")]
    lines += [f"    def __i{name}__(self, other: Tensor | Number) -> Tensor: ..." for name in IN_PLACE]
    for name in COMPARISONS:
        ignored = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(f"    def __{name}__(self, other: Any) -> Tensor: ...{ignored}")
    lines += [f"    def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")]
    lines += [f"    def __{name}__(self) -> _{name}: ..." for name in ("bool", "int", "float", "complex")]
    lines += [
        "    def __index__(self) -> _int: ...", "    def __len__(self) -> _int: ...",
        "    def __hash__(self) -> _int: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...", "    def __contains__(self, element: Any) -> _bool: ...",
        "    def __getitem__(self, key: Any) -> Tensor: ...",
        "    def __setitem__(self, key: Any, value: Any) -> None: ...",
        "    def __array__(self, dtype: Any = ..., copy: _bool | None = ...) -> _numpy.ndarray: ...",
        "    def __dlpack__(self, **options: Any) -> Any: ...",
    ]
    return "class Tensor:\n" + "\n".join(lines) + "\n"


# ---- what is of the table

def table_texts(ops_dir: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """From the table: name -> `def` of the functions, the same of the methods, and the classes of named tuples."""
    from build_tools import table_documents

    functions, methods, tuples, inside = {}, {}, [], ""
    for line in table_documents.stubs(ops_dir).splitlines():
        if line.startswith("class "):
            inside = line.removeprefix("class ").partition("(")[0].rstrip(":")
        elif line and not line.startswith(" "):
            inside = ""
        name = re.match(r" *def (\w+)\(", line)
        if name and inside == "Tensor":
            methods[name.group(1)] = unhidden(line.strip())
        elif name:
            functions[name.group(1)] = unhidden(line)
        elif inside and inside != "Tensor":
            tuples.append(line)
    return functions, methods, tuples


def unhidden(line: str) -> str:
    """Python's own types by their names in the stub; only in annotations: names and defaults stay."""
    # Sizes may be given one by one instead, so this parameter has a default.
    line = line.replace("int | Sequence[int] = None", "int | Sequence[int] | None = None")
    return re.sub(r"(?<=: )[^=,()]+|(?<=-> )[^:]+", lambda found: HIDDEN.sub(r"_\1", found.group()), line)


def main(directory: Path) -> None:
    """Import the package in `directory` and write its stub."""
    root = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(directory.resolve()), str(root)]
    import cygrad
    from build_tools.files import write_if_changed

    package = Path(cygrad.__file__).parent
    write_if_changed(package / STUB, stub_text(cygrad, *table_texts(package / "_core" / "ops")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
