"""
Parser of formulas: from the text of an expression to a graph of typed values.

Equal subexpressions become the same `Value`, so they are computed once. `lowering` turns the graph into steps;
`recorded` runs the same text on Tensors.
"""

import ast
import cmath
import math
import operator

from .signature import BOOL, DTYPE, FLOAT, INT, INTS, KINDS, NUMBER, OPERAND, STRING, TENSOR, TENSORS

TYPES = {TENSOR: "tensor", TENSORS: "tensors", OPERAND: "tensor", NUMBER: "number", INT: "number",
         BOOL: "number", FLOAT: "number", INTS: "ints", DTYPE: "dtype", STRING: "text"}
BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
          ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.BitAnd: "bitwise_and",
          ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor"}
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
# Attributes of a tensor that do not read its memory, and the type of each.
ATTRIBUTES = {"shape": "ints", "ndim": "number", "dtype": "dtype", "numel": "number", "strides": "ints",
              "storage_offset": "number", "is_complex": "number"}
SYNONYMS = {"stride": "strides", "dim": "ndim"}
# Functions that are not operators: argument types, result type, and their description.
FUNCTIONS = {
    "len": ([["ints"], ["tensors"]], "number", "a tuple or a list of tensors"),
    "sizes": ([["tensors", "number"]], "ints", "a list of tensors and a dimension"),
}
CONSTANTS = {"pi": math.pi, "inf": math.inf, "nan": math.nan}
# Arithmetic on numbers: constant folding here, program/executor.pyx at run time.
SCALARS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "not": operator.not_, "abs": abs,
    "sqrt": lambda x: (cmath if isinstance(x, complex) else math).sqrt(x),
    "exp": lambda x: (cmath if isinstance(x, complex) else math).exp(x),
    "log": lambda x: (cmath if isinstance(x, complex) else math).log(x),
    "conj": lambda x: x.conjugate(), "maximum": max, "minimum": min, "is_none": lambda x: x is None,
}


class FormulaError(ValueError):
    """A formula that cannot be compiled; the message shows the row, the formula and the position."""


class Block(ast.expr):
    """A formula of several lines: definitions of names (ast.Assign), then the final expression."""

    _fields = ("definitions", "value")


class Value:
    """One value of a formula: an operation, its inputs, and its result type."""

    __slots__ = ("inputs", "op", "payload", "position", "type")

    def __init__(self, op, type, inputs=(), payload=None, position=None):
        self.op, self.type, self.inputs, self.payload = op, type, inputs, payload
        self.position = position

    @property
    def is_leaf(self):
        """Whether it needs no computation."""
        return self.op in ("saved", "grad", "constant")


