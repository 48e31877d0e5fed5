"""Configuration of Sphinx."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cygrad  # noqa: E402
from benchmarks.plot import draw  # noqa: E402
from build_tools.documents import write_pages  # noqa: E402
from build_tools.rooms_picture import draw_rooms  # noqa: E402

write_pages(ROOT)
draw(ROOT / "docs" / "generated" / "ratios.svg")
draw_rooms(ROOT / "docs" / "generated" / "rooms.svg")

project = "cygrad"
author = "The cygrad developers"
version = release = cygrad.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"
html_theme = "alabaster"
html_theme_options = {"description": "Automatic differentiation on CPUs", "page_width": "1100px"}
exclude_patterns = ["_build"]
nitpicky = False
