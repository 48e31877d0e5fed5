"""Structure of the source tree: the packages of `_core`, and the imports of each file."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cygrad"
IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|[^\n]*)|c?import\s+([\w.]+))", re.MULTILINE)
# All packages of _core, bottom first: each imports only from those before it.
CORE_PACKAGES = (
    "memory", "threads", "arrays", "simd", "primitives", "elementwise",
    "kernels", "kernels/shape", "kernels/indexing", "kernels/reduction", "kernels/sorting", "kernels/linalg",
    "kernels/convolution", "kernels/nn", "program", "table", "graph", "engine", "creation", "dispatch", "table/ops",
    "custom", "optimizers", "communication", "compiler", "testing",
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
    """Yield modules and names that Python code imports, also inside functions."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            yield from ((name.name, "") for name in item.names)
        elif isinstance(item, ast.ImportFrom):
            parents = package.split(".")[:len(package.split(".")) - item.level + 1] if item.level else []
            yield from ((".".join(filter(None, [*parents, item.module])), name.name) for name in item.names)


def top_level(tree):
    """Return the top-level imports of a syntax tree."""
    return ast.Module([item for item in tree.body if isinstance(item, ast.Import | ast.ImportFrom)], [])


def cython_imports(text):
    """Yield modules and names that Cython code imports and cimports at the top level."""
    for base, names, plain in IMPORT.findall(text):
        if plain:
            yield plain, ""
        names = re.sub(r"#[^\n]*", "", names)
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names):
            yield base, name


@cache
def imports(path, late=True):
    """Return the modules of this package that a file imports or cimports; `late`: also inside functions."""
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


def core_package(path):
    """Return the package of a file of _core, as named in CORE_PACKAGES."""
    return path.relative_to(PACKAGE / "_core").parent.as_posix()
