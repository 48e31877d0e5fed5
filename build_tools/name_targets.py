"""Anchors in the API reference for inline code of the documents."""

import inspect
import re
from functools import cache

from build_tools.reference import all_values, homes, public_names, sections

CODE = re.compile(r"(\.?[A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?")
# Modules in which unqualified names are looked up, in this order.
ORDER = ("cygrad", "cygrad.Tensor", "cygrad.nn", "cygrad.optim", "cygrad.autograd", "cygrad.autograd.graph",
         "cygrad.func", "cygrad.utils.data")
FIRST = {"guide/function-transforms": "cygrad.func", "tutorials/from-autograd-and-jax": "cygrad.func",
         "guide/ranks": "cygrad.distributed", "guide/hooks": "cygrad.autograd.graph",
         "guide/forward-mode": "cygrad.autograd.forward_ad", "guide/compile": "cygrad.compiling"}
# Pages about the code, where `graph` and `threads` are folders.
DEVELOPMENT = {"design", "adding-an-operator", "adding-a-hook", "writing-a-mode", "contributing", "changelog"}
# Words of Python, NumPy and mathematics that are also public names.
COMMON = {"e", "t", "bool", "int", "float", "long", "short", "double", "complex", "range", "name", "real", "data",
          "type", "fork", "open", "all", "any", "torch", "cygrad", "grad_fn.name"}


@cache
def members() -> dict[str, str]:
    """Return qualified name -> anchor, for public names and members of public classes."""
    found = {name: name for name in all_values()} | {module: module for module in sections()}
    for name, value in all_values().items():
        if inspect.isclass(value):
            home = homes()[name]
            found |= {f"{name}.{member}": f"{home}.{member}" for member in vars(value) if not member.startswith("_")}
    return found


def target(text: str, page: str = "") -> str | None:
    """Return the anchor for inline code such as `nn.Linear` or `x.backward()`, or None."""
    match = CODE.fullmatch(text)
    if match is None or text in COMMON or match[1] in COMMON or (page in DEVELOPMENT and "." not in text):
        return None
    name, known = match[1], members()
    name = re.sub(r"^torch\.", "cygrad.", name)
    if name.startswith("."):
        return known.get(f"cygrad.Tensor{name}")
    if name in known:
        return known[name]
    for module in (FIRST.get(page), *ORDER, *sections()):
        if module and "array_api" not in module and f"{module}.{name}" in known:
            sure = "." in name or module in (*ORDER, FIRST.get(page)) or unique(name)
            return known[f"{module}.{name}"] if sure else None
    ends = {anchor for path, anchor in known.items() if "." in name and path.endswith(f".{name}")}
    if len(ends) == 1:
        return ends.pop()
    owner, _, last = name.rpartition(".")
    if re.fullmatch(r"[a-z]|tensor|weight|bias|loss|target|array|output|result", owner) and "(" in text:
        return known.get(f"cygrad.Tensor.{last}")
    return None


@cache
def unique(name: str) -> bool:
    """Return whether exactly one page describes the name."""
    return len({homes().get(f"{module}.{name}") for module in sections() if name in public_names(module)}) == 1
