"""Steps of `make docs` other than Sphinx: link check, notebooks, reference pages."""

import json
from pathlib import Path

import pytest

check_pages = pytest.importorskip("build_tools.check_pages", reason="build_tools is only in the source tree")
from build_tools import documents, gallery, notebooks, reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def test_links_are_followed(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">1</a><a href="b.html#lost">2</a><a href="gone.html">3</a>'
        '<a href="#top">4</a><a href="#lost">5</a><a href="https://example.org/x">6</a>'
        '<img src="https://example.org/y.png">'
        '<script src="https://example.org/z.js"></script><img src="data:image/png;base64,AA"><a href="folder/">7</a>')
    (tmp_path / "b.html").write_text('<p id="there">B</p><link rel="stylesheet" href="style.css">')
    (tmp_path / "folder").mkdir()
    assert check_pages.mistakes(tmp_path) == [
        "a.html: no such place as b.html#lost", "a.html: no file for gone.html", "a.html: no such place as #lost",
        "a.html: loads https://example.org/y.png", "a.html: loads https://example.org/z.js",
        "a.html: no file for folder/", "b.html: no file for style.css"]
    assert check_pages.without_anchor(tmp_path, ["there", "cygrad.lost"]) == ["no place for cygrad.lost"]


def test_tutorials_become_notebooks(tmp_path):
    text = ("---\nfile_format: mystnb\n---\n\n# Title\n\nSee {doc}`/guide/hooks` and {doc}`this <x/y>`.\n\n"
            "```{code-cell} ipython3\na = 1\nb = 2\n```\n\nEnd.\n")
    assert notebooks.cells(text) == [("markdown", "# Title\n\nSee {doc}`/guide/hooks` and {doc}`this <x/y>`."),
                                     ("code", "a = 1\nb = 2"), ("markdown", "End.")]
    (tmp_path / "one.md").write_text(text)
    notebooks.write_notebooks(tmp_path, tmp_path / "out")
    made = json.loads((tmp_path / "out" / "one.ipynb").read_text())
    assert made["nbformat"] == 4 and [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code", "markdown"]
    assert made["cells"][0]["source"][-1] == "See hooks and this."
    assert made["cells"][1]["source"] == ["a = 1\n", "b = 2"]


def test_the_page_of_a_function_has_derivative_relatives_and_source():
    homes = reference.homes()
    assert homes["cygrad.sin_"] == homes["cygrad.sin"] == "cygrad.sin"
    assert homes["cygrad.arctan2"] == "cygrad.atan2" and homes["cygrad.clip_"] == homes["cygrad.clip"]
    page = reference.pages()["cygrad.sin"]
    assert ".. autofunction:: cygrad.sin\n" in page and "``cygrad.sin_``" in page
    assert r"g_{x} = g \cdot \overline{\cos x}" in page
    assert ":py:obj:`cygrad.Tensor.sin`" in page and "trigonometric.toml" in page


def test_the_page_of_a_method_leads_to_the_function():
    page = reference.pages()["cygrad.Tensor.sin"]
    assert ".. py:method:: cygrad.Tensor.sin_" in page and ":py:func:`cygrad.sin`" in page


def test_figures_of_the_first_page_are_in_the_readme():
    text = documents.figures((ROOT / "README.md").read_text())
    assert text.count("figure-number") == 3 == len(documents.FIGURES)


def test_gallery_shows_all_examples():
    page = (ROOT / "docs" / "gallery.md").read_text()
    for name, (picture, _) in gallery.EXAMPLES.items():
        assert (ROOT / "examples" / f"{name}.py").exists()
        assert f"generated/gallery/{picture}" in page and f":link: generated/gallery/{name}\n" in page
        assert f"literalinclude}} ../../../examples/{name}.py" in gallery.page(ROOT, name)
