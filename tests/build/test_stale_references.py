"""Every file that documents, comments and docstrings name exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cygrad", "tests", "build_tools", "benchmarks", "docs", "examples")
NAME = re.compile(rf"\b((?:{'|'.join(FOLDERS)})/[\w/.-]*\w\.(?:py|pyx|pxd|h|toml|md|txt|svg))\b")
MADE = ("docs/generated/", "cygrad/_core/build_config.py")       # by the build
PLACEHOLDER = re.compile(r"NAME\.|/test_[XY]\.py$")
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")] + [
    path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".pyx", ".pxd", ".h", ".toml", ".md"} and "generated" not in path.parts]


def test_named_files_exist():
    found = {f"{path.relative_to(ROOT)} names {name}" for path in TEXTS for name in NAME.findall(path.read_text())
             if not name.startswith(MADE) and not PLACEHOLDER.search(name) and not (ROOT / name).exists()}
    assert not found, "\n".join(sorted(found))


def test_files_of_the_core_named_in_backticks_exist():
    """In documents `graph/boxing` is a module of `cygrad/_core`, with or without its suffix."""
    core = ROOT / "cygrad" / "_core"
    folders = "|".join(path.name for path in core.iterdir() if path.is_dir() and path.name != "__pycache__")
    name = re.compile(rf"`((?:{folders})/[\w/.]+)`")
    found = {f"{path.relative_to(ROOT)} names {module}" for path in sorted((ROOT / "docs").rglob("*.md"))
             if "generated" not in path.parts for module in name.findall(path.read_text())
             if not list(core.glob(module.rstrip("/"))) and not list(core.glob(f"{module}.*"))}
    assert not found, "\n".join(sorted(found))
