"""
Lower a trace to the operations of a program.

Dead results are removed, common subexpressions are computed once, redundant copies are dropped, and element-wise
operations with a single reader are fused into it, so intermediate values stay in registers. Each value goes through the
same operations as before, so results are bit-identical, unless mode "fast" merges products.
"""

import itertools
from bisect import bisect_left
from collections import Counter

from cygrad._core.compiler.buffer_aliasing import alias_buffers
from cygrad._core.compiler.layout_assignment import assign_layouts
from cygrad._core.compiler.loop_fusion import fuse_loops
from cygrad._core.compiler.operations import Expression, Operation
from cygrad._core.compiler.product_merging import merge_products
from cygrad._core.compiler.program import Program, forward_program, layout_of, number_everywhere, primitive_name
from cygrad._core.compiler.reduction_fusion import summed_layout
from cygrad._core.compiler.scheduling import parallel_sections
from cygrad._core.compiler.tracer import constant
from cygrad._core.table.operator import find_operator

# Primitives as fast as reading memory, and the size from which that matters.
CHEAP = frozenset(("add", "sub", "mul", "neg", "square"))
LARGE = 4096
# Extrema with positions -> those without, which agree in signed zeros, too.
VALUES_ONLY = {"max_dim": "amax", "min_dim": "amin"}
# Inner dimension up to which BLAS adds a complete product to the result, with a single rounding.
MAX_EXACT_INNER = 128

__all__ = ["Lowering"]


class NewBuffer:
    """Buffer that is not in the trace."""

    kind, tensor, writes = "result", None, ()

    def __init__(self, first, maker):
        self.first, self.maker = first, maker


