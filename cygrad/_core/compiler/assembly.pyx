# distutils: extra_compile_args = -O1
"""
Assembly: from a Program to an Executable, whose instructions read and write slots, and whose independent operations may
run in parallel.
"""

cimport cython
from libc.stdint cimport int64_t
from cygrad._core.compiler.executable cimport CompiledOperation
from cygrad._core.compiler.program cimport ArrayExpression, Operation, Program, array_at, buffer_at, buffer_of
from cygrad._core.compiler.tracer cimport Buffer
from cygrad._core.program.executor cimport (
    CONSTANT_SPACE, LIST_SPACE, SPACE_SHIFT, TEMPORARY_SPACE, operand_slot, operand_space,
)

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.executable import Executable, ParallelSection, primitive_cost
from cygrad._core.program.instruction import INTO, IN_PLACE, NO_OPERAND, UNPACK, Instruction


# ---------------------------------------------------------------------------------------------------------------- slots

# Kind and flags of the instruction of an operation; a draw has none.
INSTRUCTIONS = {
    "evaluate": ("evaluate", 0), "change": ("evaluate", IN_PLACE), "sum": ("evaluate", 0), "kernel": ("call", 0),
    "kernel_into": ("call", IN_PLACE | INTO), "kernel_copy": ("call", IN_PLACE), "copy": ("copy", 0),
    "optimize": ("routine", 0), "fused_loop": ("fused_loop", 0), "accumulate": ("call", 0),
    "accumulate_into": ("call", INTO), "allocate": ("copy", 0), "fill": ("copy", 0),
}
PRODUCTS = {"accumulate": "add_product", "accumulate_into": "add_product_into"}


@cython.nonecheck(True)
cdef class Assembly:
    """Assembles the instructions of one program."""

    cdef Program program
    cdef dict positions
    cdef dict slots               # array -> slot
    cdef dict views               # slot of a base -> [(slot, offset in bytes)]
    cdef dict last                # base array -> position of its last reader
    cdef list traced, inputs, constants, lists

    def __init__(self, Program program not None, dict positions not None):
        self.program, self.positions = program, positions
        self.slots, self.views, self.last = {}, {}, {}
        self.traced, self.inputs, self.constants, self.lists = [], [], [], []

    cdef int root(self, int number) except -1:
        """Return the base array of the memory of an array."""
        return self.program.memory_of(number)[0] if self.program.aliases else buffer_of(self.program, number).first

    cdef int new_slot(self, layout) except -1:
        self.traced.append(layout)
        return len(self.traced) - 1

    cdef int base(self, int first) except -1:
        """Return the slot of a base array."""
        cdef Program program = self.program
        cdef Buffer buffer
        found = self.slots.get(first)
        if found is None:
            buffer = buffer_of(program, first)
            found = self.slots[first] = self.new_slot(program.arrays[first])
            constant = buffer_at(program, first) in program.folded or (
                buffer.kind == "constant" and not program.is_changed_before(buffer))
            if constant and first not in program.sources:
                self.inputs.append((found, 2, 0))
            elif not constant and not program.is_local(buffer):
                # A backward program takes .grad as a saved tensor.
                of_leaf = buffer.kind == "gradient" and program.start == 0
                self.inputs.append((found, int(of_leaf), self.positions[first]))
        return found

    cdef int slot(self, int number) except -1:
        """Return the slot of an array; that of a view is pointed to its base."""
        cdef int base
        found = self.slots.get(number)
        if found is None:
            base = self.base(self.root(number))
            found = self.slots.get(number)
            if found is None:
                found = self.slots[number] = self.new_slot(self.program.arrays[number])
                self.views.setdefault(base, []).append((found, self.program.memory_of(number)[1]))
        return found

    cdef object temporary(self, number, int position):
        """Return the operand of an array that the operation at this position uses."""
        if number is None or number < 0:
            return NO_OPERAND
        self.last[self.root(number)] = position
        return TEMPORARY_SPACE << SPACE_SHIFT | self.slot(number)

    cdef object constant(self, value):
        self.constants.append(value)
        return CONSTANT_SPACE << SPACE_SHIFT | (len(self.constants) - 1)

    cdef object argument(self, value, int position, CompiledOperation made):
        """Return the operand of an argument."""
        if isinstance(value, int):
            return self.temporary(value, position)
        if isinstance(value, tuple):           # copy of a constant
            kept = self.new_slot(self.program.sources[value[1]])
            self.inputs.append((kept, 2, 0))
            return TEMPORARY_SPACE << SPACE_SHIFT | kept
        if isinstance(value, list):
            nothing = self.constant(None) if None in value else None
            entries = [nothing if entry is None else self.temporary(entry, position) for entry in value]
            self.lists.append(len(value))
            result = LIST_SPACE << SPACE_SHIFT | (len(self.lists) - 1)
            made.instructions.append(Instruction("arrays", entries, [result]))
            return result
        return self.constant(value)

    cdef CompiledOperation add(self, Operation operation, int position):
        """Return an operation with its instructions and the slots that it uses."""
        cdef CompiledOperation made = CompiledOperation(operation, self.slots, self.program.can_fail(operation))
        cdef list operands = []
        if operation.kind == "optimize":
            for own in operation.arguments:
                for number in own:
                    self.temporary(number, position)
                made.updates += (_update([self.slot(number) for number in own]),)
        elif operation.expression is not None:
            operands = [self.temporary(number, position) for number in operation.expression.inputs]
        else:
            operands = [self.argument(value, position, made) for value in operation.arguments]
        read, target = operands, self.temporary(operation.target, position)
        results = [self.temporary(number, position) for number in operation.results]
        for instruction in made.instructions:
            read = read + instruction.operands
        made.reads = tuple([operand_slot(number) for number in read if operand_space(number) == TEMPORARY_SPACE])
        made.target = -1 if operation.target is None else operand_slot(target)
        made.results = tuple([-1 if result == NO_OPERAND else operand_slot(result) for result in results])
        if operation.kind != "draw":
            kind, flags = INSTRUCTIONS[operation.kind]
            if operation.is_list:
                flags |= UNPACK
            name, kernel, detail = _details(operation, flags)
            made.instructions.append(Instruction(kind, operands, results, flags, name, kernel, operation.expression,
                                                 target, detail))
        return made

    cdef list arranged(self, list operations):
        """Return all instructions, each view after its base is computed, those of inputs first."""
        cdef CompiledOperation operation
        cdef dict maker = {}
        cdef list found = []
        if self.views:
            for operation in operations:
                maker.update(dict.fromkeys(operation.results, operation))
        for base, views in self.views.items():
            made = [Instruction("view", [TEMPORARY_SPACE << SPACE_SHIFT | base],
                                [TEMPORARY_SPACE << SPACE_SHIFT | slot], detail=offset) for slot, offset in views]
            operation = maker.get(base)
            if operation is not None:
                operation.instructions += made
                operation.views += tuple([(slot, base) for slot, _ in views])
            else:
                found += made
        for operation in operations:
            operation.first = len(found)
            found += operation.instructions
            operation.instructions = None
        return found


