"""Structure of the source tree: imports point down, generated code is not committed."""

import ast
import re
import subprocess
from functools import cache

import pytest

from build_tools.structure import CORE_PACKAGES, PACKAGE, ROOT, core_package, files, imports, module_of

SOURCES = {".py", ".pyx", ".pxd", ".h"}

# The layers of Python packages, bottom first. The namespace of the package is the last thing below nn, optim and utils,
# which are written as a user would write them.
LAYERS = [
    {"_core", "_system", "config"},
    {"operators"},
    {"autograd", "composite", "conversion", "fft", "linalg", "printing", "random"},
    {"special", "tensor_methods"},
    {"cygrad"},
    {"compiling", "distributed", "distributions", "func", "multiprocessing", "nn", "optim", "profiler", "safetensors",
     "serialization", "signal", "sparse", "utils"},
    {"array_api", "compatibility", "notebook", "numpy", "numpy_protocols"},
    {"__main__"},
]
# What the build reads before anything is compiled.
TABLE_READERS = {"program.expression", "program.instruction", *(f"table.{name}" for name in (
    "expansion", "formula", "layout", "lowering", "recorded", "signature"))}
# Pairs of modules, the first of which is only loaded by the second so that one import brings both.
LOADED_WITH = {}
WITH_GIL = {
    "engine": "Python code of a graph that a team runs: on the calling thread, without any lock",
    "storage": "called by the interpreter itself, which has the GIL; nothing of ours is held",
}

pytestmark = pytest.mark.skipif(not (ROOT / "build_tools").is_dir(), reason="only in the source tree")


def core_name(module):
    """The name of a module within _core, as "graph.tensor"; None for others."""
    return module.removeprefix("cygrad._core.") if module.startswith("cygrad._core.") else None


@cache
def core_imports(name):
    """Return the imports of a module of _core from _core: of its implementation, and of its .pxd."""
    found = set()
    for path in PACKAGE.glob(f"_core/{name.replace('.', '/')}.*"):
        if path.suffix in (".py", ".pyx", ".pxd"):
            found |= set(filter(None, map(core_name, imports(path))))
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


def test_every_package_of_the_core_is_listed_and_documented():
    """`_core` imports only the compiled modules; its packages have docstrings."""
    core = PACKAGE / "_core"
    folders = {core_package(path) for path in files(".py", ".pyx", ".pxd", ".h", ".cpp", ".c")
               if path.is_relative_to(core)}
    assert folders == {".", *CORE_PACKAGES}
    own = {"__init__.py", "__init__.pxd", "import_module.c"}
    assert {path.name for path in committed() if path.parent == core} == own
    for name in CORE_PACKAGES:
        tree = ast.parse((core / name / "__init__.py").read_text())
        says = ast.get_docstring(tree) or ""
        told = re.search(r"\bKnows?\b.*\b([Nn]ever|nothing)\b.*\bRead\b", says, re.DOTALL)
        assert len(tree.body) == 1 and told, f"{name}/__init__.py: what it knows, never knows, and what to read first"


def test_packages_import_from_packages_below():
    """Files include, import and cimport only from their own package or those before it."""
    place = {name: number for number, name in enumerate(CORE_PACKAGES)}
    upward = {}
    for path in files(".py", ".pyx", ".pxd", ".h", ".cpp"):
        if not path.is_relative_to(PACKAGE / "_core") or core_package(path) == ".":
            continue
        if path.suffix in (".py", ".pyx", ".pxd"):
            found = {name.rpartition(".")[0].replace(".", "/") for name in map(core_name, imports(path)) if name}
        else:
            found = set()
        named = re.findall(r'(?:#include|extern from) "([\w/]+)/\w+\.h"', path.read_text())
        above = {name for name in found | set(named) if name in place and place[name] > place[core_package(path)]}
        if above:
            upward[str(path.relative_to(ROOT))] = sorted(above)
    assert not upward


def test_contracts_form_no_cycle():
    """Only implementations cimport each other's .pxd files; these do not cimport each other."""
    remaining = {}
    for path in PACKAGE.glob("_core/**/*.pxd"):
        if path.stem != "__init__":
            remaining[core_name(module_of(path))] = set(filter(None, map(core_name, imports(path))))
    while remaining:
        ready = [name for name, needs in remaining.items() if not needs & set(remaining)]
        assert ready, f"these contracts cimport each other in a circle: {sorted(remaining)}"
        for name in ready:
            del remaining[name]


# Interfaces for functions and objects of higher layers: see "Layers" in design.md.
UPWARD_DOORS = {
    "table.operator",      # the table of operators: what calls them, what documents them
    "graph.tensor",        # protocol and provided
}


def stores_arguments(path):
    """Names of the functions that keep an argument in a variable of their module, and of its structs of functions."""
    text = path.read_text()
    functions = set()
    definition = r"^(?:cdef [\w ]+?|def )\*?(\w+)\(([^)]*)\)[^\n]*:\n((?:(?: {4}[^\n]*)?\n)+)"
    for name, parameters, body in re.findall(definition, text, re.MULTILINE):
        names = {part.split("=")[0].split()[-1 if " not None" not in part else -3].strip("*")
                 for part in parameters.split(",") if part.split("=")[0].split()}
        for variable in re.findall(r"^    global ([\w, ]+)", body, re.MULTILINE):
            for one in variable.split(", "):
                if re.search(rf"^    {one} = ({'|'.join(map(re.escape, names)) or '$'})$", body, re.MULTILINE):
                    functions.add(name)
        if re.search(rf"^    (?:\w+\.update\(|\w+\[[^]]+\] = )({'|'.join(map(re.escape, names)) or '$'})\b", body,
                     re.MULTILINE) and not re.search(r"^    cdef", body):
            functions.add(name)
    structs = set(re.findall(r"^cdef \w+_t (\w+)$", text, re.MULTILINE))
    return functions, structs


