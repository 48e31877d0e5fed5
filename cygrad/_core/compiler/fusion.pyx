# distutils: extra_compile_args = -O1
"""
Fusion of element-wise operations.

Expression fusion evaluates operations in their only reader, element-wise or a sum. It leaves those whose results have
several readers: loop fusion runs adjacent ones of one shape in one pass over memory, tile by tile, so that results are
read from the caches, and results that only the loop reads are never written to memory.
"""

cimport cython
from libc.stdint cimport int32_t
from cygrad._core.arrays.array cimport array_t, same_shape
from cygrad._core.arrays.dtype cimport is_floating
from cygrad._core.compiler.program cimport (
    ArrayExpression, Operation, Program, array_at, buffer_at, facts_of, with_inputs,
)
from cygrad._core.program.builder cimport memory

from cygrad._core.compiler.executable import layout_of
from cygrad._core.compiler.program import FusedLoop, plain


# ---------------------------------------------------------------------------------------------------------- expressions

def fuse_expressions(Program program not None):
    """Fuse element-wise operations into their only reader, an element-wise operation or a sum."""
    cdef Operation operation, source
    cdef ArrayExpression found
    cdef list keep = []
    cdef int32_t *counts = program.read_counts(keep)
    cdef int32_t *maker = <int32_t *>memory(len(program.arrays) * sizeof(int32_t), keep)       # position + 1; 0: none
    cdef char *removed = <char *>memory(len(program.operations), keep)
    cdef list sources, expressions
    cdef int position = -1, made, i
    for operation in program.operations:
        position += 1
        if operation.kind == "evaluate":
            maker[<int>operation.results[0]] = position + 1
        meta = _summed_layout(program, operation) if operation.expression is None else None
        if operation.expression is None and meta is None:
            continue
        sources, expressions = [], []
        for number in operation.reads():
            made = maker[<int>number] - 1
            if made >= 0 and counts[buffer_at(program, number)] == 1 and not removed[made] and (
                    program.is_sole_array(number) and _is_fusable(program, operation, number, made, position)):
                source = <Operation?>program.operations[made]
                sources.append(number)
                expressions.append(source.expression)
        if not sources or meta is not None and not has_one_layout(program, sources[0], expressions[0]):
            continue
        found = None
        if meta is not None:
            operation.kind, operation.meta, found = "sum", meta, expressions[0]
        elif len(sources) > 1:
            found = with_inputs(operation.expression, sources, expressions)
        if found is not None:
            operation.expression = found
            for number in sources:
                removed[maker[<int>number] - 1] = True
            continue
        for i in range(len(sources)):                                                 # those that fit, one by one
            found = with_inputs(operation.expression, sources[i:i + 1], expressions[i:i + 1])
            if found is not None:
                operation.expression = found
                removed[maker[<int>sources[i]] - 1] = True
    program.operations = [operation for position, operation in enumerate(program.operations) if not removed[position]]


cdef bint _is_fusable(Program program, Operation operation, int number, int source, int position) except -1:
    """Return whether the expression of an input can be evaluated in its reader, an element-wise operation or a sum."""
    cdef list inputs = (<Operation?>program.operations[source]).expression.inputs
    for read in inputs:
        if not program.unchanged_between(read, source, position):
            return False
    if operation.expression is None:
        return True
    target = operation.target
    if not same_shape(array_at(program, number), array_at(program, operation.results[0] if target is None else target)):
        return False
    return target is None or buffer_at(program, target) not in [buffer_at(program, read) for read in inputs]


def has_one_layout(program, number, expression):
    """
    Return whether a summed array and all operands of its expression are row-major, or have the same strides.

    A sum adds in the order of memory. Of several layouts, the whole expression, or one in the memory of an operand, may
    give another one than its steps.
    """
    summed = program.arrays[number]
    return all(traced.contiguous if summed.contiguous else (traced.shape, traced.strides) == (
        summed.shape, summed.strides) for traced in map(program.arrays.__getitem__, expression.inputs))


cdef object _summed_layout(Program program, Operation operation):
    """
    Return the keepdim layout of a sum.

    Return None if the operation is not a sum, reduces nothing, or changes the dtype.
    """
    if operation.kind != "kernel" or operation.operator.name not in ("sum_to", "sum"):
        return None
    result, source = program.arrays[operation.results[0]], program.arrays[operation.arguments[0]]
    if operation.operator.name == "sum_to":
        return result
    dims = plain(operation.arguments[1])
    dims = [dims] if isinstance(dims, int) else dims or range(len(source.shape))
    reduced = {dim % max(len(source.shape), 1) for dim in dims}
    kept = tuple([1 if dim in reduced else size for dim, size in enumerate(source.shape)])
    if kept == source.shape or source.numel == 0 or result.dtype is not source.dtype or not (
            source.dtype.is_floating_point and result.contiguous):
        return None
    return result if result.shape == kept else layout_of(result, kept)


# ---------------------------------------------------------------------------------------------------------------- loops

MAX_OPERANDS = 40
MIN_ELEMENTS = 4096               # smaller arrays fit into the caches
MAX_DELAYED = 16                  # operations between two groups that become one