cdef tuple _details(Operation operation, int flags):
    """Return the name of the operator, that of the kernel, and the detail of a fused loop."""
    if operation.kind == "fused_loop":
        return None, None, (operation.n_operands, operation.stages)
    if operation.kind in PRODUCTS:
        return "matmul", PRODUCTS[operation.kind], None
    if operation.operator is None:
        return None, None, None
    row = operation.operator.row
    return row["name"], row["into" if flags & INTO else "kernel"], None


def assemble(Program program not None, dict positions not None):
    """
    Return the Executable of a Program, and the slot of each output.

    Parameters
    ----------
    positions : dict
        Number of an input buffer -> (kind, number of its tensor).
    """
    cdef Assembly assembly = Assembly(program, positions)
    cdef Operation operation
    cdef list operations = []
    for operation in program.operations:
        operations.append(assembly.add(operation, len(operations)))
    outgoing = dict([(number, assembly.slot(number)) for number in sorted(program.outgoing)])
    for first, position in assembly.last.items():
        if buffer_at(program, first) not in program.output_buffers and (
                program.is_local(buffer_of(program, first)) or first in program.sources):
            _mark_dead(program, program.operations[position], operations[position], assembly.slots[first])
    sections = parallel_sections(program)
    _mark_touched(assembly, operations, sections)
    instructions = assembly.arranged(operations)
    views = [slot for found in assembly.views.values() for slot, _ in found]
    slots = dict([(number, outgoing.get(program.names.get(number, number))) for number in {*program.names, *outgoing}])
    return Executable(assembly.traced, assembly.inputs, instructions, assembly.constants, views, assembly.lists,
                      operations, sections), slots


cdef tuple _update(list slots):
    """Return the slot of the step counter and those of parameter, gradient and state."""
    counter = -1
    if len(slots) > 3:                         # Adam: the step counter comes first
        counter = slots.pop(2)
    return counter, slots + [-1] * (5 - len(slots))


cdef int _mark_dead(Program program, Operation operation, CompiledOperation own, int slot) except -1:
    """Release a value after its last use; a result may reuse its memory, unless its version matters."""
    cdef int operand, buffer, count, i
    own.dead += (slot,)
    if operation.kind == "draw":
        return 0
    main, operand = own.instructions[len(own.instructions) - 1], TEMPORARY_SPACE << SPACE_SHIFT | slot
    main.dead.append(operand)
    if operation.kind == "evaluate" or operation.kind == "sum":
        for i, number in enumerate(main.operands):
            if number == operand:
                break
        else:
            return 0
        buffer, count = buffer_at(program, operation.expression.inputs[i]), 0
        for number in operation.expression.inputs:
            count += buffer_at(program, number) == buffer
        if count == 1 and program.is_never_written(operation.expression.inputs[i]):
            main.last |= 1 << i
    return 0