def test_layers_reach_up_through_few_doors():
    """Modules pass objects to lower layers at import through these interfaces only."""
    kept = {core_name(module_of(path)): stores_arguments(path) for path in files(".pyx")}
    place = {name: number for number, name in enumerate(CORE_PACKAGES)}
    found = set()
    for path in files(".pyx", ".py"):
        text, module = path.read_text(), core_name(module_of(path))
        own = place[core_package(path)] if module and core_package(path) in place else len(place)
        for lower in filter(None, map(core_name, imports(path))):
            functions, structs = kept.get(lower, (set(), set()))
            if place.get(lower.rpartition(".")[0].replace(".", "/"), own) >= own:
                continue
            if any(re.search(rf"^{name}\(", text, re.MULTILINE) for name in functions) or any(
                    re.search(rf"^ *{name}\.\w+ = ", text, re.MULTILINE) for name in structs):
                found.add(lower)
    assert found <= UPWARD_DOORS and "graph.tensor" in found


@pytest.mark.parametrize("name", sorted(TABLE_READERS))
def test_table_is_read_by_plain_python(name):
    assert (PACKAGE / "_core" / f"{name.replace('.', '/')}.py").exists()
    assert not reaches(name) - TABLE_READERS


@pytest.mark.parametrize("name", ["plan", "node_run"])
def test_what_runs_the_graph_knows_no_operator(name):
    """The engine runs nodes through a function pointer, independent of dispatch and operators."""
    objects = ("graph.tensor", "graph.native", "graph.inplace", "engine.engine", "dispatch.")
    assert not {other for other in reaches(f"engine.{name}") if other.startswith(objects)}


# What may be called in which files: one door each. Sources in Cython and C, by pattern.
DOORS = {
    r"\bcblas_\w+\(|\bscipy_\w+": {"kernels/linalg"},
}


@pytest.mark.parametrize("pattern", DOORS)
def test_one_door(pattern):
    sources = [path for path in files(".pyx", ".pxd", ".h", ".cpp", ".c") if path.is_relative_to(PACKAGE / "_core")]
    found = {core_package(path) for path in sources if re.search(
        pattern, re.sub(r"(?m)#(?!pragma|include)[^\n]*|^\s*\*[^\n]*", "", path.read_text()))}
    assert found == DOORS[pattern]


@pytest.mark.parametrize(("pattern", "place"), [
    (r"<sys/mman\.h>|\bmadvise\(", "system_memory.h"), (r"<dlfcn\.h>|\bdladdr\(", "parallel.pyx"),
    (r"\bmemfd_create\(|\bsched_getaffinity\(", "_system.py"), (r"/sys/fs/cgroup", "storage.pyx"),
])
def test_services_of_the_operating_system_have_one_place(pattern, place):
    """A port to another system begins with these files."""
    sources = files(".py", ".pyx", ".pxd", ".h", ".c", ".cpp")
    assert {path.name for path in sources if re.search(pattern, path.read_text())} == {place}


def test_base_names_of_compiled_modules_are_unique():
    """A library exports PyInit_<base name> for each module."""
    names = [path.stem for path in files(".pyx")]
    assert len(names) == len(set(names))


# ------------------------------------------------------------------------------------------------------- the files

def committed():
    """Files under version control; those in the tree where there is none, as in an unpacked sdist."""
    answer = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip("no git here")
    return [ROOT / name for name in answer.stdout.splitlines()]


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


def test_threads_have_one_door():
    """Nothing else has threads made, or speaks to OpenMP but through its contract."""
    def mentions(text):
        return {path.name for path in files(".pyx", ".pxd", ".h", ".c", ".cpp") if re.search(text, path.read_text())}

    assert mentions(r"pthread_create|#\s*pragma omp|<omp\.h>|cython\.parallel") == {"openmp_region.h"}
    assert mentions(r'"threads/openmp_region\.h"') == {"openmp.pxd"}
    assert {path.stem for path in files(".pyx", ".py") if re.search(r"\bomp_\w+\(", path.read_text())} == {"parallel"}


def test_private_functions_begin_with_an_underscore():
    """C functions that no contract declares; kernels and loops are entries of tables, which go by their names."""
    wrong = []
    for path in files(".pyx"):
        contract = path.with_suffix(".pxd")
        declared = contract.read_text() if contract.exists() else ""
        for name in re.findall(r"^cdef (?!class)(?:inline )?[^\n=(]*?\b([a-z]\w*)\(", path.read_text(), re.MULTILINE):
            if not name.endswith(("_kernel", "_loop")) and not re.search(rf"\b{name}\(", declared):
                wrong.append(f"{path.name}: {name}")
    assert not wrong


def test_structs_have_one_meaning():
    """Names are defined once in headers, and may be declared once in Cython."""
    for suffixes, pattern in (((".pyx", ".pxd"), r"^(?:cdef|ctypedef) (?:packed )?(?:struct|union|enum) (\w+)"),
                              ((".h",), r"^\} (\w+_t);")):
        names = [name for path in files(*suffixes) for name in re.findall(pattern, path.read_text(), re.MULTILINE)]
        assert names and len(names) == len(set(names)), {name for name in names if names.count(name) > 1}


def test_nothing_is_left_undone():
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|^include ", re.MULTILINE)
    assert not {str(path.relative_to(ROOT)) for path in files(*SOURCES) if marks.search(path.read_text())}
