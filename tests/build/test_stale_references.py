"""Every file and identifier that documents, comments and docstrings name exists."""

import builtins
import keyword
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cygrad", "tests", "build_tools", "benchmarks", "docs", "examples")
NAME = re.compile(rf"\b((?:{'|'.join(FOLDERS)})/[\w/.-]*\w\.(?:py|pyx|pxd|h|toml|md|txt|svg))\b")
MADE = ("docs/generated/", "cygrad/_core/build_config.py")       # by the build
PLACEHOLDER = re.compile(r"NAME\.|/test_[XY]\.py$")
# Programs of users, and files of other software.
FOREIGN = {"NAME.py", "NAME.pyx", "Python.h", "hubconf.py", "program.py", "stdatomic.h", "train.py",
           "your_pytorch_program.py"}
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")] + [
    path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".pyx", ".pxd", ".h", ".toml", ".md"} and "generated" not in path.parts]


def test_named_files_exist():
    found = {f"{path.relative_to(ROOT)} names {name}" for path in TEXTS for name in NAME.findall(path.read_text())
             if not name.startswith(MADE) and not PLACEHOLDER.search(name) and not (ROOT / name).exists()}
    assert not found, "\n".join(sorted(found))


def test_named_sources_without_folder_exist():
    names = FOREIGN.union({"setup.py", "pyproject.toml"},
                          *({path.name for path in (ROOT / folder).rglob("*")} for folder in FOLDERS))
    found = set()
    for path in TEXTS:
        prose = path.read_text() if path.suffix == ".md" else comments_and_code(path)[0]
        found |= {f"{path.relative_to(ROOT)} names {name}"
                  for name in re.findall(r"\b\w+\.(?:py|pyx|pxd|h|cpp|toml)\b", prose) if name not in names}
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


C_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
TOKENS = re.compile(r"""\"{3}(?:\\.|[^\\])*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*""", re.DOTALL)
# Names of other software, and placeholders.
ELSEWHERE = {
    "AsStridedBackward", "CompiledFunctionBackward", "EdgeIndex", "LogSoftmaxBackward0", "OPENBLAS_CORETYPE",
    "PermuteBackward", "Queue", "_input_metadata", "cancel", "critical", "custom_vjp", "defvjp", "functorch",
    "grad_dtype", "grainsize", "graphviz", "incompatible_keys", "lax", "name_", "new_", "omp_lock_t", "openmpi",
    "priority", "pydot", "scan", "t1", "taskgroup", "taskloop", "taskyield"}


def comments_and_code(path):
    """Split a file into its comments and docstrings, and the rest."""
    text, comments = path.read_text(), []

    def move(match):
        token = match[0]
        before = text[:match.start()].rstrip()
        if token.startswith(("#", "//", "/*")) or (
                token.startswith('"' * 3) and (before.endswith("doc =") if path.suffix == ".toml" else
                                               not before.endswith(("=", "(", "return")))
                and "cdef extern" not in before[before.rfind("\n"):]):
            comments.append(token)
            return " "
        return token

    code = (C_TOKENS if path.suffix in {".h", ".c", ".cpp"} else TOKENS).sub(move, text)
    return "\n".join(comments), code


def test_identifiers_in_backticks_exist():
    """A name in backticks, dotted or called, occurs in code as well."""
    known, prose = {*keyword.kwlist, *dir(builtins), *ELSEWHERE}, {}
    for folder in ("cygrad", "tests", "build_tools", "benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".pyx", ".pxd", ".h", ".c", ".cpp", ".toml", ".pyi"}:
                prose[path], code = comments_and_code(path)
                known.update(re.findall(r"[A-Za-z_]\w*", code), [path.stem], path.relative_to(ROOT).parts)
    for name in ("setup.py", "Makefile", "pyproject.toml"):
        known.update(re.findall(r"[A-Za-z_]\w*", (ROOT / name).read_text()))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        known.add(path.stem)
        if "generated" not in path.parts and path.name != "compatibility_names.md":      # lists what is absent
            prose[path] = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    found = {f"{path.relative_to(ROOT)} names {match[1]}" for path, text in prose.items()
             for match in re.finditer(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)", text)
             if not known.issuperset(match[1].rstrip(".").split("."))}
    assert not found, "\n".join(sorted(found))
