"""
Check built pages: links lead to existing pages, files and anchors, nothing is loaded from other sites, and every public
name has an anchor.

``python -m build_tools.check_pages build/docs``
"""

import sys
from collections.abc import Iterable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Loaded by browsers; other links may leave the site.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}
MENTIONED = {"canonical", "author", "license"}    # relations of <link> that load nothing


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, bool]] = []     # address, and whether browsers load it
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.places.update(value for key, value in attrs if key in ("id", "name") and value)
        for key in ("href", "src"):
            if attributes.get(key) and attributes.get("rel") not in MENTIONED:
                self.links.append((attributes[key], (tag, key) in LOADED))


@cache
def read_pages(folder: Path) -> dict[Path, Page]:
    """Parse the pages of a folder."""
    return {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}


def without_anchor(folder: Path, names: Iterable[str]) -> list[str]:
    """Return the names without an anchor, one line for each."""
    places = set().union(*(page.places for page in read_pages(folder).values()))
    return [f"no place for {name}" for name in names if name not in places]


def mistakes(folder: Path) -> list[str]:
    """Return the mistakes in the pages of a folder, one line for each."""
    pages = read_pages(folder)
    found = []
    for path, page in pages.items():
        for address, loaded in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    found.append(f"{path.relative_to(folder)}: loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path.relative_to(folder)}: no file for {address}")
            # Source pages use one module for all names of a file.
            elif place and target in pages and place not in pages[target].places and "_modules" not in path.parts:
                found.append(f"{path.relative_to(folder)}: no such place as {address}")
    return found


if __name__ == "__main__":
    from build_tools.reference import all_values

    site = Path(sys.argv[1]).resolve()
    lines = mistakes(site) + without_anchor(site, all_values())
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(f"{len(lines)} links or names are wrong." if lines else 0)