class Lowering:
    """
    Lowering of one trace.

    Parameters
    ----------
    tracer : Tracer
    outgoing : set of int
        Array numbers of the outputs.
    start, stop : int
        Range of steps; results of earlier steps are inputs.
    fast : bool
        Allow other orders of summation.
    """

    def __init__(self, tracer, outgoing, start=0, stop=None, fast=False):
        self.tracer, self.arrays, self.buffers = tracer, [*tracer.arrays], [*tracer.buffers]
        self.outgoing, self.start = set(outgoing), start
        self.operations = [self.operation(step) for step in tracer.steps[start:stop]]
        self.arrays_of = {}
        for number, traced in enumerate(self.arrays):
            self.arrays_of.setdefault(traced.buffer, []).append(number)
        self.sources = {}             # constant -> copy of its initial elements
        self.output_buffers = {self.arrays[number].buffer for number in self.outgoing}
        self.folded = set()           # buffers with constant elements
        self.fast, self.rewrites = fast, []        # descriptions of changed summation orders
        self.writers = None           # list of operations, and buffer -> positions of those that write it
        self.aliases = {}             # buffer -> (array in which it lies, offset in bytes)
        self.copy_constants()
        self.remove_dead()
        self.fold_constants()
        self.remove_unit_factors()
        self.merge_equal()
        self.remove_copies()
        self.remove_dead()
        self.remove_positions()
        if fast:
            merge_products(self)
        self.operations = assign_layouts(self)
        self.accumulate_products()
        self.fuse()
        self.operations = alias_buffers(self, fuse_loops(self))

    def operation(self, step):
        """Return the unoptimized Operation of a step."""
        if step.kind == "optimize":
            return Operation("optimize", step.arguments, step=step)
        if step.kind == "keep":        # save what an in-place operation overwrites
            return Operation("copy", step.arguments, step.results)
        if step.kind == "draw":
            return Operation("draw", (), step.results, step=step)
        elementwise = step.operator.forward is not None or forward_program(step.operator) is not None
        expression = Expression.of(step.operator, step.arguments) if elementwise else None
        if step.kind == "call":
            if expression is not None:
                return Operation("evaluate", (), step.results, expression=expression, operator=step.operator)
            return Operation("kernel", step.arguments, step.results, operator=step.operator, is_list=step.is_list)
        if expression is not None:
            return Operation("change", (), (), step.target, expression=expression, operator=step.operator)
        kind = "kernel_into" if step.operator.row["into"] is not None else "kernel_copy"
        return Operation(kind, step.arguments, (), step.target, operator=step.operator)

    def is_changed_before(self, buffer):
        """Was a constant modified before `start`? Then its elements belong to the call."""
        return any(step < self.start for step in buffer.writes)

    def is_input(self, number):
        """Is the array an input of the caller or a result of a step before `start`?"""
        buffer = self.buffers[self.arrays[number].buffer]
        return not self.is_local(buffer) and (buffer.kind != "constant" or self.is_changed_before(buffer))

    def copy_constants(self):
        """Copy constants that are modified or returned, in each execution."""
        for position, buffer in enumerate(self.buffers):
            if buffer.kind == "constant" and (buffer.writes or position in self.output_buffers) and (
                    not self.is_changed_before(buffer)):
                number = buffer.first
                self.sources[number] = self.tracer.snapshot(position)
                self.operations.insert(0, Operation("copy", (("source", number),), (number,)))

    def remove_dead(self):
        """Remove operations without effect."""
        live = set(self.output_buffers)
        live |= {position for position, buffer in enumerate(self.buffers)
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

    def remove_positions(self):
        """Compute extrema without positions that are not read."""
        uses = self.uses()
        for operation in self.operations:
            if operation.kind == "kernel" and operation.operator.name in VALUES_ONLY:
                values, positions = operation.results
                buffer = self.arrays[positions].buffer
                if buffer not in uses and buffer not in self.output_buffers and self.is_never_written(positions):
                    source, dim, keepdim = operation.arguments
                    operation.arguments, operation.results = (source, constant((dim.plain,)), keepdim), (values,)
                    operation.operator = find_operator(VALUES_ONLY[operation.operator.name])

    def fold_constants(self):
        """Replace computations on constants by their traced results."""
        kept = []
        for operation in self.operations:
            made = [self.arrays[number].buffer for number in operation.results if number >= 0]
            if operation.kind in ("evaluate", "kernel") and made and all(
                    self.is_local(self.buffers[buffer]) and not self.buffers[buffer].writes
                    and buffer not in self.output_buffers
                    and self.arrays[self.buffers[buffer].first].numel <= LARGE for buffer in made) and all(
                    map(self.is_constant, operation.reads())):
                self.folded.update(made)
            else:
                kept.append(operation)
        self.operations = kept

    def is_constant(self, number):
        """Are the elements the same in each execution?"""
        buffer = self.arrays[number].buffer
        return buffer in self.folded or (self.buffers[buffer].kind == "constant" and not self.buffers[buffer].writes)

    def remove_unit_factors(self):
        """Remove multiplications by one."""
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
        """Return the other factor of a multiplication by one; None for other operations."""
        expression = operation.expression
        if operation.kind != "evaluate" or (len(expression.code), len(expression.inputs)) != (1, 2) or (
                expression.constants or primitive_name(expression.code[0][0]) != "mul"
                or not self.is_sole_array(operation.results[0])):
            return None
        result = self.arrays[operation.results[0]]
        for one, number in (expression.inputs, expression.inputs[::-1]):
            traced = self.arrays[number]
            if self.is_never_written(number) and self.is_constant(one) and (
                    (traced.shape, traced.strides, traced.dtype) == (result.shape, result.strides, result.dtype)
                    and number_everywhere(self.arrays[one]) == 1):
                return number
        return None

    def is_local(self, buffer):
        """Does the program allocate this buffer?"""
        return buffer.kind == "result" and buffer.maker >= self.start

    def is_private(self, number):
        """Is it the first array of a result that is neither written in place nor returned?"""
        buffer = self.arrays[number].buffer
        return (self.is_local(self.buffers[buffer]) and not self.buffers[buffer].writes
                and buffer not in self.output_buffers and self.buffers[buffer].first == number)

    def is_sole_array(self, number):
        """Is it the only array of a result that is neither written in place nor returned?"""
        return self.is_private(number) and len(self.arrays_of[self.arrays[number].buffer]) == 1

    def is_never_written(self, number):
        return not self.buffers[self.arrays[number].buffer].writes

    def new_array(self, model, shape):
        """Return the number of a new contiguous result."""
        number, buffer = len(self.arrays), len(self.buffers)
        self.arrays.append(layout_of(model, shape, None, buffer))
        self.buffers.append(NewBuffer(number, self.start))
        self.arrays_of[buffer] = [number]
        return number

    def view(self, buffer, offset, shape, strides, model):
        """Return the number of an array over a buffer, which is added if needed."""
        for number in self.arrays_of[buffer]:
            traced = self.arrays[number]
            if (traced.offset, traced.shape, traced.strides, traced.dtype) == (offset, shape, strides, model.dtype):
                return number
        self.arrays.append(layout_of(model, shape, strides, buffer, offset))
        self.arrays_of[buffer].append(len(self.arrays) - 1)
        return len(self.arrays) - 1

    def merge_equal(self):
        """Compute common subexpressions once: equal operations on equal arrays that were not written in between."""
        known, names, writes, kept = {}, self.equal_arrays(), Counter(), []
        for operation in self.operations:
            operation.rename(names)
            writes.update([self.arrays[number].buffer for number in operation.writes()])
            if operation.kind in ("evaluate", "kernel") and not self.is_cheap(operation):
                key = self.key(operation), tuple([writes[self.arrays[number].buffer] for number in operation.reads()])
                found = self.equal_results(operation, known.get(key))
                if found is not None:
                    names.update(found)
                    continue
                known.setdefault(key, operation)
            kept.append(operation)
        self.operations, self.names = kept, {}

    def equal_arrays(self):
        """Return array -> first array with its layout in the same memory, or a constant with the same elements."""
        names, constants = {}, {}
        for numbers in self.arrays_of.values():
            known, value = {}, None
            if self.is_constant(numbers[0]):
                value = number_everywhere(self.arrays[numbers[0]])
            for number in numbers if value is not None or len(numbers) > 1 else ():
                traced = self.arrays[number]
                place = (traced.offset, traced.shape, traced.strides, traced.dtype)
                names[number] = (known.setdefault(place, number) if value is None
                                 else constants.setdefault((repr(value), *place), number))
        return {number: first for number, first in names.items() if first != number}

    def equal_results(self, operation, other):
        """Return array -> array over the results of an equal operation; None if those of `operation` are needed."""
        if other is None or not all(number < 0 or self.is_private(number) for number in operation.results):
            return None
        names = {}
        for number, first in zip(operation.results, other.results, strict=True):
            if number < 0 or first < 0:
                continue
            traced, known = self.arrays[number], self.arrays[first]
            if not self.is_never_written(first) or self.buffers[known.buffer].first != first or (
                    (traced.shape, traced.strides, traced.dtype) != (known.shape, known.strides, known.dtype)):
                return None
            for view in self.arrays_of[traced.buffer]:
                seen = self.arrays[view]
                names[view] = first if view == number else self.view(known.buffer, seen.offset, seen.shape,
                                                                     seen.strides, seen)
        return names

    def is_cheap(self, operation):
        """Is recomputing it at each reader faster than reading it from memory?"""
        return (operation.expression is not None and len(operation.expression.code) == 1
                and primitive_name(operation.expression.code[0][0]) in CHEAP
                and self.arrays[operation.results[0]].numel >= LARGE)

    def key(self, operation):
        """Return a key that is equal for equal operations."""
        if operation.expression is not None:
            expression = operation.expression
            numbers = tuple(repr(number.plain if hasattr(number, "plain") else number)
                            for number in expression.constants)
            return (tuple(expression.inputs), numbers, repr(expression.code), expression.result)
        return (operation.operator.name, tuple(
            tuple(argument) if isinstance(argument, list) else ("number", repr(argument.plain))
            if hasattr(argument, "plain") else argument for argument in operation.arguments))

    def remove_copies(self):
        """Remove clones of results without other readers."""
        names, kept = {}, []
        for operation in self.operations:
            operation.rename(names)
            if operation.kind == "kernel" and operation.operator.name == "clone":
                source, result = operation.arguments[0], operation.results[0]
                traced = self.arrays[result]
                # A copy of constant elements belongs to the caller, who may modify it.
                if not self.is_constant(source) and self.is_sole_array(source) and self.is_never_written(result) and (
                        self.arrays_of[traced.buffer] == [result] and traced.contiguous
                        and traced.strides == self.arrays[source].strides):
                    names[result] = source
                    if traced.buffer in self.output_buffers:
                        self.output_buffers.add(self.arrays[source].buffer)
                    continue
            kept.append(operation)
        self.operations = kept
        self.names |= names
        self.outgoing = {names.get(number, number) for number in self.outgoing}

    def uses(self):
        """Return buffer -> positions of its readers, once per read."""
        uses = {}
        for position, operation in enumerate(self.operations):
            for number in (itertools.chain(*operation.arguments) if operation.kind == "optimize"
                           else operation.reads()):
                uses.setdefault(self.arrays[number].buffer, []).append(position)
        return uses

    def accumulate_products(self):
        """Compute a product directly on top of the result to which it is added."""
        uses, maker, removed = self.uses(), {}, set()
        for position, operation in enumerate(self.operations):
            for number in operation.results:
                maker[number] = position
            if not self.is_sum_of_two(operation) or len(self.arrays[operation.results[0]].shape) != 2:
                continue
            inputs = operation.expression.inputs
            if not all(number in maker and self.is_sole_array(number) and len(uses[self.arrays[number].buffer]) == 1
                       for number in inputs):
                continue
            for number, addend in sorted([inputs, inputs[::-1]], key=lambda pair: -maker[pair[0]]):
                source = maker[number]
                product = self.operations[source]
                if self.is_plain_product(product) and all(
                        self.unchanged_between(read, source, position) for read in product.reads()):
                    removed.add(source)
                    self.operations[position] = Operation("accumulate", (addend, *product.arguments), operation.results)
                    break
        self.operations = [operation for position, operation in enumerate(self.operations) if position not in removed]

    def is_sum_of_two(self, operation):
        """Is it the sum of two arrays of the layout of the result?"""
        return self.adds_two(operation) and all(
            (traced.shape, traced.dtype, traced.contiguous) == (result.shape, result.dtype, result.contiguous)
            for result in [self.arrays[operation.results[0]]]
            for traced in map(self.arrays.__getitem__, operation.expression.inputs))

    def adds_two(self, operation):
        """Is it the sum of two arrays, possibly broadcast?"""
        expression = operation.expression
        return (operation.kind == "evaluate" and len(expression.code) == 1 and len(expression.inputs) == 2
                and not expression.constants and primitive_name(expression.code[0][0]) == "add")

    def is_plain_product(self, operation):
        """Is it a product of two matrices that BLAS accumulates with a single rounding?"""
        if operation.kind != "kernel" or operation.operator.name not in ("mm", "matmul"):
            return False
        left, right = (self.arrays[number] for number in operation.arguments)
        return (len(left.shape) == len(right.shape) == 2 and left.dtype.is_floating_point and left.dtype.itemsize >= 4
                and left.shape[0] > 1 and right.shape[1] > 1 and left.shape[1] > 0
                and (self.fast or left.shape[1] <= MAX_EXACT_INNER))

    def fuse(self):
        """Fuse element-wise operations into their only reader, an element-wise operation or a sum."""
        uses, maker = self.uses(), {}
        removed = set()
        for position, operation in enumerate(self.operations):
            if operation.kind == "evaluate":
                maker[operation.results[0]] = position
            meta = summed_layout(self, operation) if operation.expression is None else None
            if operation.expression is None and meta is None:
                continue
            sources = {}
            for number in operation.reads():
                source = maker.get(number)
                if source is not None and source not in removed and len(uses[self.arrays[number].buffer]) == 1 and (
                        self.is_sole_array(number) and self.is_fusable(operation, number, source, position)):
                    sources[number] = source
            if meta is not None:
                for source in sources.values():
                    operation.kind, operation.meta = "sum", meta
                    operation.expression = self.operations[source].expression
                removed.update(sources.values())
                continue
            found = self.inlined(operation, sources) if sources else operation.expression
            for number in list(sources) if found is None else ():            # too large: those that fit, one by one
                if self.inlined(operation, {number: sources[number]}) is None:
                    del sources[number]
                else:
                    operation.expression = self.inlined(operation, {number: sources[number]})
            operation.expression = found or operation.expression
            removed.update(sources.values())
        self.operations = [operation for position, operation in enumerate(self.operations) if position not in removed]

    def inlined(self, operation, sources):
        """Return the expression of an operation with those of its inputs, or None if it is too large."""
        return operation.expression.with_inputs(
            {number: self.operations[source].expression for number, source in sources.items()})

    def is_fusable(self, operation, number, source, position):
        """May the expression of an input be evaluated in its reader, an element-wise operation or a sum?"""
        inputs = self.operations[source].expression.inputs
        if not all(self.unchanged_between(read, source, position) for read in inputs):
            return False
        if operation.expression is None:
            return True
        target = operation.target
        if self.arrays[number].shape != self.arrays[operation.results[0] if target is None else target].shape:
            return False
        return target is None or all(self.arrays[read].buffer != self.arrays[target].buffer for read in inputs)

    def unchanged_between(self, number, first, last):
        """Is the memory of the array unmodified between two operations?"""
        if self.is_never_written(number):
            return True
        if self.writers is None or self.writers[0] is not self.operations:
            self.writers = self.operations, {}
            for position, operation in enumerate(self.operations):
                for written in operation.writes():
                    self.writers[1].setdefault(self.arrays[written].buffer, []).append(position)
        positions = self.writers[1].get(self.arrays[number].buffer, ())
        return bisect_left(positions, first) == bisect_left(positions, last)

    # ------------------------------------------------------------------------------------------------- the program

    def program(self, positions, make_constant):
        """
        Return the Program and the slot of each output.

        Parameters
        ----------
        positions : dict
            Number of an input buffer -> (kind, number of its tensor).
        """
        slots, traced, inputs, views, last = {}, [], [], [], {}     # base array -> position of its last reader
        operations = []

        def new_slot(layout):
            traced.append(layout)
            return len(traced) - 1

        def base(number):
            first = self.memory_of(number)[0]
            if first not in slots:
                buffer = self.buffers[self.arrays[first].buffer]
                slots[first] = new_slot(self.arrays[first])
                constant = self.arrays[first].buffer in self.folded or (
                    buffer.kind == "constant" and not self.is_changed_before(buffer))
                if constant and first not in self.sources:
                    inputs.append((slots[first], 2, 0))
                elif not constant and not self.is_local(buffer):
                    # A backward program takes .grad as a saved tensor.
                    of_leaf = buffer.kind == "gradient" and self.start == 0
                    inputs.append((slots[first], int(of_leaf), positions[first]))
            return first

        def slot(number):
            first = base(number)
            if number not in slots:
                slots[number] = new_slot(self.arrays[number])
                views.append((slots[number], slots[first], self.memory_of(number)[1]))
            return slots[number]

        def argument(value):
            if isinstance(value, tuple):           # copy of a constant
                kept = new_slot(self.sources[value[1]])
                inputs.append((kept, 2, 0))
                return kept
            if isinstance(value, list):
                return [None if entry is None else slot(entry) for entry in value]
            return slot(value) if isinstance(value, int) else value

        for position, operation in enumerate(self.operations):
            made = {"kind": operation.kind, "operator": operation.operator, "expression": None, "views": [], "dead": [],
                    "meta": operation.meta, "is_list": operation.is_list, "step": operation.step, "reuse": 0}
            if operation.kind == "optimize":
                made["arguments"] = []
                made["updates"] = [self.update(operation.step, own, slot) for own in operation.arguments]
                touched = [number for own in operation.arguments for number in own]
            elif operation.kind == "fused_loop":
                made["arguments"] = [slot(number) for number in operation.arguments]
                made["fused_loop"] = (operation.n_operands, [(expression.assembled(make_constant), inputs, out)
                                                     for expression, inputs, out in operation.stages])
                made["text"] = operation.text
                touched = list(operation.reads())
            elif operation.expression is not None:
                made["expression"] = operation.expression.assembled(make_constant)
                made["arguments"] = [slot(number) for number in operation.expression.inputs]
                touched = list(operation.expression.inputs)
                made["text"] = operation.expression.text
            else:
                made["arguments"] = [argument(value) for value in operation.arguments]
                touched = list(operation.reads())
            if operation.target is not None:
                made["target"] = slot(operation.target)
                touched.append(operation.target)
            made["results"] = [-1 if number < 0 else slot(number) for number in operation.results]
            touched += [number for number in operation.results if number >= 0]
            made["touched"] = {self.memory_of(number)[0] for number in touched}
            last.update(dict.fromkeys(made["touched"], position))
            operations.append(made)
        outgoing = {number: slot(number) for number in sorted(self.outgoing)}
        for first, position in last.items():
            buffer = self.arrays[first].buffer
            if (self.is_local(self.buffers[buffer]) or first in self.sources) and buffer not in self.output_buffers:
                operations[position]["dead"].append(slots[first])
        self.mark_reuse(operations, slots)
        sections = parallel_sections(self)
        self.mark_touched(operations, slots, sections)
        n_outer = self.arrange_views(operations, views, inputs)
        return Program(traced, inputs, n_outer[0], n_outer[1], operations, sections), {
            number: outgoing.get(self.names.get(number, number)) for number in {*self.names, *outgoing}}

    def memory_of(self, number):
        """Return the base array of the memory and the offset in bytes."""
        traced = self.arrays[number]
        if traced.buffer not in self.aliases:
            return self.buffers[traced.buffer].first, traced.offset
        number, offset = self.aliases[traced.buffer]
        first, before = self.memory_of(number)
        return first, before + offset + traced.offset

    def update(self, step, own, slot):
        """Return the slot of the step counter and those of parameter, gradient and state."""
        slots = [slot(number) for number in own]
        counter = -1
        if len(own) > 3:                           # Adam: the step counter comes first
            counter = slots.pop(2)
        return counter, slots + [-1] * (5 - len(slots))

    def mark_reuse(self, operations, slots):
        """Let a result reuse the memory of an operand at its last use, unless its version matters."""
        for operation, own in zip(self.operations, operations, strict=True):
            if operation.kind in ("evaluate", "sum"):
                buffers = [self.arrays[number].buffer for number in operation.expression.inputs]
                for i, number in enumerate(operation.expression.inputs):
                    if slots[number] in own["dead"] and buffers.count(buffers[i]) == 1 and (
                            self.is_never_written(number)):
                        own["reuse"] |= 1 << i

    def mark_touched(self, operations, slots, sections):
        """Keep the slots that die in the section of an operation."""
        dying = [set()] * len(operations)
        for section in sections:
            own = range(section.start, section.stop)
            dying[own.start:own.stop] = [{slot for position in own for slot in operations[position]["dead"]}] * len(own)
        for operation, ends in zip(operations, dying, strict=True):
            operation["touched"] = sorted({slots[first] for first in operation["touched"]} & ends)

    def arrange_views(self, operations, views, inputs):
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

    def outer(self):
        """Return the base arrays of all inputs."""
        found = {}
        for operation in self.operations:
            for number in (*operation.reads(), *operation.writes()):
                if self.is_input(number):
                    found[self.buffers[self.arrays[number].buffer].first] = None
        return list(found)
