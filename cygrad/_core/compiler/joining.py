"""
What mode "fast" may do: products and sums that are computed together, and so added up in another order.

A loop multiplies what each turn reads by one matrix: where no turn needs what another makes of it, that is one product
of all rows. A backward adds up what each turn gives: that is one product with a longer inner dimension, or one sum of
more rows. Rows that do not follow each other in memory are put there by a `stack`; `placing` sees to it that
most are computed where they have to lie.

A rule moves operations only as far as what they read, and what is changed in place, lets it.
"""

from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from cygrad._core.compiler.dependencies import dependencies
from cygrad._core.compiler.operations import PRODUCTS, Operation
from cygrad._core.table.operator import find_operator

FEWEST = 3                        # of which to make one
# Multiplications of a joined product, so that its operands and its result lie in near caches.
MOST_WORK = 4 * 10 ** 6
WORTH_COPYING = 8                 # columns of a product for which its rows may be copied

__all__ = ["joined"]


class Rows(NamedTuple):
    """A matrix in memory; steps are in elements."""

    buffer: int
    offset: int                   # in bytes
    rows: int
    columns: int
    row_step: int
    column_step: int
    itemsize: int

    @classmethod
    def of(cls, lowering, number, turned=False):
        """An array of one dimension or two, that as one row."""
        held = lowering.arrays[number]
        shape, strides = (1, 1, *held.shape)[-2:], (0, 0, *held.strides)[-2:]
        return cls(held.buffer, held.offset, *shape[::-1 if turned else 1], *strides[::-1 if turned else 1],
                   held.dtype.itemsize)


