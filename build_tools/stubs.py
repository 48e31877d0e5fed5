"""Stubs for editors and type checkers, which do not see names that are created at import.

The build writes `cygrad/__init__.pyi`, and by `module_stubs` those of some modules, from the package just built: types
of operators come from their rows, others from docstrings. `make stubtest` compares them with the package.
Run as a script: ``python build_tools/stubs.py DIRECTORY`` for the package in that directory.
"""

import importlib
import inspect
import math
import os
import re
import subprocess
import sys
from pathlib import Path

STUB = "__init__.pyi"
HEADER = '''"""Types of the public names. Written by the build; not to be edited."""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, type as _type
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as _numpy
from typing_extensions import disjoint_base

'''
# Types in sections "Returns" and "Attributes" -> Python types.
RETURNED = {
    "Tensor": "Tensor", "bool": "_bool", "int": "_int", "float": "_float", "dict": "dict[str, Any]", "str": "str",
    "dtype": "_dtype", "None": "None", "numpy.ndarray": "_numpy.ndarray", "callable": "Callable[..., Any]",
    "tuple of Tensor": "tuple[Tensor, ...]", "list of Subset": "list[Subset[Any]]",
}
PROPERTIES = {
    "shape": "tuple[_int, ...]", "dtype": "_dtype", "ndim": "_int", "itemsize": "_int", "nbytes": "_int",
    "requires_grad": "_bool", "is_leaf": "_bool", "output_nr": "_int", "retains_grad": "_bool", "_version": "_int",
    "grad_dtype": "_dtype",
    "grad": "Tensor | None", "data": "Tensor", "_base": "Tensor | None", "grad_fn": "Any",
    **dict.fromkeys(["T", "mT", "H", "mH", "real", "imag"], "Tensor"),
}
WRITABLE = {"grad", "data", "requires_grad", "grad_dtype"}
PYTHONS_OWN = 1 << 9        # Py_TPFLAGS_HEAPTYPE: set for Python classes, not for extension types
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
SPECIAL = ("__add__", "__radd__", "__copy__", "__deepcopy__")       # special methods of classes other than Tensor
IN_PLACE = tuple(name for name in BINARY if name not in ("matmul", "lshift", "rshift"))
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def write(directory: Path) -> None:
    """Write the stub of the package in `directory`, in a process that imports it."""
    answer = subprocess.run([sys.executable, __file__, str(directory)], check=False, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})
    if answer.returncode:
        Path(directory, "cygrad", STUB).unlink(missing_ok=True)      # it would be out of date
        print(f"warning: no type stub was written, because the package does not import:\n{answer.stderr}",
              file=sys.stderr)


def stub_text(package, hints: dict[str, dict[str, str]], tuples: list[str]) -> str:
    """Return the stub of an imported package, with the types of the operator table."""
    operators, names = package.operators, dir(package)         # including names that are loaded lazily
    getattr(package, "array_api", None)                         # adds methods to Tensor
    modules, values, classes, functions = [], [], [], []
    for name in names:
        if name.startswith("_"):
            continue
        value = getattr(package, name)
        if inspect.ismodule(value):
            if value.__name__ == f"{package.__name__}.{name}":
                modules.append(f"from {package.__name__} import {name} as {name}")
        elif isinstance(value, package.dtype):
            values.append(f"{name}: dtype")
        elif value is package.Tensor:
            table = {member: hints[member] for member, function in vars(value).items()
                     if member in hints and operators.METHODS.get(member) is function}
            classes.append(tensor_text(value, table))
        elif isinstance(value, type):
            classes.append(class_text(name, value))
        elif callable(value):
            functions.append(function_text(name, value, hints[name] if operators.FUNCTIONS.get(name) is value else {}))
        else:
            values.append(f"{name}: {type_of(package, value)}")
    head = "_F = TypeVar(\"_F\", bound=Callable[..., Any])\n_Number: TypeAlias = _bool | _int | _float | _complex\n"
    head += "_Operand: TypeAlias = \"Tensor | _Number | _numpy.ndarray[Any, Any] | _numpy.generic\"\n"
    aliases = "_dtype: TypeAlias = dtype\n__version__: str\ndef __dir__() -> list[str]: ...\n"
    return HEADER + "\n".join([*sorted(modules), "", head, *classes, aliases, *sorted(values), "", *tuples,
                               *functions]) + "\n"


