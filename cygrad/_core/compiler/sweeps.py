"""
Which element-wise operations go over memory together.

After operations have been fused where only one other reads a result, those remain whose results several read. If they
follow each other and have one shape, they are run piece by piece in one pass: then their results are read from the
caches, and what nobody else reads is not written to memory at all.
"""

MOST_PLACES = 40
LEAST_ELEMENTS = 4096             # fewer are in the caches in any case

__all__ = ["swept"]


class Sweep:
    """Operations in one pass; for `Lowering` an operation like others."""

    kind, region, operator, step, meta, listed, target = "sweep", None, None, None, None, False, None

    def __init__(self, arguments, results, parts, n_rooms):
        self.arguments, self.results, self.parts, self.n_rooms = arguments, results, parts, n_rooms

    def reads(self):
        """Numbers of the arrays that it reads."""
        return self.arguments

    def writes(self):
        """It changes nothing in place."""
        return ()

    def text(self, names):
        """Each operation as text; names are those of arguments and results."""
        for region, inputs, out in self.parts:
            shown = [names[place] if place < len(names) else f"t{place - len(names)}" for place in inputs]
            by_number = dict(zip(region.inputs, shown, strict=True))
            result = names[out] if out < len(names) else f"t{out - len(names)}"
            yield f"{result} = {region.text(by_number.get)}"


class Group:
    """Operations that follow each other and fit."""

    def __init__(self, lowering):
        self.lowering, self.arrays = lowering, lowering.arrays
        self.operations, self.inputs, self.made = [], [], {}          # arrays from elsewhere; buffer -> array
        self.model = None

    def source(self, number):
        """What is read there, by the number of an array from elsewhere or of a result here; None if it does not fit."""
        held, model = self.arrays[number], self.model
        made = self.made.get(held.buffer)
        if held.dtype is not model.dtype:
            return None
        if held.numel == model.numel and held.contiguous:
            # Which of the arrays over a buffer it is matters no more: the elements are the same.
            return number if made is None else made if held.offset == 0 else None
        spread = held.numel == 1 or (held.shape == model.shape and not any(held.strides))
        return number if spread and made is None else None

    def add(self, operation):
        """Take one more, if it fits; -> does it?"""
        if operation.kind != "evaluate":
            return False
        held = self.arrays[operation.results[0]]
        if not (held.numel >= LEAST_ELEMENTS and held.contiguous and held.dtype.is_floating_point
                and self.lowering.buffers[held.buffer].first == operation.results[0]):
            return False
        before, self.model = self.model, held
        sources = [self.source(number) for number in operation.region.inputs]
        if None in sources or (before is not None and (before.numel, before.dtype) != (held.numel, held.dtype)):
            self.model = before
            return False
        inputs = list(dict.fromkeys([*self.inputs, *(
            source for source in sources if source not in self.made.values())]))
        if len(inputs) + len(self.operations) + 1 > MOST_PLACES:
            self.model = before
            return False
        self.inputs = inputs
        self.operations.append((operation, sources))
        self.made[held.buffer] = operation.results[0]
        return True

    def finished(self, read_later):
        """The operation that they are together; `read_later` are the buffers that others read, or that leave."""
        if len(self.operations) < 2:
            return [operation for operation, _ in self.operations]
        results = [number for buffer, number in self.made.items() if buffer in read_later]
        if not results:
            return [operation for operation, _ in self.operations]
        places = {number: place for place, number in enumerate([*self.inputs, *results])}
        last = {source: turn for turn, (_, sources) in enumerate(self.operations) for source in sources}
        parts, free, n_rooms = [], [], 0
        for turn, (operation, sources) in enumerate(self.operations):
            number = operation.results[0]
            if number not in places:
                if not free:
                    free.append(len(self.inputs) + len(results) + n_rooms)
                    n_rooms += 1
                places[number] = free.pop()
            region = operation.region
            parts.append((region, [places[source] for source in sources], places[number]))
            free += [places[source] for source in dict.fromkeys(sources)
                     if last[source] == turn and places[source] >= len(self.inputs) + len(results)]
        return [Sweep(tuple(self.inputs), tuple(results), parts, n_rooms)]


def swept(lowering):
    """The operations of a Lowering, with those that fit in sweeps."""
    groups, operations = [], lowering.operations
    group = Group(lowering)
    for operation in operations:
        if group.add(operation):
            continue
        groups += [group, operation]
        group = Group(lowering)
        if group.add(operation):
            groups.pop()
    groups.append(group)
    found, later = [], set(lowering.leaving)
    for entry in reversed(groups):
        made = entry.finished(later) if isinstance(entry, Group) else [entry]
        members = [operation for operation, _ in entry.operations] if isinstance(entry, Group) else made
        for operation in members:
            later |= {lowering.arrays[number].buffer for number in (*operation.reads(), *operation.writes())}
            later |= {lowering.arrays[number].buffer for own in operation.arguments for number in own
                      } if operation.kind == "optimize" else set()
        found += reversed(made)
    return found[::-1]
