"""Configuration of Sphinx."""

import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cygrad  # noqa: E402
from benchmarks.plot import draw  # noqa: E402
from build_tools.documents import write_pages  # noqa: E402
from build_tools.function_pages import write_function_pages  # noqa: E402
from build_tools.gallery import make_pictures  # noqa: E402
from build_tools.notebooks import write_notebooks  # noqa: E402
from build_tools.rooms_picture import draw_rooms  # noqa: E402

GENERATED = ROOT / "docs" / "generated"
write_pages(ROOT)
write_function_pages(ROOT)
write_notebooks(ROOT / "docs" / "tutorials", GENERATED / "notebooks")
draw(GENERATED / "ratios.svg")
draw_rooms(GENERATED / "rooms.svg")
make_pictures(ROOT, GENERATED / "gallery")

project = "cygrad"
author = "The cygrad developers"
version = release = cygrad.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "sphinx_design"]
exclude_patterns = ["_build", "generated/figures.md", "generated/notebooks/*"]
nitpicky = False

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"
# A page is read, executed and written as one; a notebook that fails stops the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

html_theme = "pydata_sphinx_theme"
html_title = "cygrad"
html_static_path = ["_static"]
html_css_files = ["cygrad.css"]
html_js_files = [("filter.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "cygrad"},
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "collapse_navigation": True,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "generated/operators": [], "generated/derivatives": [],
                                "generated/functions": [], "generated/kinks": [], "compatibility_names": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "gallery": [], "generated/functions/*": []}
copyright = author
# Formulas, as everything else, are shown without a network: MathJax and its fonts come from a package.
mathjax_path = "mathjax/tex-chtml.js"
MATHJAX = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations))) / "static" / "mathjax"


def copy_mathjax(app, exception):
    """The script and its fonts, without what nothing here asks for."""
    if exception is None:
        target = Path(app.outdir, "_static", "mathjax")
        copy_asset(MATHJAX / "tex-chtml.js", target)
        copy_asset(MATHJAX / "output" / "chtml" / "fonts", target / "output" / "chtml" / "fonts")


def setup(app):
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