def type_of(package, value) -> str:
    """Return the type of a constant: a class of the package, or of Python."""
    kind = type(value).__name__
    if getattr(package, kind, None) is type(value):
        return kind
    return "None" if value is None else f"_{kind}" if kind in ("bool", "complex", "float", "int") else "Any"


def function_text(name: str, function, hints: dict[str, str], method: bool = False) -> str:
    """Return a `def` with the known types of parameters."""
    return f"def {name}({parameters(function, hints, method)}) -> {hints.get('return') or returned(function)}: ..."


def parameters(function, hints: dict[str, str], method: bool) -> str:
    """Return the parameters of a function for a stub; the first one of a method has no type."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"{'self, ' if method else ''}*args: Any, **options: Any"
    texts, last = [], None
    for number, parameter in enumerate(found):
        if parameter.kind is not parameter.POSITIONAL_ONLY and last is parameter.POSITIONAL_ONLY:
            texts.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and last not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            texts.append("*")
        last = parameter.kind
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(last, "")
        kind = hints.get(parameter.name, "Any")
        if parameter.default is None and kind != "Any" and not kind.endswith("None"):
            kind += " | None"                  # an alternative spelling may be used: `axis`, several sizes
        default = "" if parameter.default is parameter.empty else f" = {default_text(parameter.default)}"
        typed = "" if method and number == 0 else f": {kind}"
        texts.append(f"{mark}{parameter.name}{typed}{default if typed else default.replace(' ', '')}")
    return ", ".join([*texts, "/"] if last is inspect.Parameter.POSITIONAL_ONLY else texts)


def default_text(value) -> str:
    """Return the repr of simple defaults, else ..."""
    plain = value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))
    return repr(value) if plain else "..."


def returned(function) -> str:
    """Return the type of the result by the docstring's section "Returns", else Any."""
    section = re.search(r"Returns\n-+\n([^\n]+)\n", inspect.getdoc(function) or "")
    return RETURNED.get(section.group(1), "Any") if section else "Any"


def class_text(name: str, cls: type) -> str:
    """Return the stub of a class: constructor, public members, context manager and decorator methods."""
    lines = []
    for member, value in vars(cls).items():
        if member == "__new__" and cls.__flags__ & PYTHONS_OWN:
            lines.append("    " + function_text(member, value, {"return": name}, True))
        elif member == "__init__":
            own = function_text(member, value, {"return": "None"}, True)
            lines.append("    " + (own if own.startswith("def __init__(self") else f"def __init__(self{own[12:]}"))
        elif not member.startswith("_") and (isinstance(value, property) or inspect.isgetsetdescriptor(value)):
            lines.append(f"    @property\n    def {member}(self) -> Any: ...")
        elif callable(value) and (not member.startswith("_") or member in SPECIAL):
            lines.append("    " + function_text(member, value, {}, True))
    if hasattr(cls, "__enter__"):
        lines += [
            f"    def __enter__(self) -> {name}: ...",
            "    def __exit__(self, kind: _type[BaseException] | None = ..., error: BaseException | None = ..., "
            "trace: TracebackType | None = ..., /) -> _bool | None: ...",
        ]
        if "__call__" in dir(cls):
            lines.append("    def __call__(self, function: _F) -> _F: ...")
    return head_of_class(name, cls) + ("\n".join(lines) or "    ...") + "\n"


def head_of_class(name: str, cls: type) -> str:
    """Return the first line of a class; extension types are disjoint bases."""
    bases = "(tuple[_int, ...])" if issubclass(cls, tuple) else ""
    return ("" if cls.__flags__ & PYTHONS_OWN else "@disjoint_base\n") + f"class {name}{bases}:\n"


