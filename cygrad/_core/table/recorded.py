"""
Formulas as Python functions on Tensors: the recorded execution, for gradients of gradients.

The syntax tree of the formula itself is compiled; only names change. So first and higher order come from the same text,
and a traceback shows the formula.
"""

import ast
import linecache
from functools import partial

import numpy as np

from .formula import CONSTANTS, FUNCTIONS, SCALARS, SYNONYMS, TYPES, Block, parse
from .layout import gradient_names, title
from .signature import OPERAND

# Functions that formulas name. Operators have the prefix, because an argument may have the same name.
PREFIX = "operator_"
# Parameters whose names no argument of an operator has.
GRADS, SAVED = ".grads", ".saved"
SCALAR = "scalar_"            # the same operators on numbers
NUMBERS = (bool, int, float, complex)
NAMES = {"__builtins__": {}, PREFIX + "len": len, **CONSTANTS,
         **{SCALAR + name: function for name, function in SCALARS.items()}}


def attribute(value, name):
    """`x.numel`, `x.numel()`, `x.strides`, `x.stride()`: formulas do not distinguish methods and properties."""
    if isinstance(value, NUMBERS):      # like a 0-dim tensor
        return {"shape": (), "strides": (), "ndim": 0, "numel": 1, "storage_offset": 0,
                "is_complex": isinstance(value, complex)}[name]
    found = value.stride if name == "strides" and not hasattr(value, "strides") else getattr(value, name)
    return found() if callable(found) else found


def on_operands(functions, function, *values):
    """
    Apply an operator to operands that may all be Python numbers; then the result is one.

    Unlike Python's own arithmetic it gives inf and nan where the element-wise operator does.
    """
    for value in values:
        if not isinstance(value, NUMBERS):
            return function(*values)
    widest = complex if any(isinstance(value, complex) for value in values) else float
    with functions["suspend_tracing"]():
        return function(*[functions["tensor"](np.asarray(value, widest)) for value in values]).item()


def sizes(tensors, dim):
    """Return the sizes of tensors in a dimension; -1 for those that `cat` skips."""
    return tuple(-1 if tensor is None or tuple(tensor.shape) == (0,) else tensor.shape[dim] for tensor in tensors)


NAMES |= {PREFIX + "sizes": sizes, "attribute of": attribute}


def namespace(names, functions: dict) -> dict:
    """Return the namespace of a formula's code; `functions` are the operators and what modules add for formulas."""
    found = {name: functions[name.removeprefix(PREFIX)] for name in names
             if name.startswith(PREFIX) and name not in NAMES}
    return {**NAMES, "on operands": partial(on_operands, functions), **found}


class Renamer(ast.NodeTransformer):
    """Converts the formula's expression to one that Python evaluates in a `namespace`."""

    def __init__(self, numbers: dict, elementwise):
        self.numbers = numbers            # names that may refer to a Python number, and whether they must
        self.elementwise = elementwise    # is the operator of this name element-wise?

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            return self.visit_Attribute(node.func)
        name = node.func.id
        names = [part.id for argument in node.args for part in names_in(argument)]
        self.generic_visit(node)
        if name == "conj":
            name = "conjugate"    # copies no real tensor: formulas conjugate regardless of the dtype
        if name in FUNCTIONS or (name in SCALARS and all(self.numbers.get(part) for part in names)):
            node.func.id = (PREFIX if name in FUNCTIONS else SCALAR) + name
            return node
        function = ast.copy_location(ast.Name(PREFIX + name, ast.Load()), node.func)
        if self.elementwise(name) and not node.keywords and all(part in self.numbers for part in names):
            return call(node, "on operands", [function, *node.args])
        return ast.copy_location(ast.Call(function, node.args, node.keywords), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        name = SYNONYMS.get(node.attr, node.attr)
        return call(node, "attribute of", [node.value, ast.copy_location(ast.Constant(name), node)])

    def visit_Name(self, node):
        return node


def names_in(tree):
    """
    Return the names of values in an expression, without those of functions, but with those of attributes' tensors.
    """
    if isinstance(tree, ast.Attribute) or (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute)):
        return
    if isinstance(tree, ast.Name):
        yield tree
    for part in tree.args if isinstance(tree, ast.Call) else ast.iter_child_nodes(tree):
        yield from names_in(part)


def call(node, function, arguments):
    function = ast.copy_location(ast.Name(function, ast.Load()), node)
    return ast.copy_location(ast.Call(function, arguments, []), node)


def recorded_function(row: dict, layout: list, argument: str, functions: dict, elementwise):
    """
    Return the derivative of `argument` as a Python function f(grads, saved).

    grads : tuple of the gradients of the results, None where undefined. saved : tuple of the saved values, in the order
    of `layout`.
    """
    text = row["formulas"][argument]
    kinds = {entry[0]: entry[1] for entry in row["arguments"]}
    numbers = {name: kind != OPERAND for name, kind in kinds.items()
               if kind == OPERAND or TYPES[kind] == "number"} | dict.fromkeys(CONSTANTS, True)
    body = Renamer(numbers, elementwise).visit(parse(title(row, argument), text))
    lines = [assign(body, "wanted", None, 1 << list(kinds).index(argument))]     # each formula runs separately
    for number, entry in enumerate(layout):
        lines.append(assign(body, entry.name, SAVED, number))
    for name, number in gradient_names(row).items():
        lines.append(assign(body, name, GRADS, None if name == "grads" else number))
    lines += statements(body)
    parameters = ast.arguments([ast.arg(GRADS, lineno=1, col_offset=0),
                                ast.arg(SAVED, lineno=1, col_offset=0)], [], None, [], [], None, [])
    name = f"{row['name']}_{argument}_gradient"
    function = ast.FunctionDef(name, parameters, lines, [], None, lineno=1, col_offset=0)
    module = ast.fix_missing_locations(ast.Module([function], []))
    file = f"<{title(row, argument)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    made = next(code for code in compile(module, file, "exec").co_consts if hasattr(code, "co_code"))
    return type(recorded_function)(made, {"__name__": __name__, **namespace(made.co_names, functions)}, name)


def statements(body: ast.expr) -> list[ast.stmt]:
    """Return the statements that return the value of an expression or block."""
    if not isinstance(body, Block):
        return [ast.copy_location(ast.Return(body), body)]
    if not isinstance(body.value, ast.IfExp):
        return [*body.definitions, *statements(body.value)]
    choice = ast.If(body.value.test, statements(body.value.body), statements(body.value.orelse))
    return [*body.definitions, ast.copy_location(choice, body.value)]


def assign(like, name, source, number):
    """Return `name = source[number]`, or `name = list(source)`, or `name = number`."""
    value = ast.Name(source, ast.Load())
    if source is None:
        value = ast.Constant(number)
    elif number is None:
        value = ast.List([ast.Starred(value, ast.Load())], ast.Load())
    else:
        value = ast.Subscript(value, ast.Constant(number), ast.Load())
    statement = ast.Assign([ast.Name(name, ast.Store())], value)
    for part in ast.walk(statement):
        ast.copy_location(part, like)
    return statement
