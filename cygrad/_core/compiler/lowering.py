"""
From a recording to the operations of a program.

Results that nobody reads are left out, equal ones are computed once, copies that nobody could tell from what they copy
are none, and element-wise operations whose result only one other reads become part of that: intermediate values stay in
registers. Each value goes through the operations that it went through before, so every bit is the same, unless
`joining` is asked to join products and sums.
"""

from cygrad._core.compiler.joining import joined
from cygrad._core.compiler.laying_out import laid_out
from cygrad._core.compiler.operations import Operation, Region
from cygrad._core.compiler.placing import placed
from cygrad._core.compiler.program import Program
from cygrad._core.compiler.regions import forward_program, layout_of, number_everywhere, primitive_name
from cygrad._core.compiler.sharing import shared
from cygrad._core.compiler.sums import summed_layout
from cygrad._core.compiler.sweeps import swept

# What a processor does as fast as it reads memory, and from how many elements on that matters.
CHEAP = frozenset(("add", "sub", "mul", "neg", "square"))
LARGE = 4096
# The inner dimension up to which BLAS adds a product as a whole to what is there: then that is one rounded addition.
MOST_ADDED = 128

__all__ = ["Lowering"]


class Made:
    """Memory that the recording has not met."""

    kind, tensor, writes = "result", None, ()

    def __init__(self, first, maker):
        self.first, self.maker = first, maker