@cython.nonecheck(True)
cdef class Group:
    """Adjacent operations that can be fused."""

    cdef Program program
    cdef array_t *model           # layout of the results
    cdef list operations, inputs
    cdef dict made                # buffer -> result

    def __cinit__(self, Program program not None):
        self.program, self.operations, self.inputs, self.made = program, [], [], {}

    cdef object source(self, int number, const array_t *model):
        """Return the input or result that an operand stands for, or None if it cannot be fused."""
        cdef const array_t *array = array_at(self.program, number)
        cdef bint spread
        made = self.made.get(buffer_at(self.program, number))
        if array.dtype != model.dtype:
            return None
        if array.size == model.size and array.contiguous:
            # Arrays over the same buffer are interchangeable here: they have the same elements.
            return number if made is None else made if self.program.arrays[number].offset == 0 else None
        spread = array.size == 1 or same_shape(array, model) and not any(self.program.arrays[number].strides)
        return number if spread and made is None else None

    cdef bint add(self, Operation operation) except -1:
        """Add an operation; return False if it cannot be fused."""
        cdef array_t *array
        if operation.kind != "evaluate" or facts_of(self.program, operation.results[0]).size < MIN_ELEMENTS:
            return False
        array = array_at(self.program, operation.results[0])
        if not (array.contiguous and is_floating(array.dtype)
                and facts_of(self.program, operation.results[0]).base == operation.results[0]):
            return False
        if self.model != NULL and (self.model.size != array.size or self.model.dtype != array.dtype):
            return False
        sources = [self.source(number, array) for number in operation.expression.inputs]
        if None in sources:
            return False
        inputs = list(dict.fromkeys([*self.inputs, *[
            source for source in sources if source not in self.made.values()]]))
        if len(inputs) + len(self.operations) + 1 > MAX_OPERANDS:
            return False
        self.inputs, self.model = inputs, array
        self.operations.append((operation, sources))
        self.made[buffer_at(self.program, operation.results[0])] = operation.results[0]
        return True

    cdef list joined(self, list between, Group other):
        """
        Return this group with the operations of a later one, and those in between, which then run after it; or None.

        A gradient that does not depend on the value of a sum joins forward and backward. The summand is a result of
        the loop if the sum would read several.
        """
        cdef Operation operation
        cdef Group group = Group(self.program)
        cdef list delayed = []
        cdef set read = self.buffers([number for own, _ in other.operations for number in own.reads()])
        if read.isdisjoint(self.made):
            return None
        for operation in between:
            if operation.writes() or not read.isdisjoint(self.buffers(operation.results)):
                return None
        for operation, _ in self.operations:
            group.add(operation)
        for operation in between:
            if operation.kind == "sum" and len(self.buffers(operation.reads()) & self.made.keys()) > 1 and group.add(
                    Operation("evaluate", (), operation.arguments[:1], expression=operation.expression)):
                operation = Operation("kernel", operation.arguments, operation.results, operator=operation.operator)
            delayed.append(operation)
        for operation, _ in other.operations:
            if not group.add(operation):
                return None
        return [group, *delayed]

    cdef set buffers(self, object numbers):
        return {buffer_at(self.program, number) for number in numbers if number >= 0}

    cdef list finished(self, set read_later):
        """Return the fused loop; `read_later` are the buffers with readers or users after it."""
        if len(self.operations) < 2:
            return [operation for operation, _ in self.operations]
        results = [number for buffer, number in self.made.items() if buffer in read_later]
        if not results:
            return [operation for operation, _ in self.operations]
        operands = {number: position for position, number in enumerate([*self.inputs, *results])}
        stages = []
        for operation, sources in self.operations:
            out = operands.setdefault(operation.results[0], len(operands))
            stages.append((operation.expression, [operands[source] for source in sources], out))
        return [FusedLoop(tuple(self.inputs), tuple(results), stages, len(operands))]


cdef list _join_groups(list entries):
    """Return groups and operations after joining groups that only independent operations part."""
    cdef list found = []
    last = None                       # position of the last group
    for entry in entries:
        if isinstance(entry, Group) and (<Group>entry).operations:
            joined = None if last is None or len(found) - last > MAX_DELAYED else (<Group>found[last]).joined(
                found[last + 1:], entry)
            if joined is not None:
                found[last:] = joined
                continue
            last = len(found)
        if not isinstance(entry, Group) or (<Group>entry).operations:
            found.append(entry)
    return found


def fuse_loops(Program program not None):
    """Fuse adjacent element-wise operations into loops."""
    cdef Operation operation
    cdef Group group = Group(program)
    cdef list groups = [], found = [], made, members
    cdef set later = set(program.output_buffers)
    for operation in program.operations:
        if group.add(operation):
            continue
        if group.operations:
            groups.append(group)
            group = Group(program)
            if group.add(operation):
                continue
        groups.append(operation)
    if not group.operations and not any([isinstance(entry, Group) for entry in groups]):
        return
    for entry in reversed(_join_groups([*groups, group])):
        made = (<Group>entry).finished(later) if isinstance(entry, Group) else [entry]
        members = [operation for operation, _ in (<Group>entry).operations] if isinstance(entry, Group) else made
        for operation in members:
            later.update([buffer_at(program, number) for number in operation.uses() + [*operation.writes()]])
        found += reversed(made)
    program.operations = found[::-1]
