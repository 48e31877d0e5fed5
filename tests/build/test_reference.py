"""Every public name has a page or an anchor in the API reference, and inline names in documents link to it."""

import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
reference = pytest.importorskip("build_tools.reference", reason="build_tools is only in the source tree")
name_targets = pytest.importorskip("build_tools.name_targets", reason="build_tools is only in the source tree")

ANCHOR = re.compile(r"^\.\. (?:auto|py:)\w+:: ([\w.]+)(?:\n   :module: ([\w.]+))?", re.MULTILINE)
INLINE = re.compile(r"(?<![`\w}])`([^`\n]+)`(?!`)")
DOTTED = re.compile(r"(?:cygrad|nn|optim|autograd|graph|func|linalg|fft|special|distributions|functional|forward_ad)"
                    r"(?:\.[A-Za-z]\w*)+(?:\(.*\))?")
DOCUMENTS = ["README.md", "docs/quick-start.md", *sorted(
    str(path.relative_to(ROOT)) for folder in ("guide", "tutorials") for path in (ROOT / "docs" / folder).glob("*.md"))]

@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_public_name_has_an_anchor(pages):
    found = [found for text in pages.values() for found in ANCHOR.findall(text)]
    anchors = {f"{module}.{name}" if module else name for name, module in found}
    missing = sorted(set(reference.all_values()) - anchors)
    assert not missing
    assert len(anchors) > 2000


def test_every_name_is_on_a_page_that_exists(pages):
    homes = reference.homes()
    assert all(home in pages and homes[home] == home for home in homes.values())


def test_every_page_belongs_to_the_list_of_its_module(pages):
    listed = {line.strip() for text in pages.values() for line in text.partition(".. toctree::")[2].splitlines()}
    assert set(reference.homes().values()) <= listed


@pytest.mark.parametrize("module", reference.sections())
def test_every_page_has_an_example(module):
    values = reference.all_values()
    names = {reference.homes()[f"{module}.{name}"] for name in reference.public_names(module)
             if f"{module}.{name}" in reference.homes()}
    shared = {name for name in names if ":py:func:`" in reference.entry(name, values[name])}   # on the function's page
    assert not sorted(name for name in names - shared if ">>>" not in (inspect.getdoc(values[name]) or ""))


@pytest.mark.parametrize(("text", "page", "anchor"), [
    ("nn.Linear", "", "cygrad.nn.Linear"),
    ("optim.AdamW", "", "cygrad.optim.AdamW"),
    ("torch.no_grad()", "", "cygrad.no_grad"),
    ("backward()", "", "cygrad.Tensor.backward"),
    ("grad", "guide/function-transforms", "cygrad.func.grad"),
    ("Module.train()", "", "cygrad.nn.Module.train"),
    (".grad", "", "cygrad.Tensor.grad"),
    ("DataLoader", "", "cygrad.utils.data.DataLoader"),
    ("x.half()", "", "cygrad.Tensor.half"),
    ("sin_", "", "cygrad.sin_"),
    ("np.sin(x)", "", None),
    ("float", "", None),
    ("x + 1", "", None),
])
def test_inline_code_leads_to_the_anchor_of_its_name(text, page, anchor):
    assert name_targets.target(text, page) == anchor


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_dotted_name_in_the_documents_is_in_the_reference(document):
    """Inline code with a public module in front names something that has an anchor."""
    path = ROOT / document
    if not path.exists():
        pytest.skip("documents are only in the source tree")
    page = document.removeprefix("docs/").removesuffix(".md")
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {name for name in INLINE.findall(text) if DOTTED.fullmatch(name)}
    assert not sorted(name for name in names if name_targets.target(name, page) is None)
