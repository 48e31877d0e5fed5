"""Assembly: from a Program to an Executable, whose instructions read and write slots."""

from cygrad._core.compiler.program cimport Operation, Program
from cygrad._core.compiler.tracer cimport Buffer

from functools import partial

from cygrad._core.compiler.executable import Executable
from cygrad._core.compiler.scheduling import parallel_sections
from cygrad._core.program.instruction import (
    CONSTANTS,
    IN_PLACE,
    INTO,
    LISTS,
    NO_OPERAND,
    TEMPORARIES,
    UNPACK,
    Instruction,
    operand,
    place,
)

# Kind and flags of the instruction of an operation; a draw has none.
INSTRUCTIONS = {
    "evaluate": ("evaluate", 0), "change": ("evaluate", IN_PLACE), "sum": ("evaluate", 0), "kernel": ("call", 0),
    "kernel_into": ("call", IN_PLACE | INTO), "kernel_copy": ("call", IN_PLACE), "copy": ("copy", 0),
    "optimize": ("routine", 0), "fused_loop": ("fused_loop", 0), "accumulate": ("call", 0),
    "accumulate_into": ("call", INTO), "allocate": ("copy", 0), "fill": ("copy", 0),
}
PRODUCTS = {"accumulate": "add_product", "accumulate_into": "add_product_into"}


cdef class Assembly:
    """Assembles the instructions of one program."""

    cdef Program program
    cdef dict positions, slots, roots, views
    cdef list traced, inputs, constants, lists, instructions

    def __init__(self, Program program not None, dict positions not None):
        self.program, self.positions = program, positions
        self.slots, self.traced, self.inputs, self.roots = {}, [], [], {}
        self.views = {}               # slot of a base -> [(slot, offset in bytes)]
        self.constants, self.lists, self.instructions = [], [], []

    cdef object root(self, number):
        found = self.roots.get(number)
        if found is None:
            found = self.roots[number] = self.program.memory_of(number)[0]
        return found

    cdef object new_slot(self, layout):
        self.traced.append(layout)
        return len(self.traced) - 1

    cdef object base(self, number):
        """Return the base array of an array, with a slot."""
        program, first = self.program, self.root(number)
        if first not in self.slots:
            position = program.arrays[first].buffer
            buffer = program.buffers[position]
            self.slots[first] = self.new_slot(program.arrays[first])
            constant = position in program.folded or (
                buffer.kind == "constant" and not program.is_changed_before(buffer))
            if constant and first not in program.sources:
                self.inputs.append((self.slots[first], 2, 0))
            elif not constant and not program.is_local(buffer):
                # A backward program takes .grad as a saved tensor.
                of_leaf = buffer.kind == "gradient" and program.start == 0
                self.inputs.append((self.slots[first], int(of_leaf), self.positions[first]))
        return first

    cdef object slot(self, number):
        """Return the slot of an array; that of a view is pointed to its base."""
        found = self.slots.get(number)
        if found is None:
            first = self.base(number)
            if number not in self.slots:
                self.slots[number] = self.new_slot(self.program.arrays[number])
                self.views.setdefault(self.slots[first], []).append(
                    (self.slots[number], self.program.memory_of(number)[1]))
            found = self.slots[number]
        return found

    cdef object temporary(self, number):
        return NO_OPERAND if number is None or number < 0 else operand(TEMPORARIES, self.slot(number))

    cdef object constant(self, value):
        self.constants.append(value)
        return operand(CONSTANTS, len(self.constants) - 1)

    cdef object argument(self, value):
        """Return the operand of an argument."""
        if isinstance(value, tuple):           # copy of a constant
            kept = self.new_slot(self.program.sources[value[1]])
            self.inputs.append((kept, 2, 0))
            return operand(TEMPORARIES, kept)
        if isinstance(value, list):
            nothing = self.constant(None) if None in value else None
            entries = [nothing if entry is None else self.temporary(entry) for entry in value]
            self.lists.append(len(value))
            self.instructions.append(Instruction("arrays", entries, [operand(LISTS, len(self.lists) - 1)]))
            return self.instructions[-1].results[0]
        return self.temporary(value) if isinstance(value, int) else self.constant(value)

    cdef dict add(self, Operation operation):
        """Return the description of an operation, with its instructions and the slots that it uses."""
        made = {"kind": operation.kind, "operator": operation.operator, "meta": operation.meta, "step": operation.step,
                "can_fail": self.program.can_fail(operation), "views": [], "dead": []}
        start, operands = len(self.instructions), []
        if operation.kind == "optimize":
            made["updates"] = [update([self.slot(number) for number in own]) for own in operation.arguments]
        elif operation.expression is not None:
            operands = [self.temporary(number) for number in operation.expression.inputs]
        else:
            operands = [self.argument(value) for value in operation.arguments]
        target = NO_OPERAND if operation.target is None else self.temporary(operation.target)
        results = [self.temporary(number) for number in operation.results]
        if operation.kind != "draw":
            kind, flags = INSTRUCTIONS[operation.kind]
            made["main"] = Instruction(
                kind, operands, results, flags | (UNPACK if operation.is_list else 0),
                expression=operation.expression, target=target)
            self.name(made["main"], operation)
            self.instructions.append(made["main"])
        made["instructions"] = self.instructions[start:]
        made["reads"] = [place(read)[1] for instruction in made["instructions"] for read in instruction.operands
                         if place(read)[0] == TEMPORARIES]
        made["results"] = [-1 if result == NO_OPERAND else place(result)[1] for result in results]
        touched = [*operation.uses(), *[number for number in operation.results if number >= 0]]
        if operation.target is not None:
            made["target"] = place(target)[1]
            touched.append(operation.target)
        made["touched"] = {self.root(number) for number in touched}
        made["text"] = partial(text_of, operation, self.slots)
        return made

    cdef int name(self, instruction, Operation operation) except -1:
        """Set operator and kernel of an instruction, and the stages of a fused loop."""
        if operation.kind == "fused_loop":
            instruction.detail = operation.n_operands, operation.stages
        elif operation.kind in PRODUCTS:
            instruction.name, instruction.kernel = "matmul", PRODUCTS[operation.kind]
        elif operation.operator is not None:
            row = operation.operator.row
            instruction.name, instruction.kernel = row["name"], row["into" if instruction.which & INTO else "kernel"]
        return 0

    cdef list arranged(self, list operations):
        """Return all instructions, each view after its base is computed, those of inputs first."""
        maker = {slot: operation for operation in operations for slot in operation["results"] if slot >= 0}
        found = []
        for base, views in self.views.items():
            made = [Instruction("view", [operand(TEMPORARIES, base)], [operand(TEMPORARIES, slot)], detail=offset)
                    for slot, offset in views]
            if base in maker:
                maker[base]["instructions"] += made
                maker[base]["views"] += [(slot, base) for slot, _ in views]
            else:
                found += made
        for operation in operations:
            operation["first"] = len(found)
            found += operation.pop("instructions")
        return found


