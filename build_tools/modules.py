"""Which extension modules there are, and what each is built from."""

import os
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy
from setuptools import Extension

from build_tools import openblas
from build_tools.configuration import MACROS, Configuration

CORE = Path("cygrad/_core")
OPERATOR_TABLE = CORE / "ops"
# Laid out as the package, so that .pxd files made there are found by `from cygrad._core.NAME cimport`.
GENERATED_ROOT = Path("build/generated")
GENERATED = GENERATED_ROOT / CORE
OPENBLAS_MARKER = "# cygrad: openblas"


def find(configuration: Configuration, link_dir: Path) -> list[Extension]:
    """All extension modules, or those named by CYGRAD_MODULES=storage,array."""
    sources = {module_name(path): path for path in sorted(CORE.rglob("*.pyx"))}
    sources |= {f"cygrad._core.{path.stem}": path for path in generated_sources()}
    return [
        extension(name, path, configuration, link_dir)
        for name, path in selected(sources).items()
    ]


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def generated_sources() -> list[Path]:
    """Modules made from the operator table; none as long as there is no generator."""
    if find_spec("build_tools.generate") is None:
        return []
    from build_tools.generate import generate

    return sorted(Path(path) for path in generate(OPERATOR_TABLE, GENERATED))


def selected(sources: dict[str, Path]) -> dict[str, Path]:
    wanted = [name for name in os.environ.get("CYGRAD_MODULES", "").split(",") if name]
    if not wanted:
        return sources
    chosen = {name: path for name, path in sources.items() if name.rpartition(".")[2] in wanted}
    missing = set(wanted) - {name.rpartition(".")[2] for name in chosen}
    if missing:
        raise SystemExit(f"CYGRAD_MODULES: no such module (got {', '.join(sorted(missing))}).")
    return chosen


def extension(name: str, source: Path, configuration: Configuration, link_dir: Path) -> Extension:
    linked = {}
    if needs_openblas(source):
        # From the module's own directory up to cygrad/_core, where the library lies.
        up = "/.." * (name.count(".") - 2)
        linked = {
            "libraries": [openblas.LINK_NAME],
            "library_dirs": [str(link_dir)],
            "runtime_library_dirs": [f"$ORIGIN{up}"],
        }
    return Extension(
        name,
        [str(source)],
        include_dirs=[numpy.get_include(), openblas.include_dir(), str(CORE)],
        define_macros=MACROS,
        extra_compile_args=configuration.compile_args,
        extra_link_args=configuration.link_args,
        depends=[str(header) for header in sorted(CORE.rglob("*.h"))],
        **linked,
    )


def needs_openblas(source: Path) -> bool:
    with source.open() as lines:
        return any(line.strip() == OPENBLAS_MARKER for line in islice(lines, 10))