class Reader(ast.NodeVisitor):
    """
    Parses the text of one formula into the `Value` of its result.

    names : the Value of each name, a dict. lookup : function from the name of an operator to its row, or None. known :
    Values so far, shared with the parsers of forward formulas that are inlined.
    """

    def __init__(self, title, text, names, lookup, known=None):
        self.title, self.text, self.names, self.lookup = title, text, names, lookup
        self.known = {} if known is None else known

    def read(self) -> Value:
        return self.visit(parse(self.title, self.text))

    def fail(self, node, message):
        raise FormulaError(explain(self.title, self.text, message, *place(node)))

    def value(self, node, op, type, inputs=(), payload=None):
        """Return the Value of this operation on these inputs, existing or new."""
        key = (op, type, tuple(map(id, inputs)), payload if op != "constant" else repr(payload))
        if key not in self.known:
            position = (self.title, self.text, *place(node))
            self.known[key] = Value(op, type, inputs, payload, position)
        return self.known[key]

    def constant(self, node, value):
        types = {type(None): "none", str: "text", tuple: "ints"}
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.fail(node, f"the number {value} does not fit 64 bits")
        return self.value(node, "constant", types.get(type(value), "number"), (), value)

    def visit_Block(self, node):
        """A definition is computed once, in order."""
        values = []
        for definition in node.definitions:
            name = definition.targets[0].id
            if name in self.names or name in CONSTANTS:
                self.fail(definition, f"the name '{name}' is taken")
            values.append(self.visit(definition.value))
            self.names = {**self.names, name: values[-1]}
        result = self.visit(node.value)
        return self.value(node, "after", result.type, (*values, result))

    def visit_Constant(self, node):
        if not isinstance(node.value, (bool, int, float, complex, str, type(None))):
            self.fail(node, f"{node.value!r} is not supported in a formula")
        return self.constant(node, node.value)

    def visit_Name(self, node):
        if node.id in self.names:
            return self.names[node.id]
        if node.id in CONSTANTS:
            return self.constant(node, CONSTANTS[node.id])
        return self.fail(node, f"unknown name '{node.id}' (known: {', '.join(self.names)})")

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.UAdd):
            return self.visit(node.operand)
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self.scalar(node, "not", self.condition(node.operand, value))
        name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
        return self.apply(node, name, value)

    def visit_BinOp(self, node):
        if type(node.op) not in BINARY:
            self.fail(node, f"unsupported operator (got '{type(node.op).__name__}'; write a function call)")
        left, right = self.visit(node.left), self.visit(node.right)
        if left.type == right.type == "ints" and isinstance(node.op, ast.Add):
            return self.value(node, "tuple", "ints", (left, right))
        return self.apply(node, BINARY[type(node.op)], left, right)

    def visit_Compare(self, node):
        if len(node.ops) > 1:
            self.fail(node, "a chain of comparisons (write 'a < b and b < c')")
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if right.type != "none":
                self.fail(node, "'is' compares with None only")
            test = self.scalar(node, "is_none", left)
            return self.scalar(node, "not", test) if isinstance(node.ops[0], ast.IsNot) else test
        if type(node.ops[0]) not in COMPARE:
            self.fail(node, f"the comparison '{type(node.ops[0]).__name__}' is not supported in a formula")
        name = COMPARE[type(node.ops[0])]
        if left.type == right.type and left.type in ("ints", "dtype", "text"):
            if name not in ("eq", "ne"):
                self.fail(node, f"{left.type} cannot be ordered")
            return self.scalar(node, name, left, right)
        return self.apply(node, name, left, right)

    def visit_BoolOp(self, node):
        """`a and b` is `b if a else a`, `a or b` is `a if a else b`."""
        *before, last = node.values
        result = self.condition(last, self.visit(last))
        for test in reversed(before):
            first = self.condition(test, self.visit(test))
            then, other = (result, first) if isinstance(node.op, ast.And) else (first, result)
            if first.op == "constant":
                result = then if first.payload else other
                continue
            result = self.value(node, "if", "number", (first,), (then, other))
        return result

    def visit_IfExp(self, node):
        test = self.condition(node.test, self.visit(node.test))
        then, other = self.visit(node.body), self.visit(node.orelse)
        if test.op == "constant":
            return then if test.payload else other
        types = {then.type, other.type} - {"none"}
        if types == {"tensor", "number"}:
            types = {"tensor"}
        if len(types) > 1:
            self.fail(node, f"the two cases are of different types ({then.type} and {other.type})")
        return self.value(node, "if", types.pop() if types else "none", (test,), (then, other))

    def condition(self, node, value):
        if value.type != "number":
            self.fail(node, f"a condition must be a number or a comparison of numbers (got {value.type})")
        return value

    def visit_Attribute(self, node):
        value = self.visit(node.value)
        name = SYNONYMS.get(node.attr, node.attr)
        if value.type != "tensor":
            self.fail(node.value, f"attribute '{node.attr}' of {value.type}, which is not a tensor")
        if name not in ATTRIBUTES:
            self.fail(node, f"unknown attribute '{node.attr}' (known: {', '.join(ATTRIBUTES)})")
        return self.value(node, "attribute", ATTRIBUTES[name], (value,), name)

    def visit_Tuple(self, node):
        values = [self.visit(part.value if isinstance(part, ast.Starred) else part) for part in node.elts]
        if values and all(value.type == "tensor" for value in values):
            return self.value(node, "arrays", "tensors", tuple(values))
        for part, value in zip(node.elts, values, strict=False):
            if value.type != ("ints" if isinstance(part, ast.Starred) else "number"):
                self.fail(part, f"a tuple holds ints, or only tensors (got {value.type})")
        if all(value.op == "constant" for value in values):
            return self.constant(node, tuple(value.payload for value in values))
        return self.value(node, "tuple", "ints", tuple(values))

    visit_List = visit_Tuple

    def visit_Subscript(self, node):
        value = self.visit(node.value)
        if isinstance(node.slice, ast.Slice):
            if value.type != "ints" or node.slice.step is not None:
                self.fail(node, "only tuples of ints can be sliced, and without a step")
            bounds = [self.constant(node, None) if bound is None else self.number(bound)
                      for bound in (node.slice.lower, node.slice.upper)]
            return self.value(node, "slice", "ints", (value, *bounds))
        index = self.number(node.slice)
        if value.type == "results":
            if index.op != "constant" or not 0 <= index.payload < len(value.payload["results"]):
                self.fail(node.slice, f"'{value.payload['name']}' has no such result")
            return self.value(node, "result", "tensor", (value,), index.payload)
        if value.type not in ("ints", "tensors"):
            self.fail(node, f"{value.type} cannot be indexed (write an operator: select, index)")
        return self.value(node, "item", "number" if value.type == "ints" else "tensor", (value, index))

    def number(self, node):
        value = self.visit(node)
        if value.type != "number":
            self.fail(node, f"expected a number here (got {value.type})")
        return value

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            if node.args or node.keywords:
                self.fail(node, f"the method '{node.func.attr}' takes no arguments in a formula")
            return self.visit_Attribute(node.func)
        name = getattr(node.func, "id", None)
        if name is None:
            self.fail(node, "only operators can be called")
        if name in FUNCTIONS:
            return self.function(node, name)
        row = self.lookup(name)
        values = [self.visit(argument) for argument in node.args]
        if values and name in SCALARS and all(value.type == "number" for value in values):
            return self.scalar(node, name, *values)
        if row is None:
            self.fail(node, f"unknown operator '{name}'")
        return self.call(node, row, values)

    def function(self, node, name):
        """Call a function that is not an operator, on a list or a tuple."""
        values = [self.visit(argument) for argument in node.args]
        if node.keywords or [value.type for value in values] not in FUNCTIONS[name][0]:
            self.fail(node, f"'{name}' takes {FUNCTIONS[name][2]}")
        return self.value(node, "attribute", FUNCTIONS[name][1], tuple(values), name)

    def call(self, node, row, values):
        arguments = row["arguments"]
        names = [argument[0] for argument in arguments]
        if len(values) > len(arguments):
            self.fail(node, f"'{row['name']}' takes at most {len(arguments)} arguments (got {len(values)})")
        given = dict(zip(names, zip(values, node.args, strict=False), strict=False))
        for pair in node.keywords:
            if pair.arg not in names or pair.arg in given:
                problem = "twice" if pair.arg in given else f"unknown (known: {', '.join(names)})"
                self.fail(pair.value, f"argument '{pair.arg}' of '{row['name']}' is {problem}")
            given[pair.arg] = (self.visit(pair.value), pair.value)
        inputs = []
        for name, kind, optional, required, default, _ in arguments:
            if name not in given and required:
                self.fail(node, f"'{row['name']}' misses its argument '{name}'")
            value, where = given.get(name) or (self.constant(node, default), node)
            inputs.append(self.fit(where, value, kind, optional, f"'{name}' of '{row['name']}'",
                                   row["forward"] is not None))
        if row["forward"] is None:
            type = ("tensors" if row["list"] else "results" if len(row["results"]) > 1 else "tensor")
            return self.value(node, "call", type, tuple(inputs), Row(row))
        if row["forward"] == "primitive":
            return self.elementwise(node, row["name"], *inputs)
        bound = dict(zip(names, inputs, strict=False))
        return Reader(f"{row['name']}: forward", row["forward"], bound, self.lookup, self.known).read()

    def fit(self, node, value, kind, optional, what, elementwise):
        """Convert the value to an argument of this kind."""
        if value.type == "none":
            if not optional or kind == TENSORS:
                self.fail(node, f"argument {what} must not be None")
            return value
        if kind == FLOAT and value.op == "constant" and isinstance(value.payload, int):
            return self.constant(node, float(value.payload))
        expected = TYPES[kind]
        if value.type == expected or (value.type == "number" and kind == OPERAND) or (
                elementwise and {value.type, expected} <= {"number", "tensor"}):      # operands of a primitive
            return value
        if kind == INTS and value.type == "number":
            if value.op == "constant":
                return self.constant(node, (value.payload,))
            return self.value(node, "listed", "ints", (value,))
        return self.fail(node, f"argument {what} is {KINDS[kind]} (got {value.type})")

    def apply(self, node, name, *values):
        """Apply a Python operator: arithmetic on numbers, or the element-wise primitive."""
        for value in values:
            if value.type not in ("tensor", "number"):
                self.fail(node, f"'{name}' needs tensors or numbers (got {value.type})")
        if all(value.type == "number" for value in values) and name in SCALARS:
            return self.scalar(node, name, *values)
        return self.elementwise(node, name, *values)

    def elementwise(self, node, name, *values):
        return self.value(node, "elementwise", "tensor", values, name)

    def scalar(self, node, name, *values):
        if all(value.op == "constant" for value in values):
            try:
                folded = SCALARS[name](*[value.payload for value in values])
            except (ArithmeticError, TypeError, ValueError) as error:
                self.fail(node, f"{name}: {error}")
            return self.constant(node, folded)
        return self.value(node, "scalar", "number", values, name)

    def generic_visit(self, node):
        self.fail(node, f"'{type(node).__name__}' is not supported in a formula")


