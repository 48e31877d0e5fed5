"""Shared parts of docstrings: parameters that mean the same in many functions."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["documented"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
COMMON = {
    "input": "Tensor",
    "size_average, reduce": "bool, optional\n    Deprecated names of `reduction`.",
    "reduction": '{"mean", "sum", "none"}',
    "inplace": "bool, default False\n    Whether to write the result to `input`.",
    "generator": "Generator, optional\n    Default: the default one.",
    "out": "Tensor, optional\n    Tensor that the result is written to.",
    "layout, device, pin_memory": "optional\n    Accepted for compatibility; must have their default values.",
    "requires_grad": "bool, default False\n    Whether to record operations on the result.",
}
# In the order of numpydoc.
_SECTIONS = ("Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def _by_name(meanings):
    """Map each parameter name to the names described together with it, and their description."""
    return {name.lstrip("*"): (group.split(", "), meaning) for group, meaning in meanings.items()
            for name in group.split(", ")}


_COMMON = _by_name(COMMON)
_FAMILIES = {}                # by identity for families, which stay alive, and by name


def documented(family: Mapping[str, str] | None = None, returns: str = "Tensor") -> Callable[[_Function], _Function]:
    """
    Complete a docstring with the omitted parameters and the return value.

    A parameter has the description of `family`, else that of COMMON. The first of the function precedes those that the
    docstring describes itself, then come others. Packages are imported often, so this is fast.
    """
    if family is not None and id(family) not in _FAMILIES:
        _FAMILIES[id(family)] = family, {**_COMMON, **_by_name(family)}
    meanings = _COMMON if family is None else _FAMILIES[id(family)][1]

    def complete(function: _Function) -> _Function:
        if function.__doc__:                   # there is none under `python -OO`
            function.__doc__ = completed(function.__doc__, function.__code__, meanings, returns)
        return function
    return complete


def completed(doc, code, meanings, returns):
    """Complete the docstring of a function with this code object; parameters are in the order of the signature."""
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + 2]      # and perhaps *args and **options
    margin = doc[doc.rfind("\n") + 1:] if "\n" in doc else "    "                 # position of the closing quotes
    start = f"\n{margin}"
    for name in _SECTIONS:
        cut = doc.find(f"{start}{name}\n")
        if cut >= 0:
            break
    else:
        cut = len(doc.rstrip()) + 1
    head, tail = doc[:cut].rstrip(" "), doc[cut:]
    title = f"{start}Parameters{start}----------\n"
    described = set()
    if title in head:
        for entry in head.split(" : ")[:-1]:
            described.update([name.lstrip("*") for name in entry[entry.rfind("\n") + 1:].lstrip(" ").split(", ")])
    first = last = ""
    for name in names:
        if name in meanings and name not in described:
            group, meaning = meanings[name]
            kept = [other for other in group if other.lstrip("*") in names and other.lstrip("*") not in described]
            described.update(other.lstrip("*") for other in kept)
            entry = f"{margin}{', '.join(kept)} : " + meaning.replace("\n", start) + "\n"
            if kept[0] in (names[0], "*args") or names[:2] == ("self", kept[0]):
                first += entry
            else:
                last += entry
    if title in head:
        head = head.replace(title, title + first) + last
    elif first or last:
        head += title + first + last
    if returns and f"{start}Returns\n" not in tail:
        head += f"{start}Returns{start}-------{start}" + returns.replace("\n", start) + "\n"
    return head + tail


def inplace_docstring(row: dict) -> str:
    """Return the docstring of the in-place form of an operator."""
    public, arguments = row["public"], row["arguments"]
    others = ", ".join([argument[0] for argument in arguments[1:]])
    text = (f"In-place version of `{public}`.\n\nParameters\n----------\ninput : Tensor\n    Modified in place.\n"
            + (f"{others} : optional\n    As in `{public}`.\n" if others else "")
            + "\nReturns\n-------\nTensor\n    `input` itself.\n")
    if row["inplace_function"]:
        required = ", ".join(["x"] * sum([argument[3] for argument in arguments]))
        number = "0.5" if "real" in row["dtypes"] else "2"
        text += (f"\nExamples\n--------\n>>> x = cygrad.tensor([{number}])\n"
                 f">>> cygrad.{public}_({required}) is x\nTrue\n")
    return text
