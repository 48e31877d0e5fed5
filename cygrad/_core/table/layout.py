"""Layout of the values saved for derivative formulas, and meaning of the names in them."""

import ast
from typing import NamedTuple

from .formula import ATTRIBUTES, FUNCTIONS, SYNONYMS, TYPES, Value, parse
from .signature import TENSOR_KINDS

# Indices among the gradients, after those of at most four results: requested arguments, then shared calls.
WANTED, FIRST_SHARED = 4, 5


class Saved(NamedTuple):
    """A value saved for backward."""

    name: str
    from_result: bool
    index: int               # of the argument or result
    memory_by: int           # bit i: the formula of argument i uses more of it than shape and dtype
    needed_by: int           # bit i: the formula of argument i uses it


def title(row: dict, argument: str) -> str:
    """Return the name of the formula for messages."""
    return f"{row['name']}: derivative of '{argument}'"


def saved_layout(row: dict) -> list[Saved]:
    """
    Return the arguments, then results, that the formulas name; those of which only the shape is used are `meta`.

    `grad` is always the incoming gradient, even if an argument has that name.
    """
    gradients = gradient_names(row)
    arguments = [argument[0] for argument in row["arguments"]]
    uses = {}                # name -> [bits of the formulas that use it, of those that use more than shape and dtype]
    for number, argument in enumerate(arguments):
        text = row["formulas"].get(argument)
        if text is not None:
            for name, meta in used_names(parse(title(row, argument), text)):
                if name in gradients:
                    continue
                needed_by, memory_by = uses.get(name, (0, 0))
                uses[name] = (needed_by | 1 << number, memory_by if meta else memory_by | 1 << number)
    layout = []
    for index, (name, kind, *_) in enumerate(row["arguments"]):
        if name in uses:
            needed_by, memory_by = uses.pop(name)
            layout.append(Saved(name, False, index, memory_by if kind in TENSOR_KINDS else needed_by, needed_by))
    for index, name in enumerate(() if row["list"] else row["results"]):
        if name in uses:
            needed_by, memory_by = uses.pop(name)
            layout.append(Saved(name, True, index, memory_by, needed_by))
    return layout


def used_names(tree: ast.expr):
    """Yield (name, is it used for its shape, its dtype or being None only?) for each use in an expression."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    slight = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and SYNONYMS.get(node.attr, node.attr) in ATTRIBUTES:
            slight.add(id(node.value))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) in FUNCTIONS and node.args:
            slight.add(id(node.args[0]))
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            slight.add(id(node.left))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in functions:
            yield node.id, id(node) in slight


def gradient_names(row: dict) -> dict[str, int]:
    """Return the names of gradients in formulas and the index of each; `grads` is the list of all."""
    if row["list"]:
        return {"grads": 0}
    numbers = {name: number for number, name in enumerate(row["results"]) if name in row["differentiable"]}
    names = {f"grad_{name}": number for name, number in numbers.items()} if len(row["results"]) > 1 else {}
    if numbers:
        names["grad"] = min(numbers.values())
    return names


def formula_names(row: dict, layout: list[Saved]) -> dict[str, Value]:
    """Return what each name in the derivative formulas of a row refers to."""
    names = {"wanted": Value("grad", "number", (), WANTED)}
    for slot, entry in enumerate(layout):
        names[entry.name] = Value("saved", "tensor" if entry.from_result else TYPES[row["arguments"][entry.index][1]],
                                  (), slot)
    for name, number in gradient_names(row).items():
        names[name] = Value("grad", "tensors" if name == "grads" else "tensor", (), number)
    if "grad" in names and len(row["results"]) > 1:      # the same value under its two names
        first = next(name for name, value in names.items() if value.payload == names["grad"].payload
                     and value.op == "grad")
        names["grad"] = names[first]
    return names


def forward_names(row: dict) -> dict[str, Value]:
    """Return what each name in the forward formula refers to: the inputs of its program, numbers too."""
    names = {}
    for slot, (name, kind, *_) in enumerate(row["arguments"]):
        if TYPES[kind] in ("tensor", "number"):
            names[name] = Value("saved", "tensor", (), slot, (f"{row['name']}: forward", row["forward"], 1, 0))
    return names
