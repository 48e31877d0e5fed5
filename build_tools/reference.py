"""
API reference: a page for each public module, class, function and method, and a list of all modules.

`docs/reference.toml` has the modules and their groups. Names of one object share a page, titled by the first of them;
in-place forms are on the page of their function. Every name has an anchor.
"""

import importlib
import inspect
import re
import tomllib
from functools import cache
from pathlib import Path

import cygrad
from build_tools.files import write_if_changed
from build_tools.operator_table import is_function, read_table, spellings
from build_tools.table_documents import gradients
from cygrad._core.dispatch.binding import OperatorMethod
from cygrad._core.table.operator import Operator

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "cygrad" / "_core" / "table" / "ops"


@cache
def sections() -> dict[str, dict]:
    """Return module -> its entry in docs/reference.toml."""
    return tomllib.loads((ROOT / "docs" / "reference.toml").read_text())


@cache
def rows() -> dict[str, tuple[str, dict]]:
    """Return name of a function -> (family of its row, the row), aliases and in-place forms included."""
    return {name: (family, row) for family, found in read_table(TABLE).items() for row in found.values()
            if is_function(row) for name in spellings(row)}


@cache
def families() -> dict[str, str]:
    """Return name of a row -> its family."""
    return {name: family for family, found in read_table(TABLE).items() for name in found}


def operator_family(value) -> str | None:
    """Return the family of an operator or operator method."""
    operator = value.operator if isinstance(value, OperatorMethod) else value
    return families().get(operator.row["name"]) if isinstance(operator, Operator) else None


def holder(module: str):
    """Return the module, or the class `cygrad.Tensor`."""
    return cygrad.Tensor if module == "cygrad.Tensor" else importlib.import_module(module)


def is_public(name: str, value) -> bool:
    """Return whether the object is defined in the package and not a module."""
    if name.startswith("_") or inspect.ismodule(value) or name in ("LAYOUTS", "MEMORY_FORMATS"):
        return False
    home = getattr(value, "__module__", None)
    return home is None or home.startswith("cygrad") or not callable(value)


@cache
def public_names(module: str) -> dict[str, object]:
    """Return name -> object, for the public names of a module."""
    where = holder(module)
    if module == "cygrad.Tensor":
        return {name: inspect.getattr_static(where, name) for name in dir(where) if not name.startswith("_")}
    listed = getattr(where, "__all__", None)
    late = getattr(where, "_LATE", ()) if listed is None else ()
    names = {*(listed if listed is not None else dir(where)), *late, *sections()[module].get("more", "").split()}
    found = {name: getattr(where, name) for name in sorted(names, key=lambda name: (name.lower(), name))}
    own = {name for name, value in found.items() if is_public(name, value)}
    if listed is None:                       # imports of the module are not listed
        own = {name for name in own if module == "cygrad" or callable(found[name])}
    return {name: value for name, value in found.items() if name in own}


def file_of(value) -> str:
    """Return the file or family of operators that defines an object, as groups name them."""
    if isinstance(value, (cygrad.dtype, cygrad.layout, cygrad.memory_format)):
        return {"dtype": "dtype", "layout": "layout_value", "memory_format": "memory_format_value"}.get(
            type(value).__name__, "constant")
    home = operator_family(value) or getattr(value, "__module__", None) or type(value).__name__
    return home.rpartition(".")[2] if callable(value) else (
        type(value).__name__ if "dtype" in type(value).__name__ else "constant")


@cache
def groups(module: str) -> dict[str, list[str]]:
    """Return title of a group -> its names; names without a group are in the last one."""
    names = public_names(module)
    wanted = {title: text.split() for title, text in sections()[module].get("groups", {}).items()}
    if not wanted:
        return {"": list(names)}
    by_word = {word: title for title, words in wanted.items() for word in words}
    found = {title: [] for title in (*wanted, "Other")}
    for name, value in names.items():
        plain = name.rstrip("_")
        family = rows()[plain][0] if module == "cygrad" and plain in rows() else file_of(value)
        title = by_word.get(name) or by_word.get(f"{family}_") or by_word.get(family) or "Other"
        found[title].append(name)
    return {title: members for title, members in found.items() if members}


def is_data(value) -> bool:
    """Return whether the object is a constant, described on the page of its module."""
    return not callable(value) and not hasattr(type(value), "__get__")


