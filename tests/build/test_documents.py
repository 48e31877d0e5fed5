"""Generated pages of the documentation."""

import re
from pathlib import Path

import pytest

documents = pytest.importorskip("build_tools.documents", reason="build_tools is only in the source tree")
import tomllib  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
WORDS, BEHAVIOR = ROOT / "docs" / "guarantees.toml", ROOT / "tests" / "behavior"
MARKED = '@pytest.mark.guarantee("X1")\n'


def test_every_row_with_tests_has_words():
    words = {row for rows in tomllib.loads(WORDS.read_text()).values() for row in rows if row not in ("title", "page")}
    tested = set(documents.guarantee_tests(BEHAVIOR))
    assert tested
    assert not tested - words


def test_rows_without_tests_are_not_promised(tmp_path):
    (tmp_path / "test_X.py").write_text(
        MARKED + "def test_one():\n    pass\n\n\n" + MARKED + "def test_two():\n    pass\n")
    (tmp_path / "test_Y.py").write_text("pytestmark = " + MARKED[1:] + "def test_three():\n    pass\n")
    (tmp_path / "words.toml").write_text(
        '[X]\ntitle = "Things"\npage = "guide/things"\nX1 = "One | two."\nX2 = "Not yet."\n'
        '[Y]\ntitle = "Nothing"\nY1 = "Not yet."\n')
    page = documents.guarantees(tmp_path / "words.toml", tmp_path)
    assert ("| X1 | One \\| two. | {download}`2 in test_X.py <../../tests/behavior/test_X.py>`, "
            "{download}`1 in test_Y.py <../../tests/behavior/test_Y.py>` |") in page
    assert "Explained in {doc}`/guide/things`." in page
    assert "X2" not in page
    assert "Nothing" not in page


def test_sections_have_pages():
    pages = [rows["page"] for rows in tomllib.loads(WORDS.read_text()).values() if "page" in rows]
    assert len(pages) > 8
    assert all((ROOT / "docs" / f"{page}.md").exists() for page in pages if not page.startswith("generated/"))


def test_pages_lead_somewhere():
    """Links between the documents and from the README."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)\)", path.read_text()):
            if "://" not in target and not target.startswith("generated/"):      # `make docs` makes those
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_documents_do_not_name_the_workplace():
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.py")]:
        assert "/work/" not in path.read_text(), path.name
