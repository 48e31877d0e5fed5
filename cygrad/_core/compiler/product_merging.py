"""
Product merging for mode "fast": compute several products or sums as one, which changes the order of summation.

Products of independent matrices by the same matrix become one product of all rows, as in the steps of an unrolled loop.
Sums of products become one product with a longer inner dimension, and sums of row sums become one sum of more rows, as
in the backward of such a loop. A `stack` makes separate rows adjacent; `buffer_aliasing` avoids most of its copies.

Operations move only as far as their dependencies and in-place operations allow.
"""

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.program import PRODUCTS, Operation
from cygrad._core.table.operator import find_operator

SAME, TRANSPOSED, UNRELATED = "same", "transposed", "unrelated"
MIN_GROUP = 3                     # operations to merge
# Multiplications of a merged product, so that its operands and result fit into the L2 cache.
MAX_WORK = 4 * 10 ** 6
MIN_COLUMNS_TO_COPY = 8           # of the result, to pay for a copy of the rows

__all__ = ["merge_products"]


class Rows(NamedTuple):
    """Matrix in memory, with strides in elements."""

    buffer: int
    offset: int                   # in bytes
    rows: int
    columns: int
    row_step: int
    column_step: int
    itemsize: int

    @classmethod
    def of(cls, program, number, transposed=False):
        """Make Rows of a matrix, or of a vector as one row."""
        traced = program.arrays[number]
        shape, strides = (1, 1, *traced.shape)[-2:], (0, 0, *traced.strides)[-2:]
        return cls(traced.buffer, traced.offset, *shape[::-1 if transposed else 1], *strides[::-1 if transposed else 1],
                   traced.dtype.itemsize)


