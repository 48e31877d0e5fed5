"""Assembly: from a Program to an Executable, whose operations read and write slots."""

from functools import partial

from cygrad._core.compiler.executable import Executable
from cygrad._core.compiler.scheduling import parallel_sections
from cygrad._core.table.expression import forms

__all__ = ["assemble"]


def assemble(program, positions, make_constant):
    """
    Return the Executable of a Program, and the slot of each output.

    Parameters
    ----------
    positions : dict
        Number of an input buffer -> (kind, number of its tensor).
    """
    slots, traced, inputs, views, last = {}, [], [], [], {}     # base array -> position of its last reader
    operations, roots = [], {}

    def root(number):
        found = roots.get(number)
        if found is None:
            found = roots[number] = program.memory_of(number)[0]
        return found

    def new_slot(layout):
        traced.append(layout)
        return len(traced) - 1

    def base(number):
        first = root(number)
        if first not in slots:
            buffer = program.buffers[program.arrays[first].buffer]
            slots[first] = new_slot(program.arrays[first])
            constant = program.arrays[first].buffer in program.folded or (
                buffer.kind == "constant" and not program.is_changed_before(buffer))
            if constant and first not in program.sources:
                inputs.append((slots[first], 2, 0))
            elif not constant and not program.is_local(buffer):
                # A backward program takes .grad as a saved tensor.
                of_leaf = buffer.kind == "gradient" and program.start == 0
                inputs.append((slots[first], int(of_leaf), positions[first]))
        return first

    def slot(number):
        found = slots.get(number)
        if found is None:
            first = base(number)
            if number not in slots:
                slots[number] = new_slot(program.arrays[number])
                views.append((slots[number], slots[first], program.memory_of(number)[1]))
            found = slots[number]
        return found

    def argument(value):
        if isinstance(value, tuple):           # copy of a constant
            kept = new_slot(program.sources[value[1]])
            inputs.append((kept, 2, 0))
            return kept
        if isinstance(value, list):
            return [None if entry is None else slot(entry) for entry in value]
        return slot(value) if isinstance(value, int) else value

    for position, operation in enumerate(program.operations):
        made = {"kind": operation.kind, "operator": operation.operator, "expression": None, "views": [], "dead": [],
                "meta": operation.meta, "is_list": operation.is_list, "step": operation.step, "reuse": 0,
                "can_fail": program.can_fail(operation)}
        if operation.kind == "optimize":
            made["arguments"] = []
            made["updates"] = [update(own, slot) for own in operation.arguments]
        elif operation.expression is not None:
            made["expression"] = assembled(operation.expression, make_constant)
            made["arguments"] = [slot(number) for number in operation.expression.inputs]
        else:
            made["arguments"] = [argument(value) for value in operation.arguments]
        if operation.kind == "fused_loop":
            made["fused_loop"] = (operation.n_operands, [(assembled(expression, make_constant), inputs, out)
                                                         for expression, inputs, out in operation.stages])
        touched = [*operation.uses(), *[number for number in operation.results if number >= 0]]
        if operation.target is not None:
            made["target"] = slot(operation.target)
            touched.append(operation.target)
        made["results"] = [-1 if number < 0 else slot(number) for number in operation.results]
        made["touched"] = set(map(root, touched))
        made["text"] = partial(operation.line, lambda number: f"%{slots[number]}")
        for first in made["touched"]:
            last[first] = position
        operations.append(made)
    outgoing = {number: slot(number) for number in sorted(program.outgoing)}
    for first, position in last.items():
        buffer = program.arrays[first].buffer
        if buffer not in program.output_buffers and (
                program.is_local(program.buffers[buffer]) or first in program.sources):
            operations[position]["dead"].append(slots[first])
    mark_reuse(program, operations, slots)
    sections = parallel_sections(program)
    mark_touched(program, operations, slots, sections)
    return Executable(traced, inputs, *arrange_views(program, operations, views, inputs), operations, sections), {
        number: outgoing.get(program.names.get(number, number)) for number in {*program.names, *outgoing}}


def assembled(expression, make_constant):
    """Return the arguments of the compiled expression: n_inputs, constants, instructions, result."""
    key = "registers", id(expression.code), expression.result, len(expression.inputs), len(expression.constants)
    found = forms.get(key)
    if found is None:
        found = forms[key] = expression.registers(), expression.code
    return len(expression.inputs), [make_constant(number) for number in expression.constants], *found[0]


def update(own, slot):
    """Return the slot of the step counter and those of parameter, gradient and state."""
    slots = [slot(number) for number in own]
    counter = -1
    if len(own) > 3:                           # Adam: the step counter comes first
        counter = slots.pop(2)
    return counter, slots + [-1] * (5 - len(slots))


def mark_reuse(program, operations, slots):
    """Let a result reuse the memory of an operand at its last use, unless its version matters."""
    for operation, own in zip(program.operations, operations, strict=True):
        if operation.kind in ("evaluate", "sum"):
            buffers = [program.arrays[number].buffer for number in operation.expression.inputs] if own["dead"] else ()
            for i, number in enumerate(operation.expression.inputs if own["dead"] else ()):
                if slots[number] in own["dead"] and buffers.count(buffers[i]) == 1 and (
                        program.is_never_written(number)):
                    own["reuse"] |= 1 << i


def mark_touched(program, operations, slots, sections):
    """Keep the slots that die in the section of an operation."""
    dying = [set()] * len(operations)
    for section in sections:
        own = range(section.start, section.stop)
        dying[own.start:own.stop] = [{slot for position in own for slot in operations[position]["dead"]}] * len(own)
    for operation, ends in zip(operations, dying, strict=True):
        operation["touched"] = sorted({slots[first] for first in operation["touched"]} & ends)


def arrange_views(program, operations, views, inputs):
    """Order views: those of inputs first, the others with the operation that makes their base."""
    outer = {slot for slot, _, _ in inputs}
    maker = {slot: operation for operation in operations for slot in operation["results"] if slot >= 0}
    first = [view for view in views if view[1] in outer]
    rest = []
    for view in views:
        if view[1] not in outer:
            maker[view[1]]["views"].append(view)
    for operation in operations:
        rest += operation["views"]
    return first + rest, len(first)
