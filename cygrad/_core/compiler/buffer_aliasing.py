"""
Buffer aliasing: compute results directly in the buffer that they would be copied to.

Concatenations (`cat`, `stack`, the backward of `split` and `unbind`, stacks of merged products) copy their parts. A
part that is computed only for the concatenation is computed in place; results that are `slices` of another result
alias it.
"""

from cygrad._core.compiler.executable import layout_of
from cygrad._core.compiler.program import Operation
from cygrad._core.table.operator import find_operator

# Index of the dim argument.
DIMENSION = {"cat": 1, "stack": 1, "split_backward": 3, "unbind_backward": 2}
# SIMD width in elements; remainders are computed one by one, where the sign of a NaN may differ.
WIDTH = 16

__all__ = ["alias_buffers"]


class BufferAliasing:
    """Aliases the buffers of one Program."""

    def __init__(self, program):
        self.program, self.arrays, self.operations = program, program.arrays, program.operations
        self.maker = {number: position for position, operation in enumerate(self.operations)
                      for number in operation.results}
        self.uses = program.uses()
        self.first_use = {}           # base array -> position of the operation before which it must be allocated

    def targets(self, operation):
        """Return (offset in bytes, strides) of each part in the concatenation; None for other operations."""
        if operation.kind != "stack" and (
                operation.kind != "kernel" or operation.operator.name not in DIMENSION
                or not self.program.is_never_written(operation.results[0]) or None in operation.arguments[0]):
            return None
        whole = self.arrays[operation.results[0]]
        if operation.kind == "stack":
            parts, dim = operation.arguments, 0
        else:
            parts, dim = operation.arguments[0], operation.arguments[DIMENSION[operation.operator.name]].plain
        dim %= len(whole.shape)
        found, start, before, after = [], 0, whole.shape[:dim], whole.shape[dim + 1:]
        for part in map(self.arrays.__getitem__, parts):
            along = len(part.shape) == len(whole.shape)
            if part.dtype is not whole.dtype or part.shape != before + part.shape[dim:][:along] + after:
                return None
            strides = whole.strides if along else whole.strides[:dim] + whole.strides[dim + 1:]
            found.append((start * whole.strides[dim] * whole.dtype.itemsize, strides))
            start += part.shape[dim] if along else 1
        return found if start == whole.shape[dim] and whole.contiguous and whole.numel else None

    def alias_parts(self, operation, position):
        """Alias the parts of a concatenation and return the remaining copies; None if it is left as is."""
        program, targets = self.program, self.targets(operation)
        if targets is None:
            return None
        parts = operation.arguments if operation.kind == "stack" else operation.arguments[0]
        free = [self.can_alias(part, *target) for part, target in zip(parts, targets, strict=True)]
        if operation.kind != "stack" and 2 * sum(free) < len(free):
            return None
        whole, first_use, copies = operation.results[0], position, []
        for part, (offset, strides), computed in zip(parts, targets, free, strict=True):
            traced = self.arrays[part]
            if computed and traced.buffer not in program.aliases:
                first = program.buffers[traced.buffer].first
                first_use = min(first_use, self.maker[first])
                program.aliases[traced.buffer] = whole, offset
                if strides != traced.strides:
                    self.arrays[part] = layout_of(traced, traced.shape, strides, traced.buffer)
            else:
                memory = self.arrays[whole]
                copies.append(Operation("fill", (part,), (), program.view(memory.buffer, offset, traced.shape, strides,
                                                                            memory)))
        root = program.memory_of(whole)[0]
        self.first_use[root] = min(first_use, self.first_use.get(root, position))
        return copies

    def can_alias(self, part, offset, strides):
        """Return whether the operation that computes an array can write it there without a visible difference."""
        program, traced = self.program, self.arrays[part]
        number = program.buffers[traced.buffer].first
        whole = self.arrays[number]
        if number not in self.maker or not program.is_private(number) or traced.buffer in program.aliases or not (
                whole.contiguous and traced.contiguous and (traced.numel, traced.offset) == (whole.numel, 0)):
            return False
        maker = self.operations[self.maker[number]]
        if maker.kind != "evaluate" and (maker.kind != "kernel" or len(maker.results) > 1 or maker.is_list or (
                not program.fast and self.targets(maker) is None)):
            return False
        if strides == traced.strides and program.fast:
            return True
        if part != number or len(self.uses[traced.buffer]) != 1 or len(program.arrays_of(traced.buffer)) != 1:
            return False
        return strides == traced.strides or (
            maker.kind == "evaluate" and strides[-1:] == (1,) and traced.shape[-1] % WIDTH == 0)

    def redirected(self, operation):
        """Return the operation, writing to the aliased buffer if its result has one."""
        program, target = self.program, operation.results[0] if len(operation.results) == 1 else -1
        if operation.kind == "accumulate":
            addend = operation.arguments[0]
            if self.arrays[addend].buffer in program.aliases and program.is_private(target):
                program.aliases[self.arrays[target].buffer] = addend, 0
                return Operation("accumulate_into", operation.arguments, (), addend)
            if self.arrays[addend].buffer in program.aliases:         # accumulate cannot reuse that memory
                return Operation("kernel", (*operation.arguments, None, None), operation.results,
                                 operator=find_operator("addmm"))
        elif target >= 0 and self.arrays[target].buffer in program.aliases:
            return Operation(operation.kind, operation.arguments, (), target, operation.expression, operation.operator)
        return operation

    def run(self):
        """Return all operations, without stacks and slices."""
        program, made, temporaries = self.program, {}, {}
        for position in range(len(self.operations) - 1, -1, -1):
            operation = self.operations[position]
            if operation.kind == "slices":
                offset, (whole,) = 0, operation.arguments
                for traced in map(self.arrays.__getitem__, operation.results):
                    program.aliases[traced.buffer] = whole, offset
                    offset += traced.numel * traced.dtype.itemsize
                made[position] = []
            else:
                copies = self.alias_parts(operation, position)
                if copies is not None:
                    made[position] = copies
        for whole, position in self.first_use.items():
            temporaries.setdefault(position, []).append(Operation("allocate", (), (whole,)))
        found = []
        for position, operation in enumerate(self.operations):
            found += temporaries.get(position, ())
            found += made[position] if position in made else [self.redirected(operation)]
        return found


def alias_buffers(program):
    """Compute parts of concatenations in place."""
    if not program.calls(DIMENSION) and not (program.fast and any(
            operation.kind in ("stack", "slices") for operation in program.operations)):
        return
    program.operations = BufferAliasing(program).run()
