"""How the source tree hangs together: the rooms of `_core`, and what each file imports."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cygrad"
IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|[^\n]*)|c?import\s+([\w.]+))", re.MULTILINE)
# The rooms of _core, bottom first: each imports only from those before it. Every folder of _core is in here.
ROOMS = (
    "memory", "threads", "arrays", "simd", "primitives", "elementwise",
    "kernels", "kernels/shape", "kernels/indexing", "kernels/reduction", "kernels/sorting", "kernels/linalg",
    "kernels/convolution", "kernels/nn", "table", "graph", "engine", "creation", "dispatch", "table/ops", "custom",
    "optimizers", "communication", "compiler", "testing",
)


def files(*suffixes):
    return [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in suffixes and "__pycache__" not in path.parts]


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def known_modules():
    return {module_of(path) for path in files(".py", ".pyx", ".pxd")}


def python_imports(tree, package):
    """Modules and names that plain Python imports, also inside functions."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            yield from ((name.name, "") for name in item.names)
        elif isinstance(item, ast.ImportFrom):
            parents = package.split(".")[:len(package.split(".")) - item.level + 1] if item.level else []
            yield from ((".".join(filter(None, [*parents, item.module])), name.name) for name in item.names)


def top_level(tree):
    """The part of a syntax tree that runs while the module itself is imported."""
    return ast.Module([item for item in tree.body if isinstance(item, ast.Import | ast.ImportFrom)], [])


def cython_imports(text):
    """The same of Cython, at the top level: import and cimport."""
    for base, names, plain in IMPORT.findall(text):
        if plain:
            yield plain, ""
        names = re.sub(r"#[^\n]*", "", names)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names):
            yield base, name


@cache
def imports(path, late=True):
    """The modules of this package that a file imports or cimports; `late`: also those that its functions import."""
    found = set()
    text = path.read_text()
    if path.suffix == ".py":
        package = ".".join(path.relative_to(ROOT).parent.parts)
        tree = ast.parse(text)
        pairs = python_imports(tree if late else top_level(tree), package)
    else:
        pairs = cython_imports(text)
    for base, name in pairs:
        if base.split(".")[0] == "cygrad":
            full = f"{base}.{name}"
            found.add(full if full in known_modules() else base)
    return found - {module_of(path)}


def room(path):
    """The folder of a file of _core, as ROOMS has it."""
    return path.relative_to(PACKAGE / "_core").parent.as_posix()