class Row(dict):
    """A row that can be part of a key: there is one for each name."""

    def __hash__(self):
        return hash(self["name"])

    def __eq__(self, other):
        return self["name"] == other["name"]


def parse(title: str, text: str) -> ast.expr:
    """Parse the expression `text`; a `Block` if there are definitions before it."""
    try:
        *definitions, last = ast.parse(text).body or [None]
    except SyntaxError as error:
        raise FormulaError(explain(title, text, error.msg, error.lineno or 1, (error.offset or 1) - 1)) from None
    for line in definitions:
        if not isinstance(line, ast.Assign) or [type(target) for target in line.targets] != [ast.Name]:
            raise FormulaError(explain(title, text, "expected 'name = expression' before the last line", *place(line)))
    if not isinstance(last, ast.Expr):
        raise FormulaError(explain(title, text, "the last line must be an expression", *place(last)))
    return arrange(definitions, last.value)


def arrange(definitions: list[ast.Assign], value: ast.expr) -> ast.expr:
    """
    Return the value as a block with its definitions; those used on one side of a condition only move to that side.
    """
    if not definitions:
        return value
    if isinstance(value, ast.IfExp):
        sides, within = (value.body, value.orelse), []
        for side, other in (sides, sides[::-1]):
            elsewhere = reading(definitions, [value.test, other])
            here = reading(definitions, [side]) - elsewhere
            within.append([line for line in definitions if line.targets[0].id in here])
        moved = [line for lines in within for line in lines]
        definitions = [line for line in definitions if line not in moved]
        value.body, value.orelse = (arrange(*pair) for pair in zip(within, sides, strict=True))
    return ast.copy_location(Block(definitions, value), value)


def reading(definitions: list[ast.Assign], trees) -> set[str]:
    """Return the names that expressions use, including those of definitions."""
    found = {part.id for tree in trees for part in ast.walk(tree) if isinstance(part, ast.Name)}
    for line in reversed(definitions):
        if line.targets[0].id in found:
            found |= {part.id for part in ast.walk(line.value) if isinstance(part, ast.Name)}
    return found


def place(node: ast.AST) -> tuple[int, int]:
    """Line, from 1, and column, from 0."""
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def explain(title: str, text: str, message: str, line: int, column: int) -> str:
    """Format an error message: what, the formula, and a caret below the position."""
    lines = text.splitlines() or [""]
    lines.insert(min(line, len(lines)), " " * column + "^")
    return f"{title}: {message}.\n" + "\n".join(f"    {part}" for part in lines)
