"""
Lowering of formulas: from a graph of values to instructions.

A maximal element-wise subexpression becomes one instruction; what two of them share is computed by an instruction of
its own. A backward pass finds the last reader of each value, which releases it or reuses its memory for the result.

The formulas of a row are lowered together, each to separate code, because any subset of them can be requested. A call
that several of them contain is a shared value with an index after the gradients: the first formula that needs it
computes it, and the last one can reuse its memory, as with a gradient.
"""

from typing import NamedTuple

from ..program.expression import MAX_REGISTERS, Expression
from ..program.instruction import (
    ATTRIBUTE,
    CONJUGATE,
    CONSTANTS,
    FINAL,
    GRADS,
    KIND,
    MAX_GRADS,
    MAX_OPERANDS,
    MAX_TEMPORARIES,
    SAVED,
    TEMPORARIES,
    Instruction,
    operand,
    place,
)
from .formula import SCALARS, FormulaError, Reader, Value, explain
from .layout import FIRST_SHARED, formula_names, title
from .signature import TENSORS

SCALAR = {name: number for number, name in enumerate(SCALARS)}


class Code(NamedTuple):
    """A formula, ready for conversion to C structs."""

    instructions: list
    constants: list
    n_temporaries: int
    result: int               # operand
    reads: int                # bit j: gradient j, or the shared value in its slot, is read

    def __str__(self):
        """Show the instructions with their positions, to which jumps refer, and the result."""
        def name(operand):
            space, slot = place(operand)
            return repr(self.constants[slot]) if space == CONSTANTS else f"%{('saved', 'grad', 't')[space]}{slot}"

        lines = [f"{position}: {instruction.text(name)}" for position, instruction in enumerate(self.instructions)]
        return "\n".join([*lines, f"return {name(self.result)}"])


def lower_formulas(row: dict, layout: list, lookup) -> dict[str, Code]:
    """
    Lower the derivative formulas of a row; -> a dict by the names of the arguments.

    layout : the result of `layout.saved_layout` for the row. lookup : function from the name of an operator to its row,
    or None.
    """
    names, known, roots = formula_names(row, layout), {}, {}
    for name, kind, *_ in row["arguments"]:
        text = row["formulas"].get(name)
        if text is None:
            continue
        value = roots[name] = Reader(title(row, name), text, names, lookup, known).read()
        if value.type not in ("tensors" if kind == TENSORS else "tensor", "none"):
            raise FormulaError(f"{title(row, name)}: the formula gives {value.type}, not the gradient of '{name}': "
                               f"{text}")
    shared = shared_calls(list(roots.values()))
    return {name: Lowering(root, shared).lower() for name, root in roots.items()}


def shared_calls(roots: list) -> dict[Value, int]:
    """Return calls that several formulas contain, except those within another shared one; with their slots."""
    users, shared, slot = {}, {}, FIRST_SHARED
    for number, root in enumerate(roots):
        users.setdefault(root, set()).add(number)
    for value in reversed(ordered(roots)):   # the users of a value precede it
        whose = users[value]
        if value.op == "call" and len(whose) > 1 and slot + n_results(value) <= MAX_GRADS:
            shared[value], whose = operand(GRADS, slot), {value}
            slot += n_results(value)
        for part in parts(value):
            users.setdefault(part, set()).update(whose)
    return shared


