# distutils: extra_compile_args = -O1
"""
Assembly: from a Program to an Executable, whose instructions read and write slots, and whose independent operations may
run in parallel.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset
from cygrad._core.compiler.executable cimport CompiledOperation
from cygrad._core.compiler.program cimport (
    ArrayExpression, Form, Operation, Program, buffer_at, buffer_of, facts_of,
)
from cygrad._core.compiler.tracer cimport Buffer
from cygrad._core.program.builder cimport TypedInstruction, memory, typed_instruction
from cygrad._core.program.executor cimport (
    ARRAYS_OF, CALL, CONSTANT_SPACE, COPY, EVALUATE, FUSED_LOOP, INTO, IN_PLACE, LIST_SPACE, NO_OPERAND, ROUTINE,
    SPACE_SHIFT, TEMPORARY_SPACE, UNPACK, VIEW, operand_slot, operand_space,
)
from cygrad._core.table.operator cimport Operator

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.executable import Executable, ParallelSection, primitive_cost


# ---------------------------------------------------------------------------------------------------------------- slots

# Kind and flags of the instruction of an operation; a draw has none.
INSTRUCTIONS = {
    "evaluate": (EVALUATE, 0), "change": (EVALUATE, IN_PLACE), "sum": (EVALUATE, 0), "kernel": (CALL, 0),
    "kernel_into": (CALL, IN_PLACE | INTO), "kernel_copy": (CALL, IN_PLACE), "copy": (COPY, 0),
    "optimize": (ROUTINE, 0), "fused_loop": (FUSED_LOOP, 0), "accumulate": (CALL, 0),
    "accumulate_into": (CALL, INTO), "allocate": (COPY, 0), "fill": (COPY, 0),
}
PRODUCTS = {"accumulate": "add_product", "accumulate_into": "add_product_into"}


@cython.nonecheck(True)
cdef class Assembly:
    """Assembles the instructions of one program."""

    cdef Program program
    cdef dict positions
    cdef list slots               # per array: its slot, or None
    cdef dict views               # slot of a base -> [(slot, offset in bytes)]
    cdef int32_t *last            # per base array: position of its last reader, or -1
    cdef list traced, inputs, constants, lists, keep

    def __init__(self, Program program not None, dict positions not None):
        self.program, self.positions = program, positions
        self.traced, self.inputs, self.constants, self.lists, self.keep = [], [], [], [], []
        self.slots, self.views = [None] * len(program.arrays), {}
        self.last = <int32_t *>memory(len(program.arrays) * sizeof(int32_t), self.keep)
        memset(self.last, -1, len(program.arrays) * sizeof(int32_t))

    cdef int root(self, int number) except -1:
        """Return the base array of the memory of an array."""
        return self.program.memory_of(number)[0] if self.program.aliases else facts_of(self.program, number).base

    cdef int new_slot(self, layout) except -1:
        self.traced.append(layout)
        return len(self.traced) - 1

    cdef int base(self, int first) except -1:
        """Return the slot of a base array."""
        cdef Program program = self.program
        cdef Buffer buffer
        found = self.slots[first]
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
        found = self.slots[number]
        if found is None:
            base = self.base(self.root(number))
            found = self.slots[number]
            if found is None:
                found = self.slots[number] = self.new_slot(self.program.arrays[number])
                self.views.setdefault(base, []).append((found, self.program.memory_of(number)[1]))
        return found

    cdef int32_t temporary(self, number, int position) except? -1:
        """Return the operand of an array that the operation at this position uses."""
        cdef int array = NO_OPERAND if number is None else number
        if array < 0:
            return NO_OPERAND
        self.last[self.root(array)] = position
        return TEMPORARY_SPACE << SPACE_SHIFT | self.slot(array)

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
            made.instructions.append(typed_instruction(ARRAYS_OF, entries, [result]))
            return result
        return self.constant(value)

    cdef CompiledOperation add(self, Operation operation, int position):
        """Return an operation with its instructions and the slots that it uses."""
        cdef CompiledOperation made = CompiledOperation(operation, self.slots, self.program.can_fail(operation))
        cdef TypedInstruction instruction
        cdef list operands = [], results
        if operation.kind == "optimize":
            for own in operation.arguments:
                for number in own:
                    self.temporary(number, position)
                made.updates += (_update([self.slot(number) for number in own]),)
        elif operation.expression is not None:
            operands = [self.temporary(number, position) for number in operation.expression.inputs]
        else:
            operands = [self.argument(value, position, made) for value in operation.arguments]
        target = self.temporary(operation.target, position)
        results = [self.temporary(number, position) for number in operation.results]
        read = operands
        for instruction in made.instructions:
            read = read + instruction.operands
        made.reads = tuple([operand_slot(number) for number in read if operand_space(number) == TEMPORARY_SPACE])
        made.target = -1 if operation.target is None else operand_slot(target)
        made.results = tuple([-1 if result == NO_OPERAND else operand_slot(result) for result in results])
        if operation.kind != "draw":
            kind, flags = INSTRUCTIONS[operation.kind]
            instruction = typed_instruction(kind, operands, results)
            instruction.which = flags | UNPACK if operation.is_list else flags
            instruction.target, instruction.expression = target, operation.expression
            _set_details(instruction, operation)
            made.instructions.append(instruction)
        return made

    cdef list arranged(self, list operations):
        """Return all instructions, each view after its base is computed, those of inputs first."""
        cdef CompiledOperation operation
        cdef TypedInstruction instruction
        cdef dict maker = {}
        cdef list found = []
        if self.views:
            for operation in operations:
                for slot in operation.results:
                    maker[slot] = operation
        for base, views in self.views.items():
            made = []
            for slot, offset in views:
                instruction = typed_instruction(VIEW, [TEMPORARY_SPACE << SPACE_SHIFT | base],
                                                [TEMPORARY_SPACE << SPACE_SHIFT | slot])
                instruction.detail = offset
                made.append(instruction)
            operation = maker.get(base)
            if operation is not None:
                operation.instructions += made
                operation.views += tuple([(slot, base) for slot, _ in views])
            else:
                found += made
        for operation in operations:
            operation.first = len(found)
            found.extend(operation.instructions)
            operation.instructions = None
        return found


cdef int _set_details(TypedInstruction instruction, Operation operation) except -1:
    """Set the name of the operator, that of the kernel, and the detail of a fused loop."""
    if operation.kind == "fused_loop":
        instruction.detail = (operation.n_operands, operation.stages)
    elif operation.kind in PRODUCTS:
        instruction.name, instruction.kernel = "matmul", PRODUCTS[operation.kind]
    elif operation.operator is not None:
        instruction.name = (<Operator?>operation.operator).row["name"]
        if instruction.kind == CALL:
            instruction.kernel = operation.operator.row["into" if instruction.which & INTO else "kernel"]
    return 0


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
    for first in range(len(assembly.slots)):
        position = assembly.last[first]
        if position >= 0 and buffer_at(program, first) not in program.output_buffers and (
                facts_of(program, first).is_local or first in program.sources):
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
    cdef TypedInstruction main
    cdef list inputs
    cdef int operand, buffer, count = 0, i
    own.dead += (slot,)
    if operation.kind == "draw":
        return 0
    main, operand = own.instructions[len(own.instructions) - 1], TEMPORARY_SPACE << SPACE_SHIFT | slot
    main.dead.append(operand)
    if operation.kind == "evaluate" or operation.kind == "sum":
        inputs = operation.expression.inputs
        for i in range(len(main.operands)):
            if <int>main.operands[i] == operand:
                break
        else:
            return 0
        buffer = buffer_at(program, inputs[i])
        for number in inputs:
            count += buffer_at(program, number) == buffer
        if count == 1 and program.is_never_written(inputs[i]):
            main.last |= <uint32_t>1 << i
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


cdef int64_t _cost_of(ArrayExpression expression) except -1:
    """Return the cost of an expression per element, in additions."""
    cdef Form form = expression.form
    if form.cost < 0:
        form.cost = sum([primitive_cost(name) for name, _ in form.code])
    return form.cost


cdef object _work_of(Program program, Operation operation):
    """Estimate the work of an operation."""
    cdef int64_t cost = 0, total = 0, most = 0, size
    for numbers in (operation.reads(), operation.writes(), operation.results):
        for number in numbers:
            if number >= 0:
                size = facts_of(program, number).size
                most, total = max(most, size), total + size
    expressions = operation.expressions()
    if expressions:
        for expression in expressions:
            cost += _cost_of(expression)
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