class Joining:
    """The work on one Lowering."""

    def __init__(self, lowering):
        self.lowering, self.arrays = lowering, lowering.arrays
        self.stacks = []              # operations that put rows behind each other
        self.before = None            # what each operation has to come after
        self.home = {}                # one of them -> where it has its place: (which stack, which of its parts)

    # ---- which operations are alike

    def product(self, operation):
        """The Rows on the left of a product by a matrix, and what all else of it is; None for other operations."""
        if operation.kind != "kernel" or operation.operator.name not in PRODUCTS:
            return None
        left, right = (self.arrays[number] for number in operation.arguments[:2])
        result = self.arrays[operation.results[0]]
        if not (len(right.shape) == 2 and 1 <= len(left.shape) <= 2 and left.numel and result.numel
                and result.contiguous and (left.dtype.is_floating_point or left.dtype.is_complex)
                and left.dtype is right.dtype is result.dtype):
            return None
        rest = [None if number is None else self.layout(number) for number in operation.arguments[1:]]
        return Rows.of(self.lowering, operation.arguments[0]), (operation.operator.name, *rest)

    def layout(self, number):
        held = self.arrays[number]
        return held.buffer, held.offset, held.shape, held.strides, held.dtype.itemsize

    def term(self, operation, turned):
        """What is the same for all products or sums that can be one with this one, and their Rows; None for others."""
        result = self.arrays[operation.results[0]]
        if not turned and operation.kind == "kernel" and operation.operator.name == "sum_to" and len(result.shape) == 1:
            source = self.arrays[operation.arguments[0]]
            if source.contiguous and source.numel and source.shape[-1:] == result.shape and (
                    source.dtype is result.dtype and source.dtype.is_floating_point):
                held = Rows(source.buffer, source.offset, source.numel // result.numel, result.numel, result.numel, 1,
                            source.dtype.itemsize)
                return ("sum", result.shape, result.dtype), None, held
            return None
        if len(result.shape) != 2 or self.product(operation) is None or operation.operator.name == "linear":
            return None
        left, right = Rows.of(self.lowering, operation.arguments[0], True), Rows.of(
            self.lowering, operation.arguments[1])
        return ("product", result.shape[::-1 if turned else 1], result.dtype), *(
            (right, left) if turned else (left, right))

    def is_turned(self, number, first):
        """Is an array the transpose of another one, False: it is the same; None: neither."""
        held, other = self.arrays[number], self.arrays[first]
        if number != first and (held.offset or len(held.shape) != 2 or held.dtype is not other.dtype
                                or (held.shape, held.strides) != (other.shape[::-1], other.strides[::-1])):
            return None
        return number != first

    # ---- rows behind each other

    def run(self, rows):
        """The Rows that all of them are where they lie; None if they do not follow each other there."""
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

    def lie_ready(self, rows):
        """Is there an array of all of them without a copy?"""
        return self.run(rows) is not None or self.within(rows) is not None

    def copied(self, rows):
        """Elements of them that a stack would have to copy, because they are not made for it."""
        if self.lie_ready(rows):
            return 0
        firsts = [self.lowering.buffers[part.buffer].first for part in rows]
        return sum(part.rows * part.columns for part, first in zip(rows, firsts, strict=True)
                   if part in self.home or part.column_step != 1 or not self.lowering.private(first)
                   or self.arrays[first].numel != part.rows * part.columns)

    def within(self, rows):
        """The Rows that all of them are in a stack that there is, and the stack; None if they are not."""
        serial, first = self.home.get(rows[0], (0, 0))
        if any(self.home.get(part) != (serial, first + place) for place, part in enumerate(rows)):
            return None
        stack = self.stacks[serial]
        whole, before = Rows.of(self.lowering, stack.results[0]), stack.arguments[:first]
        return whole._replace(offset=sum(self.arrays[part].numel for part in before) * whole.itemsize,
                              rows=sum(part.rows for part in rows)), stack

    def stacked(self, rows, model, turned=False, usable=None):
        """
        The number of an array with all rows, and the stack that it is of: None if it is where the rows lie.

        `usable` tells of a stack that there is whether it is made early enough.
        """
        lowering, whole, stack = self.lowering, self.run(rows), None
        if whole is None:
            whole, stack = self.within(rows) or (None, None)
            if stack is None or not usable(stack):
                number = lowering.fresh(model, (sum(part.rows for part in rows), rows[0].columns))
                whole, stack = Rows.of(lowering, number), Operation("stack", tuple([
                    lowering.view(part.buffer, part.offset, (part.rows, part.columns),
                                  (part.row_step, part.column_step), model) for part in rows]), (number,))
                for place, part in enumerate(rows):
                    self.home.setdefault(part, (len(self.stacks), place))
                self.stacks.append(stack)
        shape, steps = (whole.rows, whole.columns), (whole.row_step, whole.column_step)
        if turned:
            shape, steps = shape[::-1], steps[::-1]
        return lowering.view(whole.buffer, whole.offset, shape, steps, model), stack

    def ordered(self, members, size):
        """Pieces of members (operation, left Rows or None, Rows), in the order in which most lie ready."""
        orders = [members]
        for side in (1, 2):
            rows = [member[side] for member in members]
            if None in rows or len(set(rows)) < len(rows):
                continue
            if len({part.buffer for part in rows}) == 1:
                orders.append(sorted(members, key=lambda member, side=side: member[side].offset))
            if all(part in self.home for part in rows):
                orders.append(sorted(members, key=lambda member, side=side: self.home[member[side]]))
        return max((self.pieces(order, size) for order in orders), key=lambda pieces: sum(
            self.lie_ready([member[side] for member in piece])
            for piece in pieces for side in (1, 2) if piece[0][side] is not None))

    def pieces(self, members, size):
        """Members in groups: of products that are not too large if one row takes `size`, else as they lie ready."""
        made, total = [], 0
        for member in members:
            total += member[2].rows * size
            if not made or total > MOST_WORK or (
                    not size and self.home.get(member[2], "?")[0] != self.home.get(made[-1][-1][2], "?")[0]):
                made.append([])
                total = member[2].rows * size
            made[-1].append(member)
        return made

    # ---- rules

    def join_rows(self):
        """Products of several matrices by the same one are the product of all their rows."""
        groups = {}
        for operation in self.lowering.operations:
            found = self.product(operation)
            if found is not None and self.lowering.private(operation.results[0]):
                groups.setdefault((found[0].columns, found[1]), []).append((operation, None, found[0]))
        for members in groups.values():
            if len(members) >= FEWEST:
                self.join_independent(members)

    def join_independent(self, members):
        """Those of the products that do not need each other's results, as one."""
        lowering, units, layers = self.lowering, [], {}
        places = {id(operation): place for place, operation in enumerate(lowering.operations)}
        self.before, depths = self.before or dependencies(lowering), []
        before, self.uses = self.before, {}
        own = {places[id(member[0])]: member for member in members}
        width = self.arrays[members[0][0].results[0]].shape[-1]
        for place, needs in enumerate(before):
            depths.append(max((depths[need] + (need in own) for need in needs), default=0))
            if place in own:
                layers.setdefault(depths[place], []).append(own[place])
        for depth, layer in layers.items():
            for piece in self.ordered(layer, layer[0][2].columns * width):
                rows = [member[2] for member in piece]
                if len(piece) < FEWEST or not (self.lie_ready(rows) or width >= WORTH_COPYING):
                    continue
                own_places = [places[id(member[0])] for member in piece]
                # A stack of more than these rows may need what these products make.
                whole, stack = self.stacked(
                    rows, self.arrays[piece[0][0].results[0]], usable=lambda stack, depth=depth: (
                        id(stack) in places and depths[places[id(stack)]] <= depth))
                if id(stack) in places:
                    before[own_places[0]].add(places[id(stack)])
                bias, additions = self.common_bias(piece, own_places, before)
                units += [([place], []) for place in additions]
                units.append((own_places, ([] if stack is None or id(stack) in places else [stack])
                              + self.one_product(piece, whole, bias)))
        if units:
            reorder(lowering, before, units)
            self.before = None

    def common_bias(self, members, places, before):
        """
        What is added to the results of all products, to each row alike, and the places of these additions.

        The results, or the sums of them and others to which it was added, then get the names of what these made.
        """
        lowering, operations = self.lowering, self.lowering.operations
        if members[0][0].operator.name == "linear" or len(self.arrays[members[0][0].results[0]].shape) != 2:
            return None, ()
        uses = self.uses = self.uses or lowering.uses()
        found, common = [], set()
        for operation, *_ in members:
            inner = operation
            while True:
                number, = inner.results
                readers = uses.get(self.arrays[number].buffer, ())
                if not lowering.alone(number) or len(readers) != 1:
                    return None, ()
                outer = operations[readers[0]]
                if not self.lowering.is_sum_of_two(outer):
                    break
                inner = outer
            if not self.adds_to(outer, number):
                return None, ()
            bias = next(other for other in outer.region.inputs if other != number)
            common.add(self.layout(bias))
            found.append((inner, outer, readers[0]))
        additions = [place for _, _, place in found]
        if len(common) > 1 or len(set(additions)) < len(additions) or not all(
                lowering.unchanged_between(bias, min(places), place) for place in additions):
            return None, ()
        # What makes it needs none of these products, or the additions would need themselves.
        before[places[0]].update(need for need in before[additions[0]] if self.arrays[bias].buffer in {
            self.arrays[made].buffer for made in operations[need].results if made >= 0})
        for inner, outer, _ in found:
            inner.results = outer.results
        lowering.rewrites.append(f"a row that is added to the results of {len(members)} products: added in one of them")
        return bias, additions

    def adds_to(self, operation, number):
        """Does it add one row to each of a matrix, which looks as the result?"""
        held = self.arrays[number]
        if not self.lowering.adds_two(operation):
            return False
        bias = self.arrays[next(other for other in operation.region.inputs if other != number)]
        result = self.arrays[operation.results[0]]
        return (bias.shape in (held.shape[-1:], (1, *held.shape[-1:])) and bias.dtype is held.dtype is result.dtype
                and result.shape == held.shape and result.contiguous and self.lowering.private(operation.results[0]))

    def one_product(self, members, whole, bias):
        """The product of all rows, and the results that are slices of its own."""
        first = members[0][0]
        model, rows = self.arrays[first.results[0]], self.arrays[whole].shape[0]
        together = self.lowering.fresh(model, (rows, model.shape[-1]))
        self.lowering.rewrites.append(f"{len(members)} products by one matrix: one of {rows} × {members[0][2].columns} "
                                      f"by {members[0][2].columns} × {model.shape[-1]}")
        product = Operation("kernel", (whole, *first.arguments[1:]), (together,), operator=first.operator)
        if bias is not None:
            product = Operation("kernel", (bias, *product.arguments, None, None), (together,),
                                operator=find_operator("addmm"))
        return [product, Operation("slices", (together,), tuple([member[0].results[0] for member in members]))]

    def join_terms(self, kind):
        """Products, or sums of rows, that are added up are one product or sum over more."""
        lowering = self.lowering
        uses, maker, inside, gone, behind = lowering.uses(), {}, set(), set(), {}
        self.places = {id(operation): place for place, operation in enumerate(lowering.operations)}
        self.makers, self.early = {}, {}         # buffer -> the operation that makes it; operation -> stacks behind it
        for place, operation in enumerate(lowering.operations):
            maker.update(dict.fromkeys(operation.results, place))
            self.makers.update({self.arrays[number].buffer: place for number in operation.results if number >= 0})
        for root in range(len(lowering.operations) - 1, -1, -1):
            if root in inside or not self.lowering.is_sum_of_two(lowering.operations[root]):
                continue
            additions, terms, others, stack = [root], {}, [], [root]
            while stack:
                for number in lowering.operations[stack.pop()].region.inputs:
                    first = lowering.buffers[self.arrays[number].buffer].first
                    place, turned = maker.get(first), self.is_turned(number, first)
                    if place is None or not lowering.private(first) or turned is None or len(
                            uses[self.arrays[number].buffer]) != 1:
                        others.append(number)
                    elif not turned and self.lowering.is_sum_of_two(lowering.operations[place]):
                        additions.append(place)
                        stack.append(place)
                    else:
                        found = self.term(lowering.operations[place], turned)
                        if found is None or found[0][0] != kind or not all(
                                lowering.unchanged_between(read, place, root)
                                for read in lowering.operations[place].reads()):
                            others.append(number)
                        else:
                            terms.setdefault(found[0], []).append((lowering.operations[place], *found[1:], number))
            inside.update(additions)
            made, taken = [], set()
            for members in terms.values():
                size = self.arrays[members[0][3]].numel if kind == "product" else 0
                for piece in self.ordered(members, size):
                    places = [maker[member[0].results[0]] for member in piece]
                    joined = self.one_term(kind, piece, max(places), behind)
                    if joined is None:
                        others += [member[3] for member in piece]
                    else:
                        made.append((max(places), joined))
                        taken.update(places)
            if made:
                gone.update(taken, additions)
                self.add_up(sorted(made, key=lambda pair: pair[0]), others, root, behind)
        self.rebuild(gone, behind)

    def one_term(self, kind, members, place, behind):
        """The operation that makes the sum of these terms, put `behind` a place; None if that is not worth while."""
        operation, left, right, _ = members[0]
        model = self.arrays[operation.results[0]]
        shape = model.shape if left is None else (left.columns, right.columns)
        rows = [member[2] for member in members]
        if len(members) < FEWEST or (kind == "sum" and not self.lie_ready(rows)):
            return None
        if kind == "product" and self.copied(rows) + self.copied([member[1] for member in members]) > (
                len(members) * left.columns * right.columns):
            return None               # it takes longer than to add up as many matrices
        whole = self.stack_behind(rows, model, place, behind)
        arguments, total = (whole, *operation.arguments[1:]), self.arrays[whole].shape[0]
        if kind == "product":
            arguments = self.stack_behind([member[1] for member in members], model, place, behind, turned=True), whole
            self.lowering.rewrites.append(f"{len(members)} products that are added up: one of {left.columns} × {total} "
                                          f"by {total} × {right.columns}")
        else:
            self.lowering.rewrites.append(f"{len(members)} sums that are added up: one of {total} rows")
        joined = Operation("kernel", arguments, (self.lowering.fresh(model, shape),), operator=operation.operator)
        behind.setdefault(place, []).append(joined)
        return joined

    def stack_behind(self, rows, model, place, behind, turned=False):
        """`stacked`, the stack put where its parts are there, so that all who read them can read it too."""
        lowering = self.lowering
        number, stack = self.stacked(rows, model, turned,
                                     lambda stack: self.places[id(stack)] < place)
        if stack is not None and id(stack) not in self.places:      # it is new
            if all(map(lowering.unchanging, stack.arguments)):
                place, behind = max(self.makers.get(self.arrays[part].buffer, -1)
                                    for part in stack.arguments), self.early
            else:
                self.home = {part: home for part, home in self.home.items() if self.stacks[home[0]] is not stack}
            self.places[id(stack)] = place
            behind.setdefault(place, []).append(stack)
        return number

    def add_up(self, made, others, place, behind):
        """The sum of what (place, operation) make, each added as soon as it is there, and of others, as root."""
        root = self.lowering.operations[place]
        addends = [(there, joined.results[0]) for there, joined in made] + [(place, number) for number in others]
        if len(addends) == 1:
            made[0][1].results = root.results
            return
        total = addends[0][1]
        for number, (there, addend) in enumerate(addends[1:], 2):
            last = number == len(addends)
            results = root.results if last else (self.lowering.fresh(self.arrays[root.results[0]],
                                                                     self.arrays[root.results[0]].shape),)
            region = root.region.renamed(dict(zip(root.region.inputs, (total, addend), strict=True)))
            behind.setdefault(place if last else there, []).append(
                Operation("evaluate", (), results, region=region, operator=root.operator))
            total = results[0]

    def rebuild(self, gone, behind):
        """Leave out operations, and put others behind some."""
        found = [*self.early.get(-1, ())]
        for place, operation in enumerate(self.lowering.operations):
            if place not in gone:
                found.append(operation)
            found += behind.get(place, [])
            found += self.early.get(place, [])        # of what was made here
        self.lowering.operations = found