class Lowering:
    """
    Lowers the graph of one formula.

    shared : slots of the calls that other formulas contain, too.
    """

    def __init__(self, root: Value, shared=None):
        self.root, self.shared = root, shared or {}
        self.instructions, self.constants, self.n_temporaries = [], [], 0
        self.scopes = [{}]
        self.separate, self.final = separate(root), final(root)

    def lower(self) -> Code:
        result = self.operand(self.root)
        reads = mark_last_uses(self.instructions, result)
        return Code(self.instructions, self.constants, self.n_temporaries, result, reads)

    def operand(self, value: Value) -> int:
        """Return the operand of the value, computing it if necessary."""
        if value.op == "saved":
            return operand(SAVED, value.payload)
        if value.op == "grad":
            return operand(GRADS, value.payload)
        if value.op == "constant":
            return self.constant(value.payload)
        for scope in self.scopes:
            if value in scope:
                return scope[value]
        found = self.share(value) if value in self.shared else self.emit(value)
        self.scopes[-1][value] = found
        return found

    def add(self, kind, *arguments, **details):
        self.instructions.append(Instruction(kind, *arguments, **details))
        return self.instructions[-1]

    def share(self, value: Value) -> int:
        """Emit instructions that compute a shared call unless it exists."""
        first = self.shared[value]
        read = {part.payload for part in ordered([self.root]) if part.op == "result" and part.inputs == (value,)}
        there = self.add("jump_if_there", [first + number for number in sorted(read)] or [first])
        self.scopes.append({})               # its inputs are computed only if it was not
        self.call(value, self.inputs(value), first)
        self.scopes.pop()
        there.which = len(self.instructions)
        return first

    def call(self, value: Value, inputs: list, first: int):
        self.add("call", inputs, range(first, first + n_results(value)), 0, value.payload["name"],
                 value.payload["kernel"])

    def constant(self, number) -> int:
        same = [k for k, known in enumerate(self.constants)
                if type(known) is type(number) and repr(known) == repr(number)]
        if not same:
            self.constants.append(number)
        return operand(CONSTANTS, same[0] if same else len(self.constants) - 1)

    def temporary(self, value, count=1) -> int:
        self.n_temporaries += count
        if self.n_temporaries > MAX_TEMPORARIES:
            fail(value, f"the formula is too long (more than {MAX_TEMPORARIES} temporary values)")
        return operand(TEMPORARIES, self.n_temporaries - count)

    def emit(self, value: Value) -> int:
        if value.op == "elementwise":
            return self.fuse(value)
        if value.op == "if":
            return self.choose(value)
        if value.op == "result":
            return self.operand(value.inputs[0]) + value.payload
        if value.op == "after":
            return [self.operand(part) for part in value.inputs][-1]
        inputs = self.inputs(value)
        if value.op == "call":
            out = self.temporary(value, n_results(value))
            self.call(value, inputs, out)
            return out
        out = self.temporary(value)
        which = {"scalar": SCALAR, "attribute": ATTRIBUTE}.get(value.op, {}).get(value.payload, 0)
        self.add(value.op, inputs, [out], which, value.payload)
        return out

    def inputs(self, value: Value) -> list[int]:
        if len(value.inputs) > MAX_OPERANDS:
            fail(value, f"too many values at once (at most {MAX_OPERANDS})")
        return [self.operand(part) for part in value.inputs]

    def choose(self, value: Value) -> int:
        """`a if c else b`: only one of the two is computed."""
        test = self.operand(value.inputs[0])
        out = self.temporary(value)
        unless = self.add("jump_unless", [test])
        self.branch(value.payload[0], out)
        jump = self.add("jump")
        unless.which = len(self.instructions)
        self.branch(value.payload[1], out)
        jump.which = len(self.instructions)
        return out

    def branch(self, value, out):
        self.scopes.append({})           # values computed here do not exist on the other branch
        self.add("move", [self.operand(value)], [out])
        self.scopes.pop()

    def fuse(self, root: Value) -> int:
        """Emit one expression for all of `root` that is element-wise and not computed elsewhere."""
        while True:
            expression, parts = build_expression(root, self.inside)
            if expression.fits():
                break
            self.separate.add(half(parts))       # too long for one pass
        expression.inputs = [self.operand(leaf) for leaf in expression.inputs]
        out = self.temporary(root)
        conjugate = CONJUGATE if [name for name, _ in expression.code] == ["conj"] else 0
        self.add("evaluate", expression.inputs, [out], conjugate | (FINAL if root in self.final else 0),
                 expression=expression)
        return out

    def inside(self, value: Value) -> bool:
        """Return whether the value is computed within the expression of its user."""
        return (value.op == "elementwise" and value not in self.separate
                and not any(value in scope for scope in self.scopes))