def tensor_text(cls: type, table: dict[str, dict[str, str]]) -> str:
    """Return the stub of Tensor: operators, properties and methods."""
    lines = ["    __array_priority__: _float", "    def __init__(self, data: Any = ...) -> None: ..."]
    for member, value in vars(cls).items():
        if member.startswith("__") or member == "_is_view":
            continue
        if isinstance(value, staticmethod):
            lines.append("    @staticmethod\n    " + function_text(member, value.__func__, {}))
        elif callable(value):
            lines.append("    " + function_text(member, value, table.get(member, {}), True))
        elif not hasattr(value, "__get__"):
            lines.append(f"    {member}: {type_of(None, value)}")       # the member hides a class of its name
        else:
            kind = PROPERTIES.get(member, "Any")
            lines.append(f"    @property\n    def {member}(self) -> {kind}: ...")
            if member in WRITABLE:
                lines.append(f"    @{member}.setter\n    def {member}(self, value: {kind}) -> None: ...")
    for name in (*BINARY, *(f"r{name}" for name in BINARY), *(f"i{name}" for name in IN_PLACE)):
        modulus = ", modulus: None = None" if name in ("pow", "rpow") else ""
        ignored = "  # type: ignore[misc]" if name == "ipow" else ""         # Python gives it no modulus
        lines.append(f"    def __{name}__(self, other: _Operand{modulus}, /) -> Tensor: ...{ignored}")
    for name in COMPARISONS:
        ignored = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(f"    def __{name}__(self, other: Any, /) -> Tensor: ...{ignored}")
    lines += [f"    def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")]
    lines += [f"    def __{name}__(self) -> _{name}: ..." for name in ("bool", "int", "float", "complex")]
    lines += [
        "    def __index__(self) -> _int: ...", "    def __len__(self) -> _int: ...",
        "    def __round__(self, ndigits: _int | None = None) -> Tensor: ...",
        "    def __hash__(self) -> _int: ...",
        "    def __iter__(self) -> Iterator[Tensor]: ...", "    def __reversed__(self) -> Tensor: ...",
        "    def __contains__(self, element: Any, /) -> _bool: ...",
        "    def __getitem__(self, key: Any, /) -> Tensor: ...",
        "    def __setitem__(self, key: Any, value: Any, /) -> None: ...",
        "    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> _numpy.ndarray: ...",
        "    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...",
        "    def __rdiv__(self, other: Any) -> Tensor: ...",
        "    def __array_ufunc__(self, ufunc: _numpy.ufunc, method: str, *inputs: Any, **options: Any) -> Any: ...",
        "    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any: ...",
        "    @property\n    def __array_interface__(self) -> dict[str, Any]: ...",
        "    def __dlpack__(self, *, stream: None = None, max_version: tuple[_int, _int] | None = None,",
        "                   dl_device: tuple[_int, _int] | None = None, copy: _bool | None = None) -> Any: ...",
        "    def __dlpack_device__(self) -> tuple[_int, _int]: ...",
        "    def __deepcopy__(self, memo: Any) -> Tensor: ...",
        "    @classmethod",
        "    def __torch_function__(cls, " + parameters(cls.__torch_function__, {}, False) + ") -> Any: ...",
        "    @classmethod",
        "    def __torch_dispatch__(cls, " + parameters(cls.__torch_dispatch__, {}, False) + ") -> Any: ...",
    ]
    return head_of_class("Tensor", cls) + "\n".join(lines) + "\n"


def main(directory: Path) -> None:
    """Import the package in `directory` and write its stub."""
    root = Path(__file__).resolve().parents[1]
    sys.path[:1] = [str(directory.resolve()), str(root)]
    import cygrad
    from build_tools import module_stubs, table_documents
    from build_tools.files import write_if_changed

    package = Path(cygrad.__file__).parent
    ops = root / "cygrad" / "_core" / "table" / "ops"         # a package to be installed has no rows
    write_if_changed(package / STUB, stub_text(cygrad, *table_documents.types(ops)))
    for name in module_stubs.MODULES:
        module = importlib.import_module(f"cygrad.{name}")
        write_if_changed(Path(module.__file__).with_suffix(".pyi"), module_stubs.stub_text(module))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
