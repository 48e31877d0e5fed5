"""The shape of the source tree: imports point down, files stay small, generated code is not committed."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cygrad"
MOST_LINES = 600
SOURCES = {".py", ".pyx", ".pxd", ".h"}
IMPORT = re.compile(r"^(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|[^\n]*)|c?import\s+([\w.]+))", re.MULTILINE)

# The layers of Python packages, bottom first. The namespace of the package is the last thing below nn, optim and utils,
# which are written as a user would write them.
LAYERS = [
    {"_core", "config"},
    {"operators"},
    {"autograd", "composite", "conversion", "fft", "linalg", "printing", "random"},
    {"special", "tensor_methods"},
    {"cygrad"},
    {"nn", "optim", "safetensors", "serialization", "utils"},
]
# In _core: these know of no other module than each other. Memory, types, and the doors to threads and to BLAS.
FOUNDATION = {
    "array", "atomic", "blas", "blas_loading", "dtype", "errors", "large_blocks", "parallel", "references", "slabs",
    "storage", "thread_limits", "workers",
}
# What reads the operator table: plain Python, so that the generator can use it before anything is compiled.
TABLE_READERS = {"formula", "layout", "lowering", "recorded", "signature"}
# Objects of the graph, and what runs it.
GRAPH = {"node", "accumulate", "plan", "run", "team"}
OBJECTS = {"tensor", "dispatch", "native", "inplace", "engine"}
# Kernels that are at home above the tensor, each with the reason.
HIGH_KERNELS = {"assign": "copy_ and fill_ are methods of Tensor; the kernel `copy` stands beside them"}
# Pairs of modules, the first of which is only loaded by the second so that one import brings both.
LOADED_WITH = {("products", "affine_products")}
WITH_GIL = {
    "engine": "Python code of a graph that a team runs: on the calling thread, without any lock",
    "references": "called by the interpreter itself, which has the GIL; nothing of ours is held",
}

pytestmark = pytest.mark.skipif(not (ROOT / "build_tools").is_dir(), reason="only in the source tree")


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


def core_modules():
    return {module.rpartition(".")[2] for module in known_modules() if module.startswith("cygrad._core.")}


@cache
def core_imports(name):
    """What a module of _core imports from _core: its implementation, and its contract."""
    found = set()
    for path in PACKAGE.glob(f"_core/{name}.*"):
        if path.suffix in (".py", ".pyx", ".pxd"):
            found |= {module.rpartition(".")[2] for module in imports(path) if module.startswith("cygrad._core.")}
    return found - {name} - {after for before, after in LOADED_WITH if before == name}


@cache
def reaches(name):
    """All modules of _core that this one needs, directly or not."""
    found, stack = set(), [name]
    while stack:
        for other in core_imports(stack.pop()) - found:
            found.add(other)
            stack.append(other)
    return found


def layer(module):
    """Which layer a module belongs to; the lowest is 0."""
    part = module.split(".")[1] if "." in module else "cygrad"
    for number, names in enumerate(LAYERS):
        if part in names:
            return number
    pytest.fail(f"{module} has no layer: enter cygrad/{part} in LAYERS, as low as it can be")


# ------------------------------------------------------------------------------------------------------- imports

def test_imports_point_down():
    upward = {}
    for path in files(".py", ".pyx", ".pxd"):
        module = module_of(path)
        if module != "cygrad":      # its imports are what makes the public namespace
            above = {other for other in imports(path) if layer(other) > layer(module)}
            # When a function runs, the namespace of the package is complete, and the function may use it.
            above -= {"cygrad"} - imports(path, late=False)
            if above:
                upward[str(path.relative_to(ROOT))] = sorted(above)
    assert not upward


def test_core_has_no_cycles():
    """Contracts are files of their own, so only implementations may need each other's contracts: structs are shared."""
    contracts = {}
    for path in PACKAGE.glob("_core/*.pxd"):
        contracts[path.stem] = {module.rpartition(".")[2] for module in imports(path)} - {path.stem, "_core"}
    order, remaining = [], dict(contracts)
    while remaining:
        ready = [name for name, needs in remaining.items() if not needs & set(remaining)]
        assert ready, f"these contracts cimport each other in a circle: {sorted(remaining)}"
        order += ready
        for name in ready:
            del remaining[name]


@pytest.mark.parametrize("name", sorted(FOUNDATION))
def test_foundation_stands_alone(name):
    assert not core_imports(name) - FOUNDATION


@pytest.mark.parametrize("name", sorted(TABLE_READERS))
def test_table_is_read_by_plain_python(name):
    assert (PACKAGE / "_core" / f"{name}.py").exists()
    assert not reaches(name) - TABLE_READERS


def test_kernels_know_arrays_never_nodes():
    kernels = {path.stem for path in PACKAGE.glob("_core/*.pyx") if 'register_kernel("' in path.read_text()}
    assert len(kernels) > 20
    assert not {name: found for name in kernels - set(HIGH_KERNELS) if (found := reaches(name) & (GRAPH | OBJECTS))}


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_what_runs_the_graph_knows_no_operator(name):
    """Nodes are run by a function pointer: nothing here knows tensors, dispatch, or what an operator computes."""
    assert not reaches(name) & OBJECTS
    assert not {other for other in reaches(name) if other.startswith("functions_") or other == "kernels"}


# ------------------------------------------------------------------------------------------------------- the files

def committed():
    """Files under version control; those in the tree where there is none, as in an unpacked sdist."""
    answer = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip("no git here")
    return [ROOT / name for name in answer.stdout.splitlines()]


def lines_of(path):
    return len(path.read_text().splitlines())


def test_files_are_not_too_long():
    """Beyond this, a file has more than one concept and wants a split."""
    folders = ("cygrad", "build_tools", "tests", "benchmarks", "examples")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")
             if path.suffix in SOURCES and path.name != "__init__.pyi"]
    assert not {str(path.relative_to(ROOT)): lines_of(path) for path in found if lines_of(path) > MOST_LINES}


def test_modules_say_what_they_are():
    silent = []
    for path in files(".py", ".pyx", ".pxd"):
        text = re.sub(r"\A(\s*#[^\n]*\n)+", "", path.read_text()).lstrip()
        if text and not text.startswith('"""'):
            silent.append(str(path.relative_to(ROOT)))
    assert not silent


def test_generated_code_is_not_committed():
    """C and C++ of our own is fine; what Cython writes says so in its first line."""
    generated = [path for path in committed()
                 if path.suffix in (".so", ".pyi") or path.stem.startswith("functions_")
                 or (path.suffix in (".c", ".cpp") and "Cython" in path.read_text()[:200])
                 or path.name == "build_config.py" or "generated" in path.parts]
    assert not generated


def test_gil_is_not_taken_in_nogil_code():
    """A contract may name the type of a function that a module of the list defines."""
    taking = {path.stem for path in files(".pyx") if "with gil" in re.sub(r"#[^\n]*", "", path.read_text())}
    assert taking == set(WITH_GIL)


def test_nothing_is_left_undone():
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|^include ", re.MULTILINE)
    assert not {str(path.relative_to(ROOT)) for path in files(*SOURCES) if marks.search(path.read_text())}