@cache
def homes() -> dict[str, str]:
    """Return qualified name -> qualified name of its page, except for constants."""
    found, first = {}, {}
    for module in sections():
        names = public_names(module)
        for name in sorted(names, key=lambda name: (name != getattr(names[name], "__name__", ""), name.endswith("_"))):
            value, plain = names[name], name.rstrip("_")
            row = rows().get(name) if module == "cygrad" else None
            main = row[1]["public"] if row else (
                plain if names.get(plain, value) is not value else name)
            if is_data(value):
                continue
            if module == "cygrad.Tensor":
                home = f"{module}.{main}"
            else:
                home = first.setdefault(id(value), f"{module}.{main}")
                home = found.get(home, home)
            found[f"{module}.{name}"] = home
    return {name: found.get(home, home) for name, home in found.items()}


def short(name: str) -> str:
    """Remove the name of the package."""
    return name.removeprefix("cygrad.")


def summary(value) -> str:
    """Return the first sentence of a docstring, on one line, for reStructuredText."""
    text = " ".join((inspect.getdoc(value) or "").strip().partition("\n\n")[0].split())
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    return re.sub(r"(``.*?``)|([*|])", lambda found: found[1] or "\\" + found[2], text)


@cache
def relatives() -> dict[str, list[str]]:
    """Return normalized name -> pages of functions, layers and methods of that name."""
    found = {}
    for name, home in homes().items():
        if name == home and "array_api" not in name:
            found.setdefault(stem(name), []).append(name)
    return found


def stem(name: str) -> str:
    last = name.rpartition(".")[2].replace("_", "").lower()
    return last.removeprefix("lazy").removesuffix("loss") or last


def signature(value, bound: bool) -> str:
    """Return the signature, of a method without `self`. Constructors often differ from ``__new__``."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())[bound:]
    return re.sub(r" at 0x\w+|<class '([\w.]+)'>", r"\1", str(inspect.Signature(parameters)))


def source(value) -> str:
    """Return where an operator or compiled object is defined; Python code has links."""
    family, home = operator_family(value), getattr(value, "__module__", None) or ""
    path = TABLE / f"{family}.toml" if family else ROOT / f"{home.replace('.', '/')}.pyx"
    if not path.exists():
        return ""
    path = path.relative_to(ROOT)
    return f"Defined in :download:`{path} <../../../{path}>`.\n\n"


def heading(text: str, sign: str) -> str:
    return f"{text}\n{sign * len(text)}\n\n"


def anchor(kind: str, name: str) -> str:
    """Return an anchor without text."""
    return f".. py:{kind}:: {name}\n   :no-typesetting:\n\n"


def constant(module: str, name: str, value) -> str:
    """Return the entry of a constant on the page of its module."""
    shown = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))[:80]
    return f".. py:data:: {name}\n   :module: {module}\n\n   ``{shown}``\n\n"


def method_entry(name: str) -> str:
    """Return the entry of a method of Tensor, in full or as a link to the function."""
    last = name.rpartition(".")[2]
    value, function = getattr(cygrad.Tensor, last), public_names("cygrad").get(last)
    if not callable(value):
        return f".. autoattribute:: {name}\n\n"
    plain = last.rstrip("_")
    same = function is not None and inspect.getdoc(function) == inspect.getdoc(value)
    if not same and not (last.endswith("_") and f"cygrad.{plain}" in homes()):
        return f".. automethod:: {name}\n\n"
    target = homes()[f"cygrad.{last if same else plain}"]
    return (f".. py:method:: {name}{signature(value, True)}\n\n   {summary(value)}\n\n"
            f"   See :py:func:`{target}`.\n\n")


def entry(name: str, value) -> str:
    """Return the docstring of a function, or of a class with its members."""
    if name.startswith("cygrad.Tensor."):
        return method_entry(name)
    if name == "cygrad.Tensor":
        return ".. autoclass:: cygrad.Tensor\n\n   All members: :doc:`cygrad.Tensor.members`.\n\n"
    if inspect.isclass(value):
        shown = signature(value, False)
        return f".. autoclass:: {name}{shown if shown != '(...)' else ''}\n   :members:\n   :undoc-members:\n\n"
    return f".. autofunction:: {name}\n\n"


def derivative(name: str) -> str:
    """Return the derivative of a function from the operator table."""
    module, _, last = name.rpartition(".")
    row = rows().get(last, (None, None))[1]
    if row is None or not row["formulas"] or module not in ("cygrad", "cygrad.nn.functional", "cygrad.special"):
        return ""
    text = heading("Derivative", "-")
    text += "From the operator table; :doc:`/generated/derivatives` explains the symbols.\n\n"
    text += "".join(f".. math::\n\n   {formula}\n\n" for formula in gradients(row))
    if "kink" in row["row"]:
        text += f"Where it is not differentiable: {row['row']['kink']}.\n\n".replace("`", "``").replace("````", "``")
    return text


def page(home: str, names: list[str], values: dict[str, object]) -> str:
    """Return the page of a function or class: docstring, aliases, derivative, related names, source."""
    text = heading(short(home).replace("_", r"\_"), "=") + entry(home, values[home])
    others = [name for name in names if name != home]
    for name in others:
        text += method_entry(name) if home.startswith("cygrad.Tensor.") else anchor(
            "class" if inspect.isclass(values[name]) else "function", name)
    if others and not home.startswith("cygrad.Tensor."):
        text += "Also available as " + ", ".join(f"``{name}``" for name in others) + ".\n\n"
    text += derivative(home)
    related = [name for name in relatives().get(stem(home), ()) if name not in names]
    if related:
        text += heading("See also", "-") + "\n".join(f"- :py:obj:`{name}`" for name in related) + "\n\n"
    return text + source(values[home])


def table(names: dict[str, str], values: dict[str, object]) -> str:
    """Return a list of names with summaries, like autosummary."""
    lines = [".. list-table::\n   :class: names\n   :widths: 35 65\n\n"]
    for name, home in names.items():
        label = f":py:obj:`{short(name)} <{name}>`" if home else f"``{short(name)}``"
        lines.append(f"   * - {label}\n     - {summary(values[name]) or 'Constant.'}\n")
    return "".join(lines) + "\n"


def module_page(module: str, values: dict[str, object]) -> str:
    """Return the page of a module: docstring, tables of its groups, constants, and list of pages."""
    title = "cygrad.Tensor.members" if module == "cygrad.Tensor" else module
    text = heading("Tensor attributes and methods" if module == "cygrad.Tensor" else module, "=")
    if module != "cygrad.Tensor":
        text += f".. automodule:: {module}\n   :no-members:\n\n"
    pages = []
    for group, members in groups(module).items():
        text += heading(group, "-") if group else ""
        qualified = [f"{module}.{name}" for name in members]
        text += table({name: homes()[name] for name in qualified if name in homes()}, values) if any(
            name in homes() for name in qualified) else ""
        for name in qualified:
            if name not in homes():
                text += constant(module, name.rpartition(".")[2], values[name])
            elif homes()[name] == name:
                pages.append(name)
    members = "\n".join(f"   {name}" for name in (["cygrad.Tensor.members"] * (module == "cygrad")) + pages)
    text += f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{members}\n" if pages else ""
    return title, text


INDEX = """API reference
=============