def reorder(lowering, before, units):
    """Some operations in one place each, the others as far as possible in the order that they have."""
    unit_of, made = list(range(len(before))), {}
    for places, operations in units:
        made[min(places)] = operations
        for place in places:
            unit_of[place] = min(places)
    needs = {}
    for place, own in enumerate(before):
        needs.setdefault(unit_of[place], set()).update(unit_of[need] for need in own)
    behind = {}
    for unit, own in needs.items():
        own.discard(unit)
        for need in own:
            behind.setdefault(need, []).append(unit)
    ready = [unit for unit, own in needs.items() if not own]
    heapify(ready)
    found = []
    while ready:
        unit = heappop(ready)
        found += made.get(unit, (lowering.operations[unit],))
        for other in behind.get(unit, ()):
            needs[other].discard(unit)
            if not needs[other]:
                heappush(ready, other)
    if any(needs.values()):
        raise RuntimeError("compile: operations that need each other were joined. Use another mode than 'fast'.")
    lowering.operations = found


RULES = (Joining.join_rows, lambda joining: joining.join_terms("product"), lambda joining: joining.join_terms("sum"))


def joined(lowering):
    """Apply all rules to the operations of a Lowering."""
    joining = Joining(lowering)
    for rule in RULES:
        rule(joining)