cdef int _mark_touched(Assembly assembly, list operations, list sections) except -1:
    """Keep the slots that die in the parallel section of an operation."""
    cdef CompiledOperation own
    cdef Operation operation
    for section in sections:
        stretch = range(section.start, section.stop)
        dying = {slot for position in stretch for slot in (<CompiledOperation>operations[position]).dead}
        for position in stretch:
            own, operation = operations[position], assembly.program.operations[position]
            used = {assembly.slots[assembly.root(number)]
                    for number in operation.uses() + [*operation.results, *operation.writes()] if number >= 0}
            own.touched = tuple(sorted(used & dying))
    return 0


# ----------------------------------------------------------------------------------------------------------- scheduling

# A barrier is an operation that depends on all before it and on which all after it depend; optimizer steps and
# externally visible writes are barriers, too. Barriers split a program into sections. A section with enough work off
# its critical path runs in parallel.

# Work is counted in element additions, as in the grain size of kernels.
KERNEL_COST = 4                   # per element that a kernel reads or writes
MULTIPLICATIONS_PER_ADDITION = 4  # of a product
MIN_PARALLEL_WORK = 1 << 19       # off the critical path of a section: about 15 microseconds
MIN_PARALLEL_FRACTION = 8         # ... and at least 1 / this of its total work
MIN_MEAN_WORK = 1 << 15           # per operation; scheduling one in parallel costs about 0.1 microseconds

cdef dict costs = {}              # primitive -> its cost


cdef object _multiplications(Program program, Operation operation):
    """Return the number of multiplications of a product or convolution, else 0."""
    name = operation.operator.name if operation.operator is not None else operation.kind.removesuffix("_into")
    first, second = (program.arrays[number] if isinstance(number, int) else None
                     for number in (operation.arguments + (None, None))[:2])
    result = program.arrays[(operation.results + (operation.target,))[0]]
    if name in ("mm", "matmul", "bmm", "mv", "linear"):
        return result.numel * (first.shape[len(first.shape) - 1] if first.shape else 1)
    if name in ("addmm", "accumulate"):
        return result.numel * second.shape[len(second.shape) - 1]
    if name.startswith("convolution"):
        images = result if name == "convolution" else first
        kernel = result if name == "convolution_weight_backward" else second
        return images.numel * kernel.numel // max(kernel.shape[0], 1)
    return 0


cdef object _work_of(Program program, Operation operation):
    """Estimate the work of an operation."""
    cdef int64_t cost = 0, total = 0, most = 0, size
    for numbers in (operation.reads(), operation.writes(), operation.results):
        for number in numbers:
            if number >= 0:
                size = array_at(program, number).size
                most, total = max(most, size), total + size
    expressions = operation.expressions()
    if expressions:
        for expression in expressions:
            for primitive, _ in (<ArrayExpression?>expression).form.code:
                if primitive not in costs:
                    costs[primitive] = primitive_cost(primitive)
                cost += costs[primitive]
        return most * cost
    if operation.kind in ("optimize", "allocate", "draw"):
        return 0
    return total * KERNEL_COST + _multiplications(program, operation) // MULTIPLICATIONS_PER_ADDITION


def barriers(before):
    """Return the positions of operations that depend on all before them and on which all after them depend."""
    n = len(before)
    last_need, first_user = [-1] * n, [n] * n
    for position, needs in enumerate(before):
        last_need[position] = max(needs, default=-1)
        for need in needs:
            first_user[need] = min(first_user[need], position)
    # Count operations before a position that nothing up to it needs, and after it those that need nothing from it on.
    ends, starts = [0] * (n + 1), [0] * (n + 1)
    for position in range(n):
        ends[position] += 1
        ends[first_user[position]] -= 1
        starts[last_need[position] + 1] += 1
        starts[position + 1] -= 1
    found, open_ends, open_starts = [], 0, 0
    for position in range(n):
        open_ends += ends[position]
        open_starts += starts[position]
        if open_ends == open_starts == 1:
            found.append(position)
    return found


def critical_path(before, work, start, stop):
    """Return the work on the longest chain of dependencies."""
    paths = []
    for position in range(start, stop):
        paths.append(work[position] + max(
            (paths[need - start] for need in before[position] if need >= start), default=0))
    return max(paths)


def parallel_sections(Program program not None):
    """Return the ParallelSections of a Program."""
    work = [_work_of(program, operation) for operation in program.operations]
    if sum(work) < MIN_PARALLEL_WORK or max(work) < MIN_MEAN_WORK:       # no section has this mean
        return []
    before, found = dependencies(program), []
    positions = [-1, *barriers(before), len(before)]
    for start, stop in zip([position + 1 for position in positions], positions[1:], strict=False):
        total = sum(work[start:stop])
        if stop - start < 2 or total < (stop - start) * MIN_MEAN_WORK:
            continue
        parallel_work = total - critical_path(before, work, start, stop)
        if parallel_work >= max(MIN_PARALLEL_WORK, total // MIN_PARALLEL_FRACTION):
            found.append(ParallelSection(start, [[need - start for need in needs if need >= start]
                                         for needs in before[start:stop]]))
    return found