class Lowering:
    """
    The work on one recording.

    Parameters
    ----------
    recorder : Recorder
    outgoing : set of int
        Numbers of the arrays that leave the program.
    start, stop : int
        Which steps it runs; what earlier ones made comes from outside.
    fast : bool
        Sums may be added up in another order.
    """

    def __init__(self, recorder, outgoing, start=0, stop=None, fast=False):
        self.recorder, self.arrays, self.buffers = recorder, [*recorder.arrays], [*recorder.buffers]
        self.outgoing, self.start = set(outgoing), start
        self.operations = [self.operation(step) for step in recorder.steps[start:stop]]
        self.of_buffer = {}
        for number, held in enumerate(self.arrays):
            self.of_buffer.setdefault(held.buffer, []).append(number)
        self.sources = {}             # array of a constant -> where its elements are kept
        self.leaving = {self.arrays[number].buffer for number in self.outgoing}
        self.folded = set()           # buffers that are the same each time
        self.fast, self.rewrites = fast, []        # ... what is added up in another order, for people
        self.places = {}              # buffer that lies in another one -> (an array of that, bytes from it)
        self.copy_constants()
        self.remove_dead()
        self.fold_constants()
        self.remove_ones()
        self.merge_equal()
        self.remove_copies()
        self.remove_dead()
        if fast:
            joined(self)
        self.operations = laid_out(self)
        self.accumulate_products()
        self.fuse()
        self.operations = placed(self, swept(self))

    def operation(self, step):
        """What a step becomes if nothing is done about it."""
        if step.kind == "optimize":
            return Operation("optimize", step.arguments, step=step)
        if step.kind == "keep":        # what a change in place is about to overwrite
            return Operation("copy", step.arguments, step.results)
        if step.kind == "draw":
            return Operation("draw", (), step.results, step=step)
        elementwise = step.operator.forward is not None or forward_program(step.operator) is not None
        region = Region.of(step.operator, step.arguments) if elementwise else None
        if step.kind == "call":
            if region is not None:
                return Operation("evaluate", (), step.results, region=region, operator=step.operator)
            return Operation("kernel", step.arguments, step.results, operator=step.operator, listed=step.listed)
        if region is not None:
            return Operation("change", (), (), step.target, region=region, operator=step.operator)
        kind = "kernel_into" if step.operator.row["into"] is not None else "kernel_copy"
        return Operation(kind, step.arguments, (), step.target, operator=step.operator)

    def is_changed_before(self, buffer):
        """Did steps before the first one here write into a constant? Then its elements belong to each call."""
        return any(step < self.start for step in buffer.writes)

    def is_given(self, number):
        """Does the array come from the caller, or from steps before the first one here?"""
        buffer = self.buffers[self.arrays[number].buffer]
        return not self.is_own(buffer) and (buffer.kind != "constant" or self.is_changed_before(buffer))

    def copy_constants(self):
        """Constants that are changed, or that leave, are copied in each run."""
        for place, buffer in enumerate(self.buffers):
            if buffer.kind == "constant" and (buffer.writes or place in self.leaving) and (
                    not self.is_changed_before(buffer)):
                number = buffer.first
                self.sources[number] = self.recorder.snapshot(place)
                self.operations.insert(0, Operation("copy", (("source", number),), (number,)))

    def remove_dead(self):
        """Leave out what has no effect."""
        live = set(self.leaving)
        live |= {place for place, buffer in enumerate(self.buffers)
                 if buffer.writes and buffer.kind in ("tensor", "gradient")}
        kept = []
        for operation in reversed(self.operations):
            touched = {self.arrays[number].buffer for number in (*operation.results, *operation.writes())
                       if number >= 0}
            if touched & live:
                kept.append(operation)
                live |= {self.arrays[number].buffer for number in operation.reads()}
                live |= {self.arrays[number].buffer for own in operation.arguments for number in own
                         } if operation.kind == "optimize" else set()
        self.operations = kept[::-1]

    def fold_constants(self):
        """What is computed from constants alone is a constant: that of the recording."""
        kept = []
        for operation in self.operations:
            places = [self.arrays[number].buffer for number in operation.results if number >= 0]
            if operation.kind in ("evaluate", "kernel") and places and all(
                    self.is_own(self.buffers[place]) and not self.buffers[place].writes and place not in self.leaving
                    and self.arrays[self.buffers[place].first].numel <= LARGE for place in places) and all(
                    map(self.is_constant, operation.reads())):
                self.folded.update(places)
            else:
                kept.append(operation)
        self.operations = kept

    def is_constant(self, number):
        """Are its elements the same each time?"""
        place = self.arrays[number].buffer
        return place in self.folded or (self.buffers[place].kind == "constant" and not self.buffers[place].writes)

    def remove_ones(self):
        """A product with one is the other factor."""
        names, kept = {}, []
        for operation in self.operations:
            operation.rename(names)
            found = self.other_factor(operation)
            if found is None:
                kept.append(operation)
            else:
                names[operation.results[0]] = found
        self.operations = kept

    def other_factor(self, operation):
        """The number of the array that a product with one is; None for other operations."""
        region = operation.region
        if operation.kind != "evaluate" or len(region.code) != 1 or len(region.inputs) != 2 or region.constants or (
                primitive_name(region.code[0][0]) != "mul" or not self.alone(operation.results[0])):
            return None
        result = self.arrays[operation.results[0]]
        for one, number in (region.inputs, region.inputs[::-1]):
            held = self.arrays[number]
            if self.unchanging(number) and self.is_constant(one) and (held.shape, held.strides, held.dtype) == (
                    result.shape, result.strides, result.dtype) and number_everywhere(self.arrays[one]) == 1:
                return number
        return None

    def is_own(self, buffer):
        """Is this memory made by the program?"""
        return buffer.kind == "result" and buffer.maker >= self.start

    def private(self, number):
        """Is it the first array of a result that never changes and does not leave?"""
        buffer = self.arrays[number].buffer
        return (self.is_own(self.buffers[buffer]) and not self.buffers[buffer].writes and buffer not in self.leaving
                and self.buffers[buffer].first == number)

    def alone(self, number):
        """Is the array all there is of a result that never changes and does not leave?"""
        return self.private(number) and len(self.of_buffer[self.arrays[number].buffer]) == 1

    def unchanging(self, number):
        return not self.buffers[self.arrays[number].buffer].writes

    def fresh(self, model, shape):
        """The number of a result of its own, row-major."""
        number, buffer = len(self.arrays), len(self.buffers)
        self.arrays.append(layout_of(model, shape, None, buffer))
        self.buffers.append(Made(number, self.start))
        self.of_buffer[buffer] = [number]
        return number

    def view(self, buffer, offset, shape, strides, model):
        """The number of an array of a buffer, which need not be there yet."""
        for number in self.of_buffer[buffer]:
            held = self.arrays[number]
            if (held.offset, held.shape, held.strides, held.dtype) == (offset, shape, strides, model.dtype):
                return number
        self.arrays.append(layout_of(model, shape, strides, buffer, offset))
        self.of_buffer[buffer].append(len(self.arrays) - 1)
        return len(self.arrays) - 1

    def merge_equal(self):
        """Compute equal subexpressions once."""
        known, names, kept = {}, {}, []
        for operation in self.operations:
            operation.rename(names)
            if operation.kind not in ("evaluate", "kernel"):
                kept.append(operation)
                continue
            key = None
            if not self.is_cheap(operation) and all(map(self.unchanging, operation.reads())) and all(
                    number < 0 or self.alone(number) for number in operation.results):
                key = self.key(operation)
            if key is not None and key in known:
                names.update(zip(operation.results, known[key].results, strict=True))
                continue
            if key is not None:
                known[key] = operation
            kept.append(operation)
        self.operations, self.names = kept, names

    def is_cheap(self, operation):
        """Is it faster to compute it again, where it is read, than to keep it in memory?"""
        return (operation.region is not None and len(operation.region.code) == 1
                and primitive_name(operation.region.code[0][0]) in CHEAP
                and self.arrays[operation.results[0]].numel >= LARGE)

    def key(self, operation):
        """What makes two operations equal."""
        if operation.region is not None:
            region = operation.region
            numbers = tuple(repr(number.plain if hasattr(number, "plain") else number) for number in region.constants)
            return (tuple(region.inputs), numbers, repr(region.code), region.result)
        return (operation.operator.name, tuple(
            tuple(argument) if isinstance(argument, list) else ("number", repr(argument.plain))
            if hasattr(argument, "plain") else argument for argument in operation.arguments))

    def remove_copies(self):
        """A clone of a result that nobody else has is that result."""
        names, kept = {}, []
        for operation in self.operations:
            operation.rename(names)
            if operation.kind == "kernel" and operation.operator.name == "clone":
                source, result = operation.arguments[0], operation.results[0]
                held = self.arrays[result]
                if self.alone(source) and self.unchanging(result) and self.of_buffer[held.buffer] == [result] and (
                        held.strides == self.arrays[source].strides and held.contiguous):
                    names[result] = source
                    if held.buffer in self.leaving:
                        self.leaving.add(self.arrays[source].buffer)
                    continue
            kept.append(operation)
        self.operations = kept
        self.names |= names
        self.outgoing = {names.get(number, number) for number in self.outgoing}

    def uses(self):
        """Buffer -> places of the operations that read it, as often as they do."""
        uses = {}
        for place, operation in enumerate(self.operations):
            for number in operation.reads():
                uses.setdefault(self.arrays[number].buffer, []).append(place)
            for own in operation.arguments if operation.kind == "optimize" else ():
                for number in own:
                    uses.setdefault(self.arrays[number].buffer, []).append(place)
        return uses

    def accumulate_products(self):
        """A product that is only added to a result that nobody else reads is computed on top of it."""
        uses, maker, gone = self.uses(), {}, set()
        for place, operation in enumerate(self.operations):
            for number in operation.results:
                maker[number] = place
            if not self.is_sum_of_two(operation) or len(self.arrays[operation.results[0]].shape) != 2:
                continue
            inputs = operation.region.inputs
            if not all(number in maker and self.alone(number) and len(uses[self.arrays[number].buffer]) == 1
                       for number in inputs):
                continue
            for number, addend in sorted([inputs, inputs[::-1]], key=lambda pair: -maker[pair[0]]):
                source = maker[number]
                product = self.operations[source]
                if self.is_plain_product(product) and all(
                        self.unchanged_between(read, source, place) for read in product.reads()):
                    gone.add(source)
                    self.operations[place] = Operation("accumulate", (addend, *product.arguments), operation.results)
                    break
        self.operations = [operation for place, operation in enumerate(self.operations) if place not in gone]

    def is_sum_of_two(self, operation):
        """Is it the sum of two arrays that look as it does?"""
        return self.adds_two(operation) and all(
            (held.shape, held.dtype, held.contiguous) == (result.shape, result.dtype, result.contiguous)
            for result in [self.arrays[operation.results[0]]]
            for held in map(self.arrays.__getitem__, operation.region.inputs))

    def adds_two(self, operation):
        """Is it the sum of two arrays, which may be broadcast?"""
        region = operation.region
        return (operation.kind == "evaluate" and len(region.code) == 1 and len(region.inputs) == 2
                and not region.constants and primitive_name(region.code[0][0]) == "add")

    def is_plain_product(self, operation):
        """Is it one of two matrices, and short sums of products?"""
        if operation.kind != "kernel" or operation.operator.name not in ("mm", "matmul"):
            return False
        left, right = (self.arrays[number] for number in operation.arguments)
        return (len(left.shape) == len(right.shape) == 2 and left.dtype.is_floating_point and left.dtype.itemsize >= 4
                and left.shape[0] > 1 and right.shape[1] > 1 and left.shape[1] > 0
                and (self.fast or left.shape[1] <= MOST_ADDED))

    def fuse(self):
        """Compute element-wise what only one element-wise operation or sum reads where it is read."""
        uses, maker = self.uses(), {}
        gone = set()
        for place, operation in enumerate(self.operations):
            if operation.kind == "evaluate":
                maker[operation.results[0]] = place
            meta = summed_layout(self, operation) if operation.region is None else None
            if operation.region is None and meta is None:
                continue
            merged = True
            while merged:
                merged = False
                for number in list(operation.reads()):
                    source = maker.get(number)
                    if source is None or source in gone or not self.alone(number) or (
                            len(uses[self.arrays[number].buffer]) != 1):
                        continue
                    other = self.operations[source].region
                    if not all(self.unchanged_between(read, source, place) for read in other.inputs):
                        continue
                    if operation.region is None:
                        operation.kind, operation.region, operation.meta = "sum", other, meta
                    else:
                        shape = self.arrays[operation.target if operation.target is not None
                                            else operation.results[0]].shape
                        if operation.kind == "sum" or self.arrays[number].shape != shape:
                            continue
                        if operation.target is not None and any(
                                self.arrays[read].buffer == self.arrays[operation.target].buffer
                                for read in other.inputs):
                            continue
                        region = operation.region.with_input(number, other)
                        if region is None:
                            continue
                        operation.region = region
                    gone.add(source)
                    for read in other.inputs:
                        buffer = uses[self.arrays[read].buffer]
                        buffer[buffer.index(source)] = place
                    merged = True
        self.operations = [operation for place, operation in enumerate(self.operations) if place not in gone]

    def unchanged_between(self, number, first, last):
        """Is the memory of the array left alone from one operation to another?"""
        buffer = self.arrays[number].buffer
        if not self.buffers[buffer].writes:
            return True
        return not any(self.arrays[written].buffer == buffer for operation in self.operations[first:last]
                       for written in operation.writes())

    # ------------------------------------------------------------------------------------------------- the program

    def program(self, places, make_constant):
        """
        The Program, and the slot of each array that leaves.

        Parameters
        ----------
        places : dict
            Number of a buffer from outside -> (kind, number of its tensor).
        """
        slots, held, inputs, views, last = {}, [], [], [], {}       # last: the first array of memory -> its last reader
        operations = []

        def fresh(layout):
            held.append(layout)
            return len(held) - 1

        def base(number):
            first = self.home(number)[0]
            if first not in slots:
                buffer = self.buffers[self.arrays[first].buffer]
                slots[first] = fresh(self.arrays[first])
                constant = self.arrays[first].buffer in self.folded or (
                    buffer.kind == "constant" and not self.is_changed_before(buffer))
                if constant and first not in self.sources:
                    inputs.append((slots[first], 2, 0))
                elif not constant and not self.is_own(buffer):
                    # A backward has what was in .grad as a saved tensor.
                    of_leaf = buffer.kind == "gradient" and self.start == 0
                    inputs.append((slots[first], int(of_leaf), places[first]))
            return first

        def slot(number):
            first = base(number)
            if number not in slots:
                slots[number] = fresh(self.arrays[number])
                views.append((slots[number], slots[first], self.home(number)[1]))
            return slots[number]

        def argument(value):
            if isinstance(value, tuple):           # where a constant is kept
                kept = fresh(self.sources[value[1]])
                inputs.append((kept, 2, 0))
                return kept
            if isinstance(value, list):
                return [None if entry is None else slot(entry) for entry in value]
            return slot(value) if isinstance(value, int) else value

        for place, operation in enumerate(self.operations):
            made = {"kind": operation.kind, "operator": operation.operator, "region": None, "views": [], "dead": [],
                    "meta": operation.meta, "listed": operation.listed, "step": operation.step, "reuse": 0}
            if operation.kind == "optimize":
                made["arguments"] = []
                made["updates"] = [self.update(operation.step, own, slot) for own in operation.arguments]
                touched = [number for own in operation.arguments for number in own]
            elif operation.kind == "sweep":
                made["arguments"] = [slot(number) for number in operation.arguments]
                made["sweep"] = (operation.n_rooms, [(region.assembled(make_constant), inputs, out)
                                                     for region, inputs, out in operation.parts])
                made["text"] = operation.text
                touched = list(operation.reads())
            elif operation.region is not None:
                made["region"] = operation.region.assembled(make_constant)
                made["arguments"] = [slot(number) for number in operation.region.inputs]
                touched = list(operation.region.inputs)
                made["text"] = operation.region.text
            else:
                made["arguments"] = [argument(value) for value in operation.arguments]
                touched = list(operation.reads())
            if operation.target is not None:
                made["target"] = slot(operation.target)
                touched.append(operation.target)
            made["results"] = [-1 if number < 0 else slot(number) for number in operation.results]
            touched += [number for number in operation.results if number >= 0]
            made["touched"] = {self.home(number)[0] for number in touched}
            last.update(dict.fromkeys(made["touched"], place))
            operations.append(made)
        outgoing = {number: slot(number) for number in sorted(self.outgoing)}
        for first, place in last.items():
            buffer = self.arrays[first].buffer
            if (self.is_own(self.buffers[buffer]) or first in self.sources) and buffer not in self.leaving:
                operations[place]["dead"].append(slots[first])
        self.note_reuse(operations, slots)
        stretches = shared(self)
        self.note_touched(operations, slots, stretches)
        n_outer = self.arrange_views(operations, views, inputs)
        return Program(held, inputs, n_outer[0], n_outer[1], operations, stretches), {
            number: outgoing.get(self.names.get(number, number)) for number in {*self.names, *outgoing}}

    def home(self, number):
        """The first array of the memory where it lies, and how many bytes behind that."""
        held = self.arrays[number]
        if held.buffer not in self.places:
            return self.buffers[held.buffer].first, held.offset
        number, offset = self.places[held.buffer]
        first, before = self.home(number)
        return first, before + offset + held.offset

    def update(self, step, own, slot):
        """The slot of the number of steps, and those of parameter, gradient and state."""
        slots = [slot(number) for number in own]
        counter = -1
        if len(own) > 3:                           # Adam: its number of steps comes first
            counter = slots.pop(2)
        return counter, slots + [-1] * (5 - len(slots))

    def note_reuse(self, operations, slots):
        """A result may be computed in the memory of what is read for the last time, unless changes of that count."""
        for operation, own in zip(self.operations, operations, strict=True):
            if operation.kind in ("evaluate", "sum"):
                buffers = [self.arrays[number].buffer for number in operation.region.inputs]
                for i, number in enumerate(operation.region.inputs):
                    if slots[number] in own["dead"] and buffers.count(buffers[i]) == 1 and self.unchanging(number):
                        own["reuse"] |= 1 << i

    def note_touched(self, operations, slots, stretches):
        """Leave what dies in the stretch that an operation is part of, by slots."""
        dying = [set()] * len(operations)
        for stretch in stretches:
            own = range(stretch.start, stretch.stop)
            dying[own.start:own.stop] = [{slot for place in own for slot in operations[place]["dead"]}] * len(own)
        for operation, ends in zip(operations, dying, strict=True):
            operation["touched"] = sorted({slots[first] for first in operation["touched"]} & ends)

    def arrange_views(self, operations, views, inputs):
        """Views of what comes from outside first, the others with the operation that makes their base."""
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

    def outer(self):
        """Numbers of the first arrays of the memory that it reads from outside."""
        found = {}
        for operation in self.operations:
            for number in (*operation.reads(), *operation.writes()):
                if self.is_given(number):
                    found[self.buffers[self.arrays[number].buffer].first] = None
        return list(found)
