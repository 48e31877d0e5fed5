"""Parse the text form of a Program."""

import ast
import re

from cygrad._core.arrays.dtype import _dtype_by_name as dtype_by_name
from cygrad._core.compiler.executable import layout
from cygrad._core.compiler.program import CHANGES, ArrayExpression, FusedLoop, Operation, Program
from cygrad._core.compiler.tracer import Buffer, constant
from cygrad._core.primitives.primitive_table import names as primitive_names
from cygrad._core.table.operator import find_operator

PRIMITIVES = frozenset(primitive_names())
INPUTS = ("tensor", "gradient", "constant")
ARRAY = re.compile(r"%(\w+)(?:: (\w+)(\[.*?\])(?: strides (\[.*?\]))?)?$")

__all__ = ["parse"]


class Reader:
    """Reads the lines of one program."""

    def __init__(self):
        self.arrays, self.buffers, self.operations, self.numbers, self.outgoing = [], [], [], {}, []

    def new_array(self, text, kind="result", base=None, offset=0, number=None):
        """Declare "%3: float32[2, 4] strides [1, 2]" and return its number."""
        match = ARRAY.match(text.strip())
        if match is None or match[2] is None or match[1] in self.numbers:
            raise ValueError(f"parse: expected a new array with dtype and shape (got {text!r})")
        shape = tuple(ast.literal_eval(match[3]))
        strides = None if match[4] is None else tuple(ast.literal_eval(match[4]))
        buffer = len(self.buffers) if base is None else self.arrays[base].buffer
        if base is None:
            self.buffers.append(Buffer(kind, len(self.arrays), 0 if kind == "result" else -1, []))
        self.arrays.append(layout(dtype_by_name(match[2]), shape, strides, buffer, offset, number))
        self.numbers[match[1]] = len(self.arrays) - 1
        return len(self.arrays) - 1

    def number(self, name):
        if name not in self.numbers:
            raise ValueError(f"parse: %{name} is read before its line")
        return self.numbers[name]

    def tree(self, text):
        return ast.parse(re.sub(r"%(\w+)", r"array_\1", text), mode="eval").body

    def value(self, node):
        """Return an argument: array number, list, Constant or None."""
        if isinstance(node, ast.Name) and node.id.startswith("array_"):
            return self.number(node.id[6:])
        if isinstance(node, ast.List):
            return [self.value(entry) for entry in node.elts]
        if isinstance(node, ast.Attribute):
            return constant(dtype_by_name(node.attr))
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        return constant(plain(node))

    def expression(self, node, names=None):
        """Return the Expression of nested calls of primitives; `names` are operands of a loop by name."""
        inputs, constants, code = [], [], []

        def visit(node):
            if isinstance(node, ast.Call):
                operands = [visit(argument) for argument in node.args]
                code.append((node.func.id, operands))
                return "made", len(code) - 1
            if isinstance(node, ast.Name) and (node.id.startswith("array_") or node.id in (names or ())):
                number = names[node.id] if names and node.id in names else self.number(node.id[6:])
                if number not in inputs:
                    inputs.append(number)
                return "in", inputs.index(number)
            constants.append(constant(plain(node)))
            return "number", len(constants) - 1

        result = visit(node)
        return ArrayExpression(inputs, constants, code, result)

    def is_expression(self, node):
        return node.func.id in PRIMITIVES and len(node.args) and not any(
            isinstance(part, (ast.List, ast.Tuple)) or (isinstance(part, ast.Constant) and part.value is None)
            for part in node.args)

    def loop(self, left, text):
        """Read "%3: float32[4] = loop(t0 = mul(%0, %1); %3 = add(t0, %0))"."""
        results = tuple([self.new_array(part) for part in split(left)])
        stages, names, inputs = [], {}, []
        for line in text.split("; "):
            out, _, right = line.partition(" = ")
            tree = self.tree(right)
            stages.append((tree, out))
            for part in ast.walk(tree):
                if isinstance(part, ast.Name) and part.id.startswith("array_"):
                    number = self.number(part.id[6:])
                    if number not in inputs and number not in results:
                        inputs.append(number)
        operands = {number: position for position, number in enumerate([*inputs, *results])}
        for _, out in stages:
            if not out.startswith("%"):
                names.setdefault(out, -1 - len(names))
                operands.setdefault(names[out], len(operands))
        made = []
        for tree, out in stages:
            expression = self.expression(tree, names)
            target = names[out] if out in names else self.number(out[1:])
            made.append((expression, [operands[number] for number in expression.inputs], operands[target]))
        self.operations.append(FusedLoop(tuple(inputs), results, made, len(operands)))

    def operation(self, left, sign, right):
        """Read one operation."""
        tree = self.tree(right)
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise ValueError(f"parse: expected an operation (got {right!r})")
        name, is_list = tree.func.id, left.startswith("[")
        target = None if sign == "=" else self.number(left[1:])
        made = {"target": target, "is_list": is_list}
        if name == "sum_to" and isinstance(tree.args[0], ast.Call):
            expression, kind, arguments = self.expression(tree.args[0]), "sum", ()
        elif name in ("allocate", "fill", "copy", "accumulate", "stack", "slices"):
            kind, expression, arguments = name, None, tuple(map(self.value, tree.args))
            kind += "_into" if kind == "accumulate" and sign == "<-" else ""
        elif self.is_expression(tree):
            kind, expression, arguments = "change" if sign == ":=" else "evaluate", self.expression(tree), ()
        else:
            made["operator"] = find_operator(name)
            kind, expression, arguments = "kernel", None, tuple(map(self.value, tree.args))
            if sign == ":=":
                kind = CHANGES[1] if made["operator"].row["into"] is not None else CHANGES[2]
        results = () if sign != "=" else tuple([-1 if part.strip() == "_" else self.new_array(part)
                                                for part in split(left[1:-1] if is_list else left)])
        if sign == ":=":
            self.buffers[self.arrays[target].buffer].writes.append(len(self.operations))
        if kind == "sum":
            made["meta"] = layout(self.arrays[results[0]].dtype, plain(tree.args[1]))
        self.operations.append(Operation(kind, arguments, results, expression=expression, **made))

    def line(self, line):
        if line.startswith("return"):
            self.outgoing = [self.number(part.strip()[1:]) for part in line[6:].split(",") if part.strip()]
            return
        match = re.match(r"(.*?) (=|:=|<-) (.*)$", line)
        if match is None:
            raise ValueError(f"parse: expected 'result = operation' (got {line!r})")
        left, sign, right = match.groups()
        head, _, rest = right.partition("(")
        if head in INPUTS:
            self.new_array(left, head, number=float(rest[:-1]) if rest != ")" else None)
        elif head == "view":
            base, _, offset = rest[:-1].partition(", ")
            self.new_array(left, base=self.number(base[1:]), offset=int(offset))
        elif head == "loop":
            self.loop(left, right[5:-1])
        else:
            self.operation(left, sign, right)


def split(text):
    """Split at commas outside of brackets."""
    return re.split(r",\s*(?![^\[]*\])", text)


def plain(node):
    """Return a Python number, string or tuple; inf and nan are names."""
    text = ast.unparse(node)
    return float(text) if text.lstrip("-") in ("inf", "nan") else ast.literal_eval(text)


def parse(text, fast=False):
    """
    Return the Program of a text; that of an optimizer step or a random draw cannot be read.

    Parameters
    ----------
    text : str
        As `str(program)` has it.
    fast : bool, default False
        Allow other orders of summation.
    """
    reader = Reader()
    for line in filter(None, map(str.strip, text.splitlines())):
        reader.line(line)
    return Program(reader.arrays, reader.buffers, reader.operations, reader.outgoing, fast=fast,
                   snapshot=lambda position: reader.arrays[reader.buffers[position].first])
