"""
Loop fusion: run adjacent element-wise operations of one shape in one pass over memory.

Expression fusion leaves operations whose results have several readers. A fused loop runs them tile by tile, so results
are read from the caches, and results that only the loop reads are never written to memory.
"""

from cygrad._core.compiler.program import FusedLoop, Operation

MAX_OPERANDS = 40
MIN_ELEMENTS = 4096               # smaller arrays fit into the caches
MAX_DELAYED = 16                  # operations between two groups that become one

__all__ = ["fuse_loops"]


class Group:
    """Adjacent operations that can be fused."""

    def __init__(self, program):
        self.program, self.arrays = program, program.arrays
        self.operations, self.inputs, self.made = [], [], {}          # inputs; buffer -> result
        self.model = None

    def source(self, number):
        """Return the input or result that an operand stands for, or None if it cannot be fused."""
        traced, model = self.arrays[number], self.model
        made = self.made.get(traced.buffer)
        if traced.dtype is not model.dtype:
            return None
        if traced.numel == model.numel and traced.contiguous:
            # Arrays over the same buffer are interchangeable here: they have the same elements.
            return number if made is None else made if traced.offset == 0 else None
        spread = traced.numel == 1 or (traced.shape == model.shape and not any(traced.strides))
        return number if spread and made is None else None

    def add(self, operation):
        """Add an operation; return False if it cannot be fused."""
        if operation.kind != "evaluate":
            return False
        traced = self.arrays[operation.results[0]]
        if not (traced.numel >= MIN_ELEMENTS and traced.contiguous and traced.dtype.is_floating_point
                and self.program.buffers[traced.buffer].first == operation.results[0]):
            return False
        before, self.model = self.model, traced
        sources = [self.source(number) for number in operation.expression.inputs]
        if None in sources or (before is not None and (before.numel, before.dtype) != (traced.numel, traced.dtype)):
            self.model = before
            return False
        inputs = list(dict.fromkeys([*self.inputs, *(
            source for source in sources if source not in self.made.values())]))
        if len(inputs) + len(self.operations) + 1 > MAX_OPERANDS:
            self.model = before
            return False
        self.inputs = inputs
        self.operations.append((operation, sources))
        self.made[traced.buffer] = operation.results[0]
        return True

    def joined(self, between, other):
        """
        Return this group with the operations of a later one, and those in between, which then run after it; or None.

        A gradient that does not depend on the value of a sum joins forward and backward. The summand is a result of
        the loop if the sum would read several.
        """
        def buffers(numbers):
            return {self.arrays[number].buffer for number in numbers if number >= 0}

        read = buffers([number for operation, _ in other.operations for number in operation.reads()])
        if read.isdisjoint(self.made) or any(
                operation.writes() or not read.isdisjoint(buffers(operation.results)) for operation in between):
            return None
        group, delayed = Group(self.program), []
        for operation, _ in self.operations:
            group.add(operation)
        for operation in between:
            if operation.kind == "sum" and len(buffers(operation.reads()) & self.made.keys()) > 1 and group.add(
                    Operation("evaluate", (), operation.arguments[:1], expression=operation.expression)):
                operation = Operation("kernel", operation.arguments, operation.results, operator=operation.operator)
            delayed.append(operation)
        return [group, *delayed] if all(group.add(operation) for operation, _ in other.operations) else None

    def finished(self, read_later):
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


def join_groups(entries):
    """Return groups and operations after joining groups that only independent operations part."""
    found, last = [], None            # position of the last group
    for entry in entries:
        if isinstance(entry, Group) and entry.operations:
            joined = None if last is None or len(found) - last > MAX_DELAYED else found[last].joined(
                found[last + 1:], entry)
            if joined is not None:
                found[last:] = joined
                continue
            last = len(found)
        if not isinstance(entry, Group) or entry.operations:
            found.append(entry)
    return found


def fuse_loops(program):
    """Fuse adjacent element-wise operations into loops."""
    groups, operations = [], program.operations
    group = Group(program)
    for operation in operations:
        if group.add(operation):
            continue
        groups += [group, operation]
        group = Group(program)
        if group.add(operation):
            groups.pop()
    groups = join_groups([*groups, group])
    found, later = [], set(program.output_buffers)
    for entry in reversed(groups):
        made = entry.finished(later) if isinstance(entry, Group) else [entry]
        members = [operation for operation, _ in entry.operations] if isinstance(entry, Group) else made
        for operation in members:
            later |= {program.arrays[number].buffer for number in (*operation.uses(), *operation.writes())}
        found += reversed(made)
    program.operations = found[::-1]
