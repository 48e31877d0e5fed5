"""Configuration of Sphinx."""

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import cygrad  # noqa: E402
from benchmarks.plot import draw  # noqa: E402
from build_tools.documents import write_pages  # noqa: E402
from build_tools.gallery import make_pictures  # noqa: E402
from build_tools.notebooks import write_notebooks  # noqa: E402
from build_tools.package_graph import draw_packages  # noqa: E402
from build_tools.reference import sections, write_reference  # noqa: E402

GENERATED = ROOT / "docs" / "generated"
write_pages(ROOT)
write_reference(ROOT)
write_notebooks(ROOT / "docs" / "tutorials", GENERATED / "notebooks")
draw(GENERATED / "ratios.svg")
draw_packages(GENERATED / "core_packages.svg")
make_pictures(ROOT, GENERATED / "gallery")

project = "cygrad"
author = "The cygrad developers"
version = release = cygrad.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx.ext.mathjax", "numpydoc", "sphinx_design",
              "sphinx_copybutton", "build_tools.name_links"]
templates_path = ["_templates"]
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
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
html_favicon = "_static/logo.svg"
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
# The address is a placeholder in pyproject.toml, the only place that names it.
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
html_context = {"reference_modules": [
    (module.removeprefix("cygrad."), f"generated/reference/{module}" + ".members" * (module == "cygrad.Tensor"))
    for module in sections()]}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme_options = {
    "logo": {"text": f"cygrad {version}", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "icon_links": [{"name": "Repository", "url": URLS["Repository"], "icon": "fa-solid fa-code-branch"}],
    "search_as_you_type": True,
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "collapse_navigation": True,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "generated/operators": [], "generated/derivatives": [],
                                "generated/kinks": [], "compatibility_names": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {**{page: [] for page in ("index", "gallery", "installation", "quick-start")},
                 "generated/reference/**": ["reference-modules"]}
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


def forget_modules_without_source(app):
    """Keep extension modules, whose pages do not exist, out of the index of sources."""
    modules = app.env._viewcode_modules
    for name in [name for name, entry in modules.items() if not entry]:
        del modules[name]
    return []


def setup(app):
    app.connect("html-collect-pages", forget_modules_without_source, priority=100)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