def text_of(Operation operation not None, dict slots not None):
    """Return an operation with its results as text, by slots."""
    return operation.line(lambda number: f"%{slots[number]}")


def assemble(Program program not None, dict positions not None):
    """
    Return the Executable of a Program, and the slot of each output.

    Parameters
    ----------
    positions : dict
        Number of an input buffer -> (kind, number of its tensor).
    """
    cdef Assembly assembly = Assembly(program, positions)
    cdef dict last = {}               # base array -> position of its last reader
    operations = [assembly.add(operation) for operation in program.operations]
    slots = assembly.slots
    for position, operation in enumerate(operations):
        last.update(dict.fromkeys(operation["touched"], position))
    outgoing = {number: assembly.slot(number) for number in sorted(program.outgoing)}
    for first, position in last.items():
        buffer = program.arrays[first].buffer
        if buffer not in program.output_buffers and (
                program.is_local(program.buffers[buffer]) or first in program.sources):
            operations[position]["dead"].append(slots[first])
    for operation, own in zip(program.operations, operations, strict=True):
        if own["dead"] and "main" in own:
            mark_dead(program, operation, own, slots)
    sections = parallel_sections(program)
    mark_touched(program, operations, slots, sections)
    instructions = assembly.arranged(operations)
    views = [slot for found in assembly.views.values() for slot, _ in found]
    return Executable(assembly.traced, assembly.inputs, instructions, assembly.constants, views, assembly.lists,
                      operations, sections), {
        number: outgoing.get(program.names.get(number, number)) for number in {*program.names, *outgoing}}


cdef tuple update(list slots):
    """Return the slot of the step counter and those of parameter, gradient and state."""
    counter = -1
    if len(slots) > 3:                           # Adam: the step counter comes first
        counter = slots.pop(2)
    return counter, slots + [-1] * (5 - len(slots))


cdef mark_dead(Program program, Operation operation, dict own, dict slots):
    """Release values after their last use; a result may reuse their memory, unless its version matters."""
    own["main"].dead = [operand(TEMPORARIES, slot) for slot in own["dead"]]
    if operation.kind in ("evaluate", "sum"):
        buffers = [program.arrays[number].buffer for number in operation.expression.inputs]
        for i, number in enumerate(operation.expression.inputs):
            if slots[number] in own["dead"] and buffers.count(buffers[i]) == 1 and program.is_never_written(number):
                own["main"].last |= 1 << i


cdef mark_touched(Program program, list operations, dict slots, list sections):
    """Keep the slots that die in the section of an operation."""
    dying = [set()] * len(operations)
    for section in sections:
        own = range(section.start, section.stop)
        dying[own.start:own.stop] = [{slot for position in own for slot in operations[position]["dead"]}] * len(own)
    for operation, ends in zip(operations, dying, strict=True):
        operation["touched"] = sorted({slots[first] for first in operation["touched"]} & ends)
