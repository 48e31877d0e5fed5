"""Every public docstring exists, has a summary, and its examples run; so does the README's code."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import cygrad
from cygrad import nn

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
NAMES = {"cygrad": cygrad, "nn": nn, "F": nn.functional}         # what examples in docstrings assume to be imported
# Types of Python and NumPy under another name, and numbers, have foreign docstrings.
CALLABLES = {name: value for name, value in vars(cygrad).items()
             if not name.startswith("_") and callable(value) and not inspect.ismodule(value)}
FUNCTIONS = {name: value for name, value in CALLABLES.items() if not isinstance(value, (type, cygrad.dtype))}


def modules():
    """The package and all its Python modules; of the core those which hold public objects are found through these."""
    yield cygrad
    for found in pkgutil.walk_packages(cygrad.__path__, "cygrad."):
        if not found.name.startswith("cygrad._core"):
            yield importlib.import_module(found.name)


def documented():
    """Qualified name -> docstring, each docstring once."""
    found, seen = {}, set()

    def add(name, thing):
        doc = getattr(thing, "__doc__", None)
        if isinstance(doc, str) and not isinstance(thing, (cygrad.Tensor, cygrad.dtype)) and doc not in seen:
            seen.add(doc)
            found[name] = doc

    for module in modules():
        add(module.__name__, module)
        for name, thing in list(vars(module).items()):
            home = getattr(thing, "__module__", None) or ""
            if name.startswith("_") or not home.startswith("cygrad") or inspect.ismodule(thing):
                continue
            add(f"{module.__name__}.{name}", thing)
            if isinstance(thing, type):
                for member, value in list(vars(thing).items()):
                    if not member.startswith("__"):
                        add(f"{module.__name__}.{name}.{member}", getattr(value, "fget", value))
    return found


EXAMPLES = {name: doc for name, doc in documented().items() if ">>>" in doc}


@pytest.fixture(autouse=True)
def state_restored():
    """Examples may set defaults; the next test finds them as they were."""
    dtype, printing = cygrad.get_default_dtype(), cygrad.get_printoptions()
    yield
    cygrad.set_default_dtype(dtype)
    cygrad.set_printoptions(**printing)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(NAMES), name, None, None)
    report = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_documented(name):
    doc = inspect.getdoc(FUNCTIONS[name])
    assert doc, f"cygrad.{name} has no docstring"
    summary = doc.partition("\n\n")[0].strip()
    assert summary[-1] in ".?", f"cygrad.{name}: the summary is no sentence: {summary!r}"
    assert len(summary) <= 240, f"cygrad.{name}: the summary is not short: {summary!r}"
    assert "Examples\n--------\n" in doc, f"cygrad.{name} has no examples"
    assert doc.count(">>>") >= 1


@pytest.mark.parametrize("name", [name for name in vars(cygrad.Tensor) if not name.startswith("_")])
def test_member_of_tensor_is_documented(name):
    member = vars(cygrad.Tensor)[name]
    assert inspect.getdoc(member), f"Tensor.{name} has no docstring"


TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(path, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("scipy")
    notebooks = pytest.importorskip("build_tools.notebooks", reason="build_tools is only in the source tree")
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    threads, names = cygrad.get_num_threads(), {"__name__": "__tutorial__"}
    code = [text for kind, text in notebooks.cells(path.read_text()) if kind == "code"]
    assert len(code) > 2
    try:
        for number, text in enumerate(code):
            exec(compile(text, f"{path.stem}[{number}]", "exec"), names)
    finally:
        cygrad.set_num_threads(threads)
        pyplot.close("all")


# Every page that shows Python code; of the page on new operators some blocks are parts of files.
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for folder in ("docs", "docs/guide")
                   for path in (ROOT / folder).glob("*.md")
                   if FENCE.search(path.read_text()) and path.name != "adding-an-operator.md")


@pytest.mark.parametrize("document", ["README.md", *DOCUMENTS])
def test_code_in_documents_runs(document, tmp_path, monkeypatch):
    path = ROOT / document
    if not path.exists():
        pytest.skip("documents are only in the source tree")
    blocks = FENCE.findall(path.read_text())
    assert blocks, f"{document} shows no Python code"
    monkeypatch.chdir(tmp_path)
    shared = {"__name__": "__document__"}
    for number, block in enumerate(blocks):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, shared, f"{document}[{number}]", document, 0)
            report = []
            doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
            assert not report, "".join(report)
            shared = test.globs
        else:
            exec(compile(block, f"{document}[{number}]", "exec"), shared)
