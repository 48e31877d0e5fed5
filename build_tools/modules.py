"""Extension modules, their sources, and the library of each."""

import os
import re
from itertools import islice
from pathlib import Path

import numpy
from setuptools import Extension

from build_tools import openblas
from build_tools.configuration import MACROS, Configuration

CORE = Path("cygrad/_core")
OPERATOR_TABLE = CORE / "table" / "ops"
OPENBLAS_MARKER = "# cygrad: openblas"
# Marks modules with thread-local variables in static TLS.
NEAR_VARIABLES = '#include "memory/thread_variable.h"'
# Modules for tests, in a separate library that is not installed.
TESTING = CORE / "testing"
# Replacements of Python's functions in each library.
REPLACED = {"PyImport_ImportModule": CORE / "import_module.c"}


class Library(Extension):
    """
    A shared object of several modules, one extension for setuptools.

    Loading one large library is much faster than loading a library per module.
    """

    def __init__(self, name: str, modules: list[Extension], code: list[Extension], **linked):
        super().__init__(name, [source for module in modules for source in module.sources], **linked)
        self.modules = modules
        self.code = code        # C and C++ files, linked once


def find(configuration: Configuration, link_dir: Path) -> list[Library]:
    """
    Return the libraries. `module.chosen`: build it, by CYGRAD_MODULES=storage,array?

    A library that is loaded late gets little static TLS, for all of its thread-local variables or none. So modules with
    THREAD_VARIABLE are in a separate library, with copies of the C++ code whose headers they include.
    """
    sources = {module_name(path): path for path in sorted(CORE.rglob("*.pyx"))}
    check_names(sources)
    chosen = selected(sources)
    testing = {name for name, path in sources.items() if path.parent == TESTING}
    near = {name for name, path in sources.items() if NEAR_VARIABLES in path.read_text()} - testing
    testing_code = sorted(TESTING.glob("*.cpp"))
    all_code = sorted(set(CORE.rglob("*.cpp")) - set(testing_code))
    near_text = "".join(sources[name].read_text() for name in near)
    near_code = [path for path in all_code if str(path.with_suffix(".h").relative_to(CORE)) in near_text]
    libraries = []
    for name, names, code in (("compiled", sources.keys() - near - testing, all_code),
                              ("compiled_near", near, near_code), ("compiled_testing", testing, testing_code)):
        modules = [extension(module, sources[module], configuration) for module in sorted(names)]
        for module in modules:
            module.chosen = module.name in chosen
        linked = openblas_linked(link_dir) if any(needs_openblas(sources[name]) for name in names) else {}
        files = [extension(path.stem, path, configuration) for path in (*code, *REPLACED.values())]
        libraries.append(Library(
            f"cygrad._core.{name}", modules, files, language="c++", **linked,
            extra_link_args=configuration.link_args + [f"-Wl,--wrap={function}" for function in REPLACED]))
    return libraries


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def check_names(sources: dict[str, Path]) -> None:
    """Check that base names differ, because a library exports `PyInit_<base name>`."""
    taken: dict[str, str] = {}
    for name in sources:
        base = name.rpartition(".")[2]
        if base in taken:
            raise SystemExit(f"{name}: the base name of a compiled module must be its own (taken by {taken[base]}).")
        taken[base] = name


def registers_kernels(source: Path) -> bool:
    """Return whether a module registers array kernels."""
    return bool(re.search(r"\bcimport\b[^)\n]*(\([^)]*)?\bregister_kernel\b", source.read_text()))


def selected(sources: dict[str, Path]) -> dict[str, Path]:
    wanted = [name for name in os.environ.get("CYGRAD_MODULES", "").split(",") if name]
    if not wanted:
        return sources
    chosen = {name: path for name, path in sources.items() if name.rpartition(".")[2] in wanted}
    missing = set(wanted) - {name.rpartition(".")[2] for name in chosen}
    if missing:
        raise SystemExit(f"CYGRAD_MODULES: no such module (got {', '.join(sorted(missing))}).")
    return chosen


def extension(name: str, source: Path, configuration: Configuration) -> Extension:
    return Extension(
        name,
        [str(source)],
        include_dirs=[numpy.get_include(), openblas.include_dir(), str(CORE)],
        define_macros=MACROS,
        extra_compile_args=configuration.compile_args_of(source),
        depends=[] if source.suffix == ".pyx" else sorted(map(str, headers(source))),
    )


def headers(source: Path) -> set[Path]:
    """Return our headers that a C or C++ file includes, directly or indirectly."""
    found, waiting = set(), [source]
    while waiting:
        named = {CORE / name for name in re.findall(r'^\s*#.*?"([\w/]+\.h)"', waiting.pop().read_text(), re.MULTILINE)}
        waiting += [path for path in named - found if path.exists()]
        found |= named
    return {path for path in found if path.exists()}


def openblas_linked(link_dir: Path) -> dict[str, list[str]]:
    """Return where to find our OpenBLAS: in a directory of the build, later next to the library."""
    return {
        "libraries": [openblas.LINK_NAME],
        "library_dirs": [str(link_dir)],
        "runtime_library_dirs": ["$ORIGIN"],
    }


def needs_openblas(source: Path) -> bool:
    with source.open() as lines:
        return any(line.strip() == OPENBLAS_MARKER for line in islice(lines, 10))
