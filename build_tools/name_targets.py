"""What a piece of inline code in the documents names: the anchor in the API reference."""

import inspect
import re
from functools import cache

from build_tools.reference import all_values, homes, public_names, sections

CODE = re.compile(r"(\.?[A-Za-z_]\w*(?:\.\w+)*)(?:\(.*\))?")
# Where a name without a module is looked for, in this order; pages about one module begin there.
ORDER = ("cygrad", "cygrad.Tensor", "cygrad.nn", "cygrad.optim", "cygrad.autograd", "cygrad.autograd.graph",
         "cygrad.func", "cygrad.utils.data")
FIRST = {"guide/function-transforms": "cygrad.func", "tutorials/from-autograd-and-jax": "cygrad.func",
         "guide/ranks": "cygrad.distributed", "guide/hooks": "cygrad.autograd.graph",
         "guide/forward-mode": "cygrad.autograd.forward_ad", "guide/compile": "cygrad.compiling"}
# Words of Python, NumPy and mathematics that are names here, too.
COMMON = {"e", "t", "bool", "int", "float", "long", "short", "double", "complex", "range", "name", "real", "data",
          "type", "fork", "open", "all", "any", "torch", "cygrad", "grad_fn.name"}


@cache
def members() -> dict[str, str]:
    """Qualified name -> anchor, for everything public and for the members of public classes."""
    found = {name: name for name in all_values()} | {module: module for module in sections()}
    for name, value in all_values().items():
        if inspect.isclass(value):
            home = homes()[name]
            found |= {f"{name}.{member}": f"{home}.{member}" for member in vars(value) if not member.startswith("_")}
    return found


def target(text: str, page: str = "") -> str | None:
    """The anchor for a piece of inline code such as `nn.Linear` or `x.backward()`; None if it is no name of ours."""
    match = CODE.fullmatch(text)
    if match is None or text in COMMON or match[1] in COMMON:
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
    """Does only one page describe something of that name?"""
    return len({homes().get(f"{module}.{name}") for module in sections() if name in public_names(module)}) == 1
