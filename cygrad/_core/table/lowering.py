"""Formulas, lowered: from a graph of values to the steps of the machine.

An operand is a number: space << 8 | slot. A maximal element-wise subexpression becomes one FUSED step; what
two of them share is computed by a step of its own. A backward pass over the steps finds the last reader of each value,
which releases it or reuses its memory for the result.

The formulas of a row are lowered together, each to separate code, because any subset of them can be requested. A call
that several of them contain is a shared value with an index after the gradients: the first formula that needs it
computes it, and the last one can reuse its memory, as with a gradient.
"""

from typing import NamedTuple

from .expression import MAX_REGISTERS, Expression
from .formula import SCALARS, FormulaError, Reader, Value, explain
from .layout import FIRST_SHARED, formula_names, title
from .signature import TENSORS

SAVED, GRADS, TEMPORARIES, CONSTANTS = range(4)
# In the order of step_kind_t in interpreter.pxd.
KINDS = ("fused", "call", "scalar", "attribute", "tuple", "slice", "item", "listed", "arrays", "move",
         "jump", "jump_unless", "jump_if_there")
KIND = {name: number for number, name in enumerate(KINDS)}
SCALAR = {name: number for number, name in enumerate(SCALARS)}
ATTRIBUTE = {name: number for number, name in enumerate(
    ("shape", "ndim", "dtype", "numel", "strides", "storage_offset", "is_complex", "len", "sizes"))}
# As in operator.pxd and interpreter.pxd.
MAX_STEP_INPUTS, MAX_TEMPORARIES, MAX_GRADS = 12, 96, 20


class Step:
    """One instruction of the interpreter."""

    __slots__ = ("extra", "inputs", "kind", "last", "n_out", "out", "which")

    def __init__(self, kind, out, inputs, which=0, extra=None, n_out=1):
        self.kind, self.out, self.inputs, self.which = KIND[kind], out, list(inputs), which
        self.extra = extra        # Expression of "fused", row of "call"
        self.n_out, self.last = n_out, 0

    def text(self, name):
        """Return the step as text; `name` maps an operand to its name."""
        kind, inputs = KINDS[self.kind], ", ".join(map(name, self.inputs))
        if kind == "fused":
            value = self.extra.text(name)
        elif kind.startswith("jump"):
            return f"{kind} {self.which}{f' ({inputs})' if inputs else ''}"
        else:
            value = f"{self.extra['name'] if kind == 'call' else self.extra or kind}({inputs})"
        return f"{', '.join([name(self.out + number) for number in range(self.n_out)])} = {value}"