def build_expression(root: Value, inside, inputs=()) -> tuple[Expression, list]:
    """
    Return the expression of a value, whose inputs are values, and the values of its instructions in order.

    `inputs` come first among its inputs, whether it reads them or not.
    """
    leaves, constants, code, order = list(inputs), [], [], []
    place = {value: ("in", number) for number, value in enumerate(inputs)}

    def visit(value):
        if value in place:
            return
        if value.op == "constant":
            place[value] = ("number", len(constants))
            constants.append(value.payload)
        elif value is root or inside(value):
            for part in value.inputs:
                visit(part)
            place[value] = ("made", len(order))
            order.append(value)
            code.append((value.payload, [place[part] for part in value.inputs]))
        else:
            place[value] = ("in", len(leaves))
            leaves.append(value)

    visit(root)
    return Expression(leaves, constants, code, place[root]), order


def separate(root: Value) -> set:
    """
    Return the element-wise values that need a register.

    These are the result, operands of other operations, and values shared by two programs.
    """
    order = ordered([root])
    own, programs = set(), {value: set() for value in order}
    for value in reversed(order):            # the users of a value precede it
        if value.op == "elementwise" and (value is root or len(programs[value]) > 1):
            own.add(value)
        users = {value} if value in own or value.op != "elementwise" else programs[value]
        for part in parts(value):
            programs[part] |= users
            if value.op != "elementwise" and part.op == "elementwise":
                own.add(part)
    return own


def final(root: Value) -> set:
    """Return whether it is the value of the formula only, and not read otherwise."""
    found, read = set(), set()

    def visit(value):
        found.add(value)
        for part in value.payload if value.op == "if" else value.inputs[-1:] if value.op == "after" else ():
            visit(part)

    visit(root)
    for value in ordered([root]):
        if value.op not in ("if", "after"):
            read.update(value.inputs)
        elif value not in found:
            read.update(parts(value))
        elif value.op == "if":
            read.update(value.inputs)
    return found - read


def ordered(roots: list) -> list[Value]:
    """Return the values of formulas in topological order."""
    order, seen = [], set()

    def visit(value):
        if value not in seen:
            seen.add(value)
            for part in parts(value):
                visit(part)
            order.append(value)

    for root in roots:
        visit(root)
    return order


def half(order: list) -> Value:
    """Return the value whose computation takes closest to half of these operations; the last one needs them all."""
    below = {}
    for value in order:
        below[value] = {value}.union(*[below.get(part, ()) for part in value.inputs])
    return min(order[:-1], key=lambda value: abs(2 * len(below[value]) - len(order)))


def lower_forward(root: Value, arguments: list) -> Expression:
    """Return the expression of an element-wise forward formula; its inputs are the arguments in order."""
    def inside(value):
        if value.op != "elementwise":
            fail(value, f"a forward formula must be element-wise throughout (got {value.op})")
        return True

    if root.op != "elementwise":
        inside(root)
    expression, _ = build_expression(root, inside, arguments)
    if not expression.fits():
        fail(root, f"the forward formula is too long (more than {MAX_REGISTERS} registers)")
    return expression


def fail(value: Value, message: str):
    title, text, line, column = value.position
    raise FormulaError(explain(title, text, message, line, column))


def parts(value: Value) -> tuple:
    """Inputs, and both branches of a conditional."""
    return (*value.inputs, *value.payload) if value.op == "if" else value.inputs


def n_results(value: Value) -> int:
    """Return how many results a call has."""
    return len(value.payload["results"])


def mark_last_uses(instructions: list, result: int) -> int:
    """Set `last` and `dead` of each instruction; -> bits of the gradients that are read. Jumps only go forward."""
    live = [set() for _ in instructions] + [{result}]
    reads = {result}
    for position in reversed(range(len(instructions))):
        own = instructions[position]
        after = live[position + 1]
        if own.kind == KIND["jump"]:
            after = live[own.which]
        elif own.kind > KIND["jump"]:
            after = after | live[own.which]
        for number, read in enumerate(own.operands):
            if place(read)[0] in (GRADS, TEMPORARIES) and read not in after and read not in own.operands[:number]:
                own.last |= 1 << number
                own.dead.append(read)
        live[position] = after - set(own.results) | set(own.operands)
        reads |= live[position]
    return sum(1 << place(read)[1] for read in reads if place(read)[0] == GRADS)
