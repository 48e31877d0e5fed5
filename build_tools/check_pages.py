"""
Built pages: every link within them leads to a page, file or place that is there, and nothing is loaded from elsewhere.

``python -m build_tools.check_pages build/docs``
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself; other links may lead out of the site.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src")}
MENTIONED = {"canonical", "author", "license"}    # relations of <link> that load nothing


class Page(HTMLParser):
    """Names of places, and links, of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, bool]] = []     # address, and whether the browser loads it by itself
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.places.update(value for key, value in attrs if key in ("id", "name") and value)
        for key in ("href", "src"):
            if attributes.get(key) and attributes.get("rel") not in MENTIONED:
                self.links.append((attributes[key], (tag, key) in LOADED))


def mistakes(folder: Path) -> list[str]:
    """What is wrong with the pages of a folder, one line for each mistake."""
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
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
            # Pages of source text lead to the right page, but know one module for all names of a file.
            elif place and target in pages and place not in pages[target].places and "_modules" not in path.parts:
                found.append(f"{path.relative_to(folder)}: no such place as {address}")
    return found


if __name__ == "__main__":
    lines = mistakes(Path(sys.argv[1]).resolve())
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(f"{len(lines)} links are wrong." if lines else 0)