class Code(NamedTuple):
    """A formula, ready for conversion to C structs."""

    steps: list
    constants: list
    n_temporaries: int
    result: int               # operand
    reads: int                # bit j: gradient j, or the shared value in its slot, is read

    def __str__(self):
        """Show the steps with their positions, to which jumps refer, and the result."""
        def name(operand):
            space, slot = operand >> 8, operand & 255
            return repr(self.constants[slot]) if space == CONSTANTS else f"%{('saved', 'grad', 't')[space]}{slot}"

        lines = [f"{position}: {step.text(name)}" for position, step in enumerate(self.steps)]
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
            shared[value], whose = GRADS << 8 | slot, {value}
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
        self.steps, self.constants, self.n_temporaries = [], [], 0
        self.scopes = [{}]
        self.separate, self.final = separate(root), final(root)

    def lower(self) -> Code:
        result = self.operand(self.root)
        reads = mark_last_uses(self.steps, result)
        return Code(self.steps, self.constants, self.n_temporaries, result, reads)

    def operand(self, value: Value) -> int:
        """Return the operand of the value, computing it if necessary."""
        if value.op == "saved":
            return SAVED << 8 | value.payload
        if value.op == "grad":
            return GRADS << 8 | value.payload
        if value.op == "constant":
            return self.constant(value.payload)
        for scope in self.scopes:
            if value in scope:
                return scope[value]
        place = self.share(value) if value in self.shared else self.emit(value)
        self.scopes[-1][value] = place
        return place

    def share(self, value: Value) -> int:
        """Emit steps that compute a shared call unless it exists."""
        place = self.shared[value]
        read = {part.payload for part in ordered([self.root]) if part.op == "result" and part.inputs == (value,)}
        there = Step("jump_if_there", 0, [place + number for number in sorted(read)] or [place])
        self.steps.append(there)
        self.scopes.append({})               # its inputs are computed only if it was not
        inputs = self.inputs(value)
        self.steps.append(Step("call", place, inputs, 0, value.payload, n_results(value)))
        self.scopes.pop()
        there.which = len(self.steps)
        return place

    def constant(self, number) -> int:
        same = [k for k, known in enumerate(self.constants)
                if type(known) is type(number) and repr(known) == repr(number)]
        if not same:
            self.constants.append(number)
        return CONSTANTS << 8 | (same[0] if same else len(self.constants) - 1)

    def temporary(self, value, count=1) -> int:
        self.n_temporaries += count
        if self.n_temporaries > MAX_TEMPORARIES:
            fail(value, f"the formula is too long (more than {MAX_TEMPORARIES} temporary values)")
        return TEMPORARIES << 8 | (self.n_temporaries - count)

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
        count = n_results(value) if value.op == "call" else 1
        out = self.temporary(value, count)
        which = {"scalar": SCALAR, "attribute": ATTRIBUTE}.get(value.op, {}).get(value.payload, 0)
        self.steps.append(Step(value.op, out, inputs, which, value.payload, count))
        return out

    def inputs(self, value: Value) -> list[int]:
        if len(value.inputs) > MAX_STEP_INPUTS:
            fail(value, f"too many values at once (at most {MAX_STEP_INPUTS})")
        return [self.operand(part) for part in value.inputs]

    def choose(self, value: Value) -> int:
        """`a if c else b`: only one of the two is computed."""
        test = self.operand(value.inputs[0])
        out = self.temporary(value)
        unless = self.branch("jump_unless", [test], value.payload[0], out)
        jump = Step("jump", 0, [])
        self.steps.append(jump)
        unless.which = len(self.steps)
        self.branch(None, [], value.payload[1], out)
        jump.which = len(self.steps)
        return out

    def branch(self, jump, test, value, out):
        step = Step(jump, 0, test) if jump else None
        if step:
            self.steps.append(step)
        self.scopes.append({})           # values computed here do not exist on the other branch
        self.steps.append(Step("move", out, [self.operand(value)]))
        self.scopes.pop()
        return step

    def fuse(self, root: Value) -> int:
        """Emit one expression for all of `root` that is element-wise and not computed elsewhere."""
        while True:
            expression, parts = build_expression(root, self.inside)
            if expression.fits():
                break
            self.separate.add(half(parts))       # too long for one pass
        expression.inputs = [self.operand(leaf) for leaf in expression.inputs]
        out = self.temporary(root)
        self.steps.append(Step("fused", out, expression.inputs, int(root in self.final), expression))
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


def mark_last_uses(steps: list, result: int) -> int:
    """Set `last` of each step; -> bits of the gradients that the code reads. Jumps only go forward."""
    live = [set() for _ in steps] + [{result}]
    reads = {result}
    for position in reversed(range(len(steps))):
        step = steps[position]
        after = live[position + 1]
        if step.kind == KIND["jump"]:
            after = live[step.which]
        elif step.kind > KIND["jump"]:
            after = after | live[step.which]
        for number, operand in enumerate(step.inputs):
            if (operand >> 8 in (GRADS, TEMPORARIES) and operand not in after
                    and operand not in step.inputs[:number]):
                step.last |= 1 << number
        written = set() if step.kind >= KIND["jump"] else {step.out + k for k in range(step.n_out)}
        live[position] = (after - written) | set(step.inputs)
        reads |= live[position]
    return sum(1 << (operand & 255) for operand in reads if operand >> 8 == GRADS)