Every public module, class, function and method has a page: docstring, derivative, example, related names and source.
Names are those of PyTorch where it has the same thing. Examples assume ``import cygrad``, ``from cygrad import nn`` and
``from cygrad.nn import functional as F``. See also the :doc:`table of operators </generated/operators>`,
:doc:`derivatives as mathematics </generated/derivatives>` and
:doc:`gradients where there is no derivative </generated/kinks>`.

"""


def all_values() -> dict[str, object]:
    """Return qualified name -> object, for all public names."""
    return {f"{module}.{name}": value for module in sections() for name, value in public_names(module).items()}


def pages() -> dict[str, str]:
    """Return name of a page -> its text."""
    values = all_values()
    on_page = {}
    for name, home in homes().items():
        on_page.setdefault(home, []).append(name)
    found = {home: page(home, names, values) for home, names in on_page.items()}
    index = INDEX + ".. list-table::\n   :class: names\n   :widths: 35 65\n\n"
    for module in sections():
        title, text = module_page(module, values)
        found["module." + title if title in found else title] = text
        index += f"   * - :doc:`{module} <{title}>`\n     - {sections()[module]['about']}\n"
    found["index"] = index + "\n.. toctree::\n   :hidden:\n   :maxdepth: 1\n\n" + "".join(
        f"   {module}\n" for module in sections() if module != "cygrad.Tensor")
    return found


def write_reference(root: Path) -> None:
    """Write docs/generated/reference."""
    folder = root / "docs" / "generated" / "reference"
    made = pages()
    for name, text in made.items():
        write_if_changed(folder / f"{name}.rst", text)
    for path in folder.glob("*.rst"):
        if path.stem not in made:
            path.unlink()