class ProductMerger:
    """Merges products and sums of one Program."""

    def __init__(self, program):
        self.program, self.arrays = program, program.arrays
        self.stacks = []              # stack operations
        self.before = None            # dependencies of each operation
        self.stack_position = {}      # Rows -> (number of the stack, position in it)

    # ---- which operations can be merged

    def product(self, operation):
        """Return the left Rows of a product and a key of its other arguments; None for other operations."""
        if operation.kind != "kernel" or operation.operator.name not in PRODUCTS:
            return None
        left, right = (self.arrays[number] for number in operation.arguments[:2])
        result = self.arrays[operation.results[0]]
        if not (len(right.shape) == 2 and 1 <= len(left.shape) <= 2 and left.numel and result.numel
                and result.contiguous and (left.dtype.is_floating_point or left.dtype.is_complex)
                and left.dtype is right.dtype is result.dtype):
            return None
        rest = [None if number is None else self.layout(number) for number in operation.arguments[1:]]
        return Rows.of(self.program, operation.arguments[0]), (operation.operator.name, *rest)

    def layout(self, number):
        traced = self.arrays[number]
        return traced.buffer, traced.offset, traced.shape, traced.strides, traced.dtype.itemsize

    def term(self, operation, transposed):
        """Return a key shared by the terms to merge with this one, and its Rows; None for other operations."""
        result = self.arrays[operation.results[0]]
        if not transposed and operation.kind == "kernel" and operation.operator.name == "sum_to" and (
                len(result.shape) == 1):
            source = self.arrays[operation.arguments[0]]
            if source.contiguous and source.numel and source.shape[-1:] == result.shape and (
                    source.dtype is result.dtype and source.dtype.is_floating_point):
                traced = Rows(source.buffer, source.offset, source.numel // result.numel, result.numel, result.numel, 1,
                            source.dtype.itemsize)
                return ("sum", result.shape, result.dtype), None, traced
            return None
        if len(result.shape) != 2 or self.product(operation) is None or operation.operator.name == "linear":
            return None
        left, right = Rows.of(self.program, operation.arguments[0], True), Rows.of(
            self.program, operation.arguments[1])
        return ("product", result.shape[::-1 if transposed else 1], result.dtype), *(
            (right, left) if transposed else (left, right))

    def transposition(self, number, first):
        """Compare two arrays: SAME, TRANSPOSED or UNRELATED."""
        traced, other = self.arrays[number], self.arrays[first]
        if number == first:
            return SAME
        if traced.offset or len(traced.shape) != 2 or traced.dtype is not other.dtype or (
                (traced.shape, traced.strides) != (other.shape[::-1], other.strides[::-1])):
            return UNRELATED
        return TRANSPOSED

    # ---- adjacent rows

    def contiguous_rows(self, rows):
        """Return Rows that cover all of them in memory, or None if they are not adjacent."""
        first = rows[0]
        step = next((part.row_step for part in rows if part.rows > 1), None)
        if step is None:
            step = (rows[1].offset - first.offset) // first.itemsize if len(rows) > 1 else first.columns
        if step <= 0 or any((part.buffer, part.columns) != (first.buffer, first.columns)
                            or (part.column_step != first.column_step and part.columns > 1)
                            or (part.rows > 1 and part.row_step != step) for part in rows) or any(
                a.offset + a.rows * step * a.itemsize != b.offset for a, b in pairwise(rows)):
            return None
        return first._replace(rows=sum(part.rows for part in rows), row_step=step)

    def has_array(self, rows):
        """Return whether these rows form one array without a copy."""
        return self.contiguous_rows(rows) is not None or self.in_stack(rows) is not None

    def n_copied(self, rows):
        """Return the number of elements that a stack would have to copy."""
        if self.has_array(rows):
            return 0
        firsts = [self.program.buffers[part.buffer].first for part in rows]
        return sum(part.rows * part.columns for part, first in zip(rows, firsts, strict=True)
                   if part in self.stack_position or part.column_step != 1 or not self.program.is_private(first)
                   or self.arrays[first].numel != part.rows * part.columns)

    def in_stack(self, rows):
        """Return Rows that cover all of them in an existing stack, and the stack; or None."""
        serial, first = self.stack_position.get(rows[0], (0, 0))
        if any(self.stack_position.get(part) != (serial, first + position) for position, part in enumerate(rows)):
            return None
        stack = self.stacks[serial]
        whole, before = Rows.of(self.program, stack.results[0]), stack.arguments[:first]
        return whole._replace(offset=sum(self.arrays[part].numel for part in before) * whole.itemsize,
                              rows=sum(part.rows for part in rows)), stack

    def stack_rows(self, rows, model, transposed=False, usable=None):
        """
        Return the number of an array of all rows, and its stack, or None if the rows are adjacent already.

        `usable` tells whether an existing stack is computed early enough.
        """
        program, whole, stack = self.program, self.contiguous_rows(rows), None
        if whole is None:
            whole, stack = self.in_stack(rows) or (None, None)
            if stack is None or not usable(stack):
                number = program.new_array(model, (sum(part.rows for part in rows), rows[0].columns))
                whole, stack = Rows.of(program, number), Operation("stack", tuple([
                    program.view(part.buffer, part.offset, (part.rows, part.columns),
                                  (part.row_step, part.column_step), model) for part in rows]), (number,))
                for position, part in enumerate(rows):
                    self.stack_position.setdefault(part, (len(self.stacks), position))
                self.stacks.append(stack)
        shape, steps = (whole.rows, whole.columns), (whole.row_step, whole.column_step)
        if transposed:
            shape, steps = shape[::-1], steps[::-1]
        return program.view(whole.buffer, whole.offset, shape, steps, model), stack

    def best_groups(self, members, size):
        """Group members (operation, left Rows or None, Rows), ordered so that most groups need no copy."""
        orders = [members]
        for side in (1, 2):
            rows = [member[side] for member in members]
            if None in rows or len(set(rows)) < len(rows):
                continue
            if len({part.buffer for part in rows}) == 1:
                orders.append(sorted(members, key=lambda member, side=side: member[side].offset))
            if all(part in self.stack_position for part in rows):
                orders.append(sorted(members, key=lambda member, side=side: self.stack_position[member[side]]))
        return max((self.split_groups(order, size) for order in orders), key=lambda groups: sum(
            self.has_array([member[side] for member in group])
            for group in groups for side in (1, 2) if group[0][side] is not None))

    def split_groups(self, members, size):
        """Split members by MAX_WORK if a row takes `size` multiplications, else by stack."""
        made, total = [], 0
        for member in members:
            total += member[2].rows * size
            if not made or total > MAX_WORK or (
                    not size and self.stack_position.get(member[2], "?")[0]
                    != self.stack_position.get(made[-1][-1][2], "?")[0]):
                made.append([])
                total = member[2].rows * size
            made[-1].append(member)
        return made

    # ---- rewrites

    def merge_rows(self):
        """Merge products of several matrices by the same matrix."""
        groups = {}
        for operation in self.program.operations:
            found = self.product(operation)
            if found is not None and self.program.is_private(operation.results[0]):
                groups.setdefault((found[0].columns, found[1]), []).append((operation, None, found[0]))
        for members in groups.values():
            if len(members) >= MIN_GROUP:
                self.merge_independent(members)

    def merge_independent(self, members):
        """Merge those of the products that are independent of each other."""
        program, units, layers = self.program, [], {}
        positions = {id(operation): position for position, operation in enumerate(program.operations)}
        self.before, depths = self.before or dependencies(program), []
        before, self.uses = self.before, {}
        own = {positions[id(member[0])]: member for member in members}
        width = self.arrays[members[0][0].results[0]].shape[-1]
        for position, needs in enumerate(before):
            depths.append(max((depths[need] + (need in own) for need in needs), default=0))
            if position in own:
                layers.setdefault(depths[position], []).append(own[position])
        for depth, layer in layers.items():
            for group in self.best_groups(layer, layer[0][2].columns * width):
                rows = [member[2] for member in group]
                if len(group) < MIN_GROUP or not (self.has_array(rows) or width >= MIN_COLUMNS_TO_COPY):
                    continue
                own_positions = [positions[id(member[0])] for member in group]
                # A stack of more than these rows may depend on these products.
                whole, stack = self.stack_rows(
                    rows, self.arrays[group[0][0].results[0]], usable=lambda stack, depth=depth: (
                        id(stack) in positions and depths[positions[id(stack)]] <= depth))
                if id(stack) in positions:
                    before[own_positions[0]].add(positions[id(stack)])
                bias, additions = self.common_bias(group, own_positions, before)
                units += [([position], []) for position in additions]
                units.append((own_positions, ([] if stack is None or id(stack) in positions else [stack])
                              + self.merged_product(group, whole, bias)))
        if units:
            reorder(program, before, units)
            self.before = None

    def common_bias(self, members, positions, before):
        """
        Return a bias that is added to all results, and the positions of these additions.

        The results take the array numbers of the sums.
        """
        program, operations = self.program, self.program.operations
        if members[0][0].operator.name == "linear" or len(self.arrays[members[0][0].results[0]].shape) != 2:
            return None, ()
        uses = self.uses = self.uses or program.uses()
        found, common = [], set()
        for operation, *_ in members:
            inner = operation
            while True:
                number, = inner.results
                readers = uses.get(self.arrays[number].buffer, ())
                if not program.is_sole_array(number) or len(readers) != 1:
                    return None, ()
                outer = operations[readers[0]]
                if not self.program.is_sum_of_two(outer):
                    break
                inner = outer
            if not self.adds_to(outer, number):
                return None, ()
            bias = next(other for other in outer.expression.inputs if other != number)
            common.add(self.layout(bias))
            found.append((inner, outer, readers[0]))
        additions = [position for _, _, position in found]
        if len(common) > 1 or len(set(additions)) < len(additions) or not all(
                program.unchanged_between(bias, min(positions), position) for position in additions):
            return None, ()
        # The bias must not depend on these products.
        before[positions[0]].update(need for need in before[additions[0]] if self.arrays[bias].buffer in {
            self.arrays[made].buffer for made in operations[need].results if made >= 0})
        for inner, outer, _ in found:
            inner.results = outer.results
        program.rewrites.append(f"a row that is added to the results of {len(members)} products: added in one of them")
        return bias, additions

    def adds_to(self, operation, number):
        """Return whether the operation adds a row to each row of a matrix of the result's layout."""
        traced = self.arrays[number]
        if not self.program.adds_two(operation):
            return False
        bias = self.arrays[next(other for other in operation.expression.inputs if other != number)]
        result = self.arrays[operation.results[0]]
        return (bias.shape in (traced.shape[-1:], (1, *traced.shape[-1:])) and result.shape == traced.shape
                and bias.dtype is traced.dtype is result.dtype and result.contiguous
                and self.program.is_private(operation.results[0]))

    def merged_product(self, members, whole, bias):
        """Return the merged product and the slices of its result."""
        first = members[0][0]
        model, rows = self.arrays[first.results[0]], self.arrays[whole].shape[0]
        together = self.program.new_array(model, (rows, model.shape[-1]))
        self.program.rewrites.append(f"{len(members)} products by one matrix: one of {rows} × {members[0][2].columns} "
                                      f"by {members[0][2].columns} × {model.shape[-1]}")
        product = Operation("kernel", (whole, *first.arguments[1:]), (together,), operator=first.operator)
        if bias is not None:
            product = Operation("kernel", (bias, *product.arguments, None, None), (together,),
                                operator=find_operator("addmm"))
        return [product, Operation("slices", (together,), tuple([member[0].results[0] for member in members]))]

    def merge_terms(self, kind):
        """Merge terms of sums: products, or sums of rows."""
        program = self.program
        uses, maker, inside, removed, inserted = program.uses(), {}, set(), set(), {}
        self.positions = {id(operation): position for position, operation in enumerate(program.operations)}
        self.makers, self.early = {}, {}         # buffer -> its operation; operation -> stacks after it
        for position, operation in enumerate(program.operations):
            maker.update(dict.fromkeys(operation.results, position))
            self.makers.update({self.arrays[number].buffer: position for number in operation.results if number >= 0})
        for root in range(len(program.operations) - 1, -1, -1):
            if root in inside or not self.program.is_sum_of_two(program.operations[root]):
                continue
            additions, terms, others, stack = [root], {}, [], [root]
            while stack:
                for number in program.operations[stack.pop()].expression.inputs:
                    first = program.buffers[self.arrays[number].buffer].first
                    position, relation = maker.get(first), self.transposition(number, first)
                    if position is None or not program.is_private(first) or relation is UNRELATED or len(
                            uses[self.arrays[number].buffer]) != 1:
                        others.append(number)
                    elif relation is SAME and self.program.is_sum_of_two(program.operations[position]):
                        additions.append(position)
                        stack.append(position)
                    else:
                        found = self.term(program.operations[position], relation is TRANSPOSED)
                        if found is None or found[0][0] != kind or not all(
                                program.unchanged_between(read, position, root)
                                for read in program.operations[position].reads()):
                            others.append(number)
                        else:
                            terms.setdefault(found[0], []).append((program.operations[position], *found[1:], number))
            inside.update(additions)
            made, taken = [], set()
            for members in terms.values():
                size = self.arrays[members[0][3]].numel if kind == "product" else 0
                for group in self.best_groups(members, size):
                    positions = [maker[member[0].results[0]] for member in group]
                    merged = self.merged_term(kind, group, max(positions), inserted)
                    if merged is None:
                        others += [member[3] for member in group]
                    else:
                        made.append((max(positions), merged))
                        taken.update(positions)
            if made:
                removed.update(taken, additions)
                self.add_up(sorted(made, key=lambda pair: pair[0]), others, root, inserted)
        self.rebuild(removed, inserted)

    def merged_term(self, kind, members, position, inserted):
        """Insert the merged terms after a position and return the operation; None if it does not pay off."""
        operation, left, right, _ = members[0]
        model = self.arrays[operation.results[0]]
        shape = model.shape if left is None else (left.columns, right.columns)
        rows = [member[2] for member in members]
        if len(members) < MIN_GROUP or (kind == "sum" and not self.has_array(rows)):
            return None
        if kind == "product" and self.n_copied(rows) + self.n_copied([member[1] for member in members]) > (
                len(members) * left.columns * right.columns):
            return None               # slower than adding as many matrices
        whole = self.insert_stack(rows, model, position, inserted)
        arguments, total = (whole, *operation.arguments[1:]), self.arrays[whole].shape[0]
        if kind == "product":
            arguments = self.insert_stack([member[1] for member in members], model, position, inserted, True), whole
            self.program.rewrites.append(f"{len(members)} products that are added up: one of {left.columns} × {total} "
                                          f"by {total} × {right.columns}")
        else:
            self.program.rewrites.append(f"{len(members)} sums that are added up: one of {total} rows")
        merged = Operation("kernel", arguments, (self.program.new_array(model, shape),), operator=operation.operator)
        inserted.setdefault(position, []).append(merged)
        return merged

    def insert_stack(self, rows, model, position, inserted, transposed=False):
        """Insert a stack where its parts are complete, so that all their readers can use it."""
        program = self.program
        number, stack = self.stack_rows(rows, model, transposed,
                                     lambda stack: self.positions[id(stack)] < position)
        if stack is not None and id(stack) not in self.positions:   # new
            if all(map(program.is_never_written, stack.arguments)):
                position, inserted = max(self.makers.get(self.arrays[part].buffer, -1)
                                    for part in stack.arguments), self.early
            else:
                self.stack_position = {part: found for part, found in self.stack_position.items()
                                       if self.stacks[found[0]] is not stack}
            self.positions[id(stack)] = position
            inserted.setdefault(position, []).append(stack)
        return number

    def add_up(self, made, others, position, inserted):
        """Add the merged terms and the others, each as early as possible."""
        root = self.program.operations[position]
        addends = [(there, merged.results[0]) for there, merged in made] + [(position, number) for number in others]
        if len(addends) == 1:
            made[0][1].results = root.results
            return
        total = addends[0][1]
        for number, (there, addend) in enumerate(addends[1:], 2):
            last = number == len(addends)
            results = root.results if last else (self.program.new_array(self.arrays[root.results[0]],
                                                                     self.arrays[root.results[0]].shape),)
            expression = root.expression.renamed(dict(zip(root.expression.inputs, (total, addend), strict=True)))
            inserted.setdefault(position if last else there, []).append(
                Operation("evaluate", (), results, expression=expression, operator=root.operator))
            total = results[0]

    def rebuild(self, removed, inserted):
        """Remove operations and insert others."""
        found = [*self.early.get(-1, ())]
        for position, operation in enumerate(self.program.operations):
            if position not in removed:
                found.append(operation)
            found += inserted.get(position, [])
            found += self.early.get(position, [])     # stacks of results of this operation
        self.program.operations = found


def reorder(program, before, units):
    """Move each unit of operations to one place; keep the order of the others as far as possible."""
    unit_of, made = list(range(len(before))), {}
    for positions, operations in units:
        made[min(positions)] = operations
        for position in positions:
            unit_of[position] = min(positions)
    needs = {}
    for position, own in enumerate(before):
        needs.setdefault(unit_of[position], set()).update(unit_of[need] for need in own)
    inserted = {}
    for unit, own in needs.items():
        own.discard(unit)
        for need in own:
            inserted.setdefault(need, []).append(unit)
    ready = [unit for unit, own in needs.items() if not own]
    heapify(ready)
    found = []
    while ready:
        unit = heappop(ready)
        found += made.get(unit, (program.operations[unit],))
        for other in inserted.get(unit, ()):
            needs[other].discard(unit)
            if not needs[other]:
                heappush(ready, other)
    if any(needs.values()):
        raise RuntimeError("compile: merged operations depend on each other. Use another mode than 'fast'.")
    program.operations = found


def merge_products(program):
    """Merge products and sums in mode "fast"."""
    if not program.fast:
        return
    merger = ProductMerger(program)
    merger.merge_rows()
    merger.merge_terms("product")
    merger.merge_terms("sum")
