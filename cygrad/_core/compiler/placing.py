"""
Which results are computed where they have to lie.

What puts arrays together (`cat`, `stack`, the backward of `split` and of `unbind`, and the stacks of `joining`) copies
them: what an operation makes for that alone is computed in its place at once. Results that are `slices` of another one
lie where that lies.
"""

from cygrad._core.compiler.operations import Operation
from cygrad._core.compiler.regions import layout_of
from cygrad._core.table.operator import find_operator

# Which argument is the dimension.
DIMENSION = {"cat": 1, "stack": 1, "split_backward": 3, "unbind_backward": 2}
# Elements in a row: where others are left over, they are computed one by one, and nan may have another sign there.
WIDTH = 16

__all__ = ["placed"]


class Placing:
    """The work on the operations of one Lowering."""

    def __init__(self, lowering):
        self.lowering, self.arrays, self.operations = lowering, lowering.arrays, lowering.operations
        self.maker = {number: place for place, operation in enumerate(self.operations) for number in operation.results}
        self.uses = lowering.uses()
        self.begin = {}               # memory of its own -> the operation before which it has to be there

    def targets(self, operation):
        """Where each array that an operation puts together comes to lie: (bytes, strides); None for others."""
        if operation.kind != "stack" and (
                operation.kind != "kernel" or operation.operator.name not in DIMENSION
                or not self.lowering.unchanging(operation.results[0]) or None in operation.arguments[0]):
            return None
        whole = self.arrays[operation.results[0]]
        if operation.kind == "stack":
            parts, dim = operation.arguments, 0
        else:
            parts, dim = operation.arguments[0], operation.arguments[DIMENSION[operation.operator.name]].plain
        dim %= len(whole.shape)
        found, start, before, behind = [], 0, whole.shape[:dim], whole.shape[dim + 1:]
        for part in map(self.arrays.__getitem__, parts):
            along = len(part.shape) == len(whole.shape)
            if part.dtype is not whole.dtype or part.shape != before + part.shape[dim:][:along] + behind:
                return None
            strides = whole.strides if along else whole.strides[:dim] + whole.strides[dim + 1:]
            found.append((start * whole.strides[dim] * whole.dtype.itemsize, strides))
            start += part.shape[dim] if along else 1
        return found if start == whole.shape[dim] and whole.contiguous and whole.numel else None

    def put_together(self, operation, place):
        """-> the copies that are left to do; None if it stays what it is."""
        lowering, targets = self.lowering, self.targets(operation)
        if targets is None:
            return None
        parts = operation.arguments if operation.kind == "stack" else operation.arguments[0]
        free = [self.can_lie(part, *target) for part, target in zip(parts, targets, strict=True)]
        if operation.kind != "stack" and 2 * sum(free) < len(free):
            return None
        whole, begin, copies = operation.results[0], place, []
        for part, (offset, strides), computed in zip(parts, targets, free, strict=True):
            held = self.arrays[part]
            if computed and held.buffer not in lowering.places:
                first = lowering.buffers[held.buffer].first
                begin = min(begin, self.maker[first])
                lowering.places[held.buffer] = whole, offset
                if strides != held.strides:
                    self.arrays[part] = layout_of(held, held.shape, strides, held.buffer)
            else:
                memory = self.arrays[whole]
                copies.append(Operation("fill", (part,), (), lowering.view(memory.buffer, offset, held.shape, strides,
                                                                            memory)))
        root = lowering.home(whole)[0]
        self.begin[root] = min(begin, self.begin.get(root, place))
        return copies

    def can_lie(self, part, offset, strides):
        """Can the operation that makes an array make it there, and would nobody be told by it?"""
        lowering, held = self.lowering, self.arrays[part]
        number = lowering.buffers[held.buffer].first
        whole = self.arrays[number]
        if number not in self.maker or not lowering.private(number) or held.buffer in lowering.places or not (
                whole.contiguous and held.contiguous and (held.numel, held.offset) == (whole.numel, 0)):
            return False
        maker = self.operations[self.maker[number]]
        if maker.kind != "evaluate" and (maker.kind != "kernel" or len(maker.results) > 1 or maker.listed or (
                not lowering.fast and self.targets(maker) is None)):
            return False
        if strides == held.strides and lowering.fast:
            return True
        if part != number or len(self.uses[held.buffer]) != 1 or len(lowering.of_buffer[held.buffer]) != 1:
            return False
        return strides == held.strides or (
            maker.kind == "evaluate" and strides[-1:] == (1,) and held.shape[-1] % WIDTH == 0)

    def elsewhere(self, operation):
        """The operation, if its result lies in other memory one that writes there."""
        lowering, target = self.lowering, operation.results[0] if len(operation.results) == 1 else -1
        if operation.kind == "accumulate":
            addend = operation.arguments[0]
            if self.arrays[addend].buffer in lowering.places and lowering.private(target):
                lowering.places[self.arrays[target].buffer] = addend, 0
                return Operation("accumulate_into", operation.arguments, (), addend)
            if self.arrays[addend].buffer in lowering.places:          # it cannot take that memory over
                return Operation("kernel", (*operation.arguments, None, None), operation.results,
                                 operator=find_operator("addmm"))
        elif target >= 0 and self.arrays[target].buffer in lowering.places:
            return Operation(operation.kind, operation.arguments, (), target, operation.region, operation.operator)
        return operation

    def run(self):
        """All operations, none of them a stack or slices."""
        lowering, made, rooms = self.lowering, {}, {}
        for place in range(len(self.operations) - 1, -1, -1):
            operation = self.operations[place]
            if operation.kind == "slices":
                offset, (whole,) = 0, operation.arguments
                for held in map(self.arrays.__getitem__, operation.results):
                    lowering.places[held.buffer] = whole, offset
                    offset += held.numel * held.dtype.itemsize
                made[place] = []
            else:
                copies = self.put_together(operation, place)
                if copies is not None:
                    made[place] = copies
        for whole, place in self.begin.items():
            rooms.setdefault(place, []).append(Operation("room", (), (whole,)))
        found = []
        for place, operation in enumerate(self.operations):
            found += rooms.get(place, ())
            found += made[place] if place in made else [self.elsewhere(operation)]
        return found


def placed(lowering, operations):
    """The operations, with what is to be one memory in one."""
    if not any(operation.kind == "stack" or operation.kind == "slices" or (
            operation.kind == "kernel" and operation.operator.name in DIMENSION) for operation in operations):
        return operations
    lowering.operations = operations
    return Placing(lowering).run()
